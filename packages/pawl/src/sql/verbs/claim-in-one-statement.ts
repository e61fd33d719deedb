import { int, textOrNull, type Sql } from "../sql.js";
import type { Script, Statement } from "../statement.js";
import { assignments, claimOrTakeOver, setOf } from "../ticket.js";
import {
  deadRunner,
  lowWaterAfter,
  NEW,
  ORPHANED,
  RESUMING,
  toClaimed,
  type Claim,
  type ClaimResult,
} from "./claim.js";

/** PostgreSQL: everything in one statement, one round trip. */
export function claimInOneStatement(sql: Sql): Claim {
  const claim = claimAll(sql);
  return {
    transaction: false,
    *script(request, from): Script<ClaimResult> {
      const rows = yield claim.with({
        runner: request.runner,
        lanes: request.lanes.map(({ queue, handler }) => ({ queue, handler })),
        low_resuming: from.resuming,
        low_fresh: from.fresh,
        limit: request.limit,
        reserved: Math.min(request.reservedForNew, request.limit),
      });
      const [first] = rows;
      if (first === undefined || textOrNull(first, "me") === null) return deadRunner;
      const now = int(first, "now");
      const taken = rows.filter((row) => row["tid"] !== null);
      return {
        answer: { kind: "ok", now, claimed: taken.map((row) => toClaimed(row, now)) },
        lowWater: lowWaterAfter(
          request,
          from,
          now,
          taken.map((row) => ({ precedence: int(row, "precedence"), dueAt: int(row, "due_at") })),
        ),
      };
    },
  };
}

function claimAll(sql: Sql): Statement {
  const ticket = sql.table("ticket");
  const due = (klass: number, limit: string): string =>
    `SELECT d.* FROM lane CROSS JOIN clock CROSS JOIN LATERAL (
       SELECT t.tid, t.ctid, t.due_at FROM ${ticket} AS t
       WHERE t.queue = lane.queue AND t.handler = lane.handler AND t.class = ${klass}
         AND t.due_at >= ${klass === NEW ? ":low_fresh" : ":low_resuming"}::bigint AND t.due_at <= clock.now
       ORDER BY t.due_at, t.tid LIMIT ${limit} FOR UPDATE SKIP LOCKED) AS d`;
  return sql.prepare(
    "claim",
    `WITH me AS MATERIALIZED (SELECT id FROM ${sql.table("runner")} WHERE id = :runner AND dead = 0),
     clock AS MATERIALIZED (SELECT :now AS now),
     lane AS MATERIALIZED (
       SELECT l.* FROM me, ${sql.rows("lanes", "l", { queue: "key", handler: "key" })}),
     orphan AS MATERIALIZED (
       SELECT o.* FROM ${sql.table("runner")} AS r CROSS JOIN LATERAL (
         SELECT t.tid, t.ctid, t.pause_requested FROM ${ticket} AS t
         WHERE t.owner == r.id AND (t.queue, t.handler) IN (SELECT queue, handler FROM lane)
         LIMIT :limit FOR UPDATE SKIP LOCKED) AS o
       WHERE r.dead = 1),
     resuming AS MATERIALIZED (${due(RESUMING, ":limit")}),
     fresh AS MATERIALIZED (${due(
       NEW,
       `(SELECT greatest(:limit - (SELECT count(*) FROM resuming) - (SELECT count(*) FROM orphan WHERE pause_requested = 0), :reserved))`,
     )}),
     old AS (
       (SELECT tid, ctid, ${ORPHANED} AS precedence, 0::bigint AS due_at FROM orphan WHERE pause_requested = 0)
       UNION ALL (SELECT tid, ctid, ${RESUMING}, due_at FROM resuming)),
     picked AS MATERIALIZED (
       (SELECT * FROM old ORDER BY precedence, due_at, tid
        LIMIT (SELECT :limit - least(:reserved, (SELECT count(*) FROM fresh))))
       UNION ALL
       (SELECT tid, ctid, ${NEW} AS precedence, due_at FROM fresh ORDER BY due_at, tid
        LIMIT (SELECT greatest(:limit - (SELECT count(*) FROM old), least(:reserved, (SELECT count(*) FROM fresh)))))),
     ${leasePicked(ticket)},
     stopped AS (
       UPDATE ${ticket} AS t SET ${assignments(setOf("takeOverPausing", "clock.now"))}
       FROM orphan WHERE t.tid == orphan.tid AND orphan.pause_requested = 1)
     SELECT me.id AS me, clock.now, c.*, i.workflow, i.id, i.created_at,
       CASE WHEN c.precedence = ${NEW} THEN i.params END AS params
     FROM clock LEFT JOIN me ON true LEFT JOIN claimed AS c ON true
       LEFT JOIN ${sql.table("instance")} AS i ON i.iid == c.tid
     ORDER BY c.precedence, c.due_at, c.tid`,
  );
}

/**
 * CTEs that lease the picked tickets. Tickets are updated by place (`ctid`), since a lookup by key walks over all of
 * their versions that an old snapshot keeps. The place is that of the version that was locked. If somebody wrote the
 * ticket after this statement's snapshot, it is not found there, but by its key.
 */
function leasePicked(ticket: string): string {
  const set = assignments(claimOrTakeOver(`picked.precedence = ${ORPHANED}`, "clock.now"));
  const lease = (where: string): string =>
    `UPDATE ${ticket} AS t SET ${set}
     FROM picked, clock WHERE ${where}
     RETURNING t.tid, t.queue, t.handler, t.run_no, t.claim_no, t.takeovers, t.event_count, t.history_bytes, picked.precedence, picked.due_at`;
  return `by_place AS (${lease("t.ctid = picked.ctid")}),
     by_key AS (${lease("t.tid == picked.tid AND (picked.tid IN (SELECT tid FROM by_place)) IS NOT TRUE")}),
     claimed AS (SELECT * FROM by_place UNION ALL SELECT * FROM by_key)`;
}

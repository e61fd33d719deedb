import type { Target } from "../../../model/target.js";
import type { EventPlace, SendEventAnswer } from "../../../store/store.js";
import { waitMaskOf } from "../../../model/wait-mask.js";
import { int, text, textOrNull, type Sql } from "../../sql.js";
import type { Row, Script, Statement } from "../../statement.js";
import { assignments, setOf } from "../../ticket.js";
import { aliveSql } from "../create.js";
import { isRegistered, postSelected } from "../hooks/posting.js";
import { claimedBy } from "./in-steps.js";
import type { SendEvent } from "./index.js";
import { readInstance, refuser } from "./refusing.js";
import { laterThanSeen, wokenSql } from "./text.js";

/** PostgreSQL: lock, time, event and ticket in one statement, one round trip. */
export function sendInOneStatement(sql: Sql): SendEvent {
  const instance = readInstance(sql);
  const refuse = refuser(sql);
  const send = addEvent(sql, "event.send", false);
  const sendAndLease = addEvent(sql, "event.send.leased", true);
  return {
    transaction: false,
    *script(target, event, lease): Script<SendEventAnswer> {
      const values = {
        workflow: target.workflow,
        id: target.id,
        event_id: event.eventId,
        type: event.type,
        payload: event.payload,
        mask: waitMaskOf([event.type]),
      };
      const [row] = yield lease === null
        ? send.with(values)
        : sendAndLease.with({ ...values, runner: lease.runner, claim_no: lease.claimNumber });
      if (row !== undefined) return accepted(target, row);
      const [found] = yield instance.with({ workflow: target.workflow, id: target.id });
      return yield* refuse(found, event);
    },
  };
}

function accepted(target: Target, row: Row): SendEventAnswer {
  if (int(row, "added") === 0) return { kind: "duplicate" };
  const place: EventPlace = {
    iid: text(row, "tid"),
    runNumber: int(row, "run_no"),
    number: int(row, "number"),
    createdAt: int(row, "at"),
  };
  return {
    kind: "accepted",
    woken: int(row, "woken") === 1,
    owner: textOrNull(row, "owner"),
    place,
    claimed: int(row, "taken") === 1 ? claimedBy(target, place, row) : null,
  };
}

/** With `isLeasing`, a run that wakes is leased to the sender's runner, if the runner had it last and is alive. */
function addEvent(sql: Sql, name: string, isLeasing: boolean): Statement {
  const taken = isLeasing
    ? `${wokenSql(":mask")} AND t.claim_no = :claim_no AND EXISTS (${aliveSql(sql)})`
    : "false";
  return sql.prepare(
    name,
    `WITH locked AS MATERIALIZED (
       SELECT t.*, i.created_at FROM ${sql.table("instance")} AS i JOIN ${sql.table("ticket")} AS t ON t.tid == i.iid
       WHERE i.workflow = :workflow AND i.id = :id FOR UPDATE OF t),
     timed AS MATERIALIZED (
       SELECT t.tid, t.run_no, t.owner, t.event_count + 1 AS number, ${laterThanSeen("clock.now")} AS at,
         t.created_at, clock.now, ${wokenSql(":mask")} AS woken, ${taken} AS taken
       FROM locked AS t CROSS JOIN LATERAL (SELECT :now AS now FROM (SELECT t.tid) AS after_the_lock) AS clock),
     added AS (
       INSERT INTO ${sql.table("event")} (iid, run_no, number, event_id, kind, type, payload, created_at)
       SELECT tid, run_no, number, :event_id, 'event', :type, :payload, at FROM timed
       ON CONFLICT (iid, run_no, event_id) DO NOTHING RETURNING iid),
     counted AS (
       UPDATE ${sql.table("ticket")} AS t SET ${assignments(ticketSet(isLeasing))}
       FROM timed, added WHERE t.tid == timed.tid AND added.iid = timed.tid
       RETURNING t.claim_no, t.takeovers, t.history_bytes),
     posted AS (${postSelected(
       sql,
       `SELECT 'event.' || timed.number || '.' || timed.run_no || '.' || timed.tid, 'onWorkflowEnqueued', :workflow, :id,
          timed.run_no, 'event', timed.now, timed.now
        FROM timed JOIN added ON added.iid = timed.tid
        WHERE timed.woken AND ${isRegistered(sql, "onWorkflowEnqueued")}`,
     )})
     SELECT timed.tid, timed.run_no, timed.number, timed.at, timed.now, timed.created_at, timed.owner,
       timed.woken::int AS woken, timed.taken::int AS taken, (SELECT count(*) FROM added) AS added, counted.*
     FROM timed LEFT JOIN counted ON true`,
  );
}

/** The event is counted. A run that wakes becomes due, or is claimed if it is taken at once. */
function ticketSet(isLeasing: boolean): Record<string, string> {
  const due = "CASE WHEN timed.woken THEN least(t.due_at, timed.now) ELSE t.due_at END";
  const set: Record<string, string> = { event_count: "timed.number", due_at: due };
  if (!isLeasing) return set;
  for (const [column, value] of Object.entries(setOf("claim", "timed.now"))) {
    set[column] = `CASE WHEN timed.taken THEN ${value} ELSE ${set[column] ?? `t.${column}`} END`;
  }
  return set;
}

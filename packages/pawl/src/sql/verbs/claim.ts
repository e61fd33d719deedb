import type { Claimed, ClaimAnswer, ClaimRequest, Lane } from "../../store/store.js";
import { int, intOrNull, text, textOrNull, type Sql, type Verb } from "../sql.js";
import type { Row, Script, Statement } from "../statement.js";
import { claimOrTakeOver, setOf } from "../ticket.js";

/** The order in which tickets are claimed. The last two are also the ticket's class. */
export const ORPHANED = -1;
export const RESUMING = 0;
export const NEW = 1;

/**
 * A due time for each class. No ticket was due before it when the last claim looked, as far as that claim could see.
 */
export type LowWater = { readonly resuming: number; readonly fresh: number };
export const everything: LowWater = { resuming: 0, fresh: 0 };
export type ClaimResult = { readonly answer: ClaimAnswer; readonly lowWater: LowWater };
export type Claim = Verb<[request: ClaimRequest, from: LowWater], ClaimResult>;

/**
 * A ticket that is due now becomes visible with its transaction, as a rule within this time. A ticket whose transaction
 * waited longer for a lock is found by the next look at everything. A claim walks over all that was claimed within this
 * time, which is 120 pages of an index where 12,000 runs are claimed in a second.
 */
const STRAGGLER_MS = 500;

export function claimVerb(sql: Sql): Claim {
  const { dialect } = sql;
  return dialect.writableCtes ? dialect.oneStatement.claim(sql) : inSteps(sql);
}

/** Everywhere else: look, lock, lease and read, in one transaction. */
function inSteps(sql: Sql): Claim {
  const { runners, lease, read } = leasingStatements(sql);
  const takeOrphans = orphanTaker(sql);
  const dueIn = dueByLanes(sql);
  return {
    transaction: true,
    *script(request, from): Script<ClaimResult> {
      const { runner, lanes, limit } = request;
      const known = yield runners.with({ runner });
      const me = known.find((row) => row["id"] === runner);
      if (me === undefined || int(me, "dead") === 1) return deadRunner;
      const now = int(me, "now");

      const takenOver = yield* takeOrphans(
        known.filter((row) => int(row, "dead") === 1),
        request,
      );
      const resuming = yield* dueIn(lanes, RESUMING, now, from.resuming, limit);
      const old = [...takenOver, ...resuming];
      const reserved = Math.min(request.reservedForNew, limit);
      const room = Math.max(limit - old.length, reserved);
      const fresh = yield* dueIn(lanes, NEW, now, from.fresh, room);
      const rows = pick(old, fresh, limit, reserved);
      const taken = rows.map((row) => ({
        tid: text(row, "tid"),
        precedence: row["owner"] === null ? int(row, "class") : ORPHANED,
        dueAt: intOrNull(row, "due_at") ?? 0,
      }));
      const lowWater = lowWaterAfter(request, from, now, taken);
      if (rows.length === 0) return { answer: { kind: "ok", now, claimed: [] }, lowWater };

      yield lease.with({ picked: rows.map(tidOf), runner, at: now });
      const claimed = yield read.with({
        claimed: taken.map(({ tid, precedence }) => ({ tid, precedence })),
      });
      const order = new Map(rows.map((row, position) => [text(row, "tid"), position]));
      return {
        answer: {
          kind: "ok",
          now,
          claimed: claimed
            .map((row) => toClaimed(row, now))
            .toSorted((a, b) => (order.get(a.iid) ?? 0) - (order.get(b.iid) ?? 0)),
        },
        lowWater,
      };
    },
  };
}

function leasingStatements(sql: Sql) {
  const runners = sql.prepare(
    "claim.runners",
    `SELECT id, dead, :now AS now FROM ${sql.table("runner")} WHERE id = :runner OR dead = 1`,
  );
  const lease = sql.prepare(
    "claim.lease",
    sql.dialect.updateFrom({
      table: "ticket",
      alias: "t",
      rows: sql.rows("picked", "p", { tid: "key" }),
      on: "t.tid == p.tid",
      set: claimOrTakeOver("t.owner IS NOT NULL", ":at"),
    }),
  );
  const read = sql.prepare(
    "claim.read",
    `SELECT t.tid, t.run_no, t.claim_no, t.takeovers, t.event_count, t.history_bytes,
       i.workflow, i.id, i.created_at, CASE WHEN p.precedence = ${NEW} THEN i.params END AS params,
       p.precedence AS precedence
     FROM ${sql.rows("claimed", "p", { tid: "key", precedence: "int" })}
       ${sql.dialect.drivenJoin} ${sql.table("ticket")} AS t ON t.tid == p.tid
       ${sql.dialect.drivenJoin} ${sql.table("instance")} AS i ON i.iid == t.tid`,
  );
  return { runners, lease, read };
}

/** The columns of a ticket that may be taken. */
const wanted = "t.tid, t.queue, t.handler, t.owner, t.class, t.due_at, t.pause_requested";

type OrphanTaker = (deadRunners: readonly Row[], request: ClaimRequest) => Script<Row[]>;

/** Locks tickets of dead runners. Tickets that were asked to pause are paused; the others are answered. */
function orphanTaker(sql: Sql): OrphanTaker {
  const orphans = sql.prepare(
    "claim.orphans",
    `SELECT ${wanted}
     FROM ${sql.rows("owners", "r", { id: "key" })} ${sql.dialect.drivenJoin} ${sql.table("ticket")} AS t ${sql.dialect.throughIndex("ticket_owner")}
       ON t.owner == r.id AND t.queue = :queue AND t.handler = :handler
     LIMIT :limit ${sql.dialect.lockSkippingOf("t")}`,
  );
  const stop = sql.prepare(
    "claim.stop",
    sql.dialect.updateFrom({
      table: "ticket",
      alias: "t",
      rows: sql.rows("picked", "p", { tid: "key" }),
      on: "t.tid == p.tid",
      set: setOf("takeOverPausing", ":at"),
    }),
  );
  return function* takeOrphans(deadRunners, { lanes, limit }) {
    if (deadRunners.length === 0) return [];
    const owners = deadRunners.map((row) => ({ id: text(row, "id") }));
    const found: Row[] = [];
    for (const { queue, handler } of lanes) {
      found.push(...(yield orphans.with({ owners, queue, handler, limit })));
    }
    const pausing = found.filter((row) => int(row, "pause_requested") === 1);
    if (pausing.length > 0) yield stop.with({ picked: pausing.map(tidOf) });
    return found.filter((row) => int(row, "pause_requested") === 0);
  };
}

/** The places reserved for new runs are theirs only as far as there are new runs. */
function pick(old: readonly Row[], fresh: readonly Row[], limit: number, reserved: number): Row[] {
  const kept = old.slice(0, limit - Math.min(reserved, fresh.length));
  return [...kept, ...fresh.slice(0, limit - kept.length)];
}

/** One range of the index for each lane, ending in LIMIT, so that the cost does not depend on rows it may not take. */
function dueByLanes(sql: Sql) {
  const lanesMax = sql.dialect.unionMax;
  const byCount = new Map<number, Statement>();
  const statementFor = (lanes: number): Statement => {
    const known = byCount.get(lanes);
    if (known !== undefined) return known;
    const branches = Array.from(
      { length: lanes },
      (_, n) =>
        `SELECT * FROM (SELECT ${wanted} FROM ${sql.table("ticket")} AS t ${sql.dialect.throughIndex("ticket_due")}
         WHERE t.queue = :queue${n} AND t.handler = :handler${n} AND t.class = :class
           AND t.due_at >= :low AND t.due_at <= :at
         ORDER BY t.due_at, t.tid LIMIT :limit ${sql.dialect.lockSkipping}) AS lane${n}`,
    );
    const statement = sql.prepare(
      `claim.due.${lanes}`,
      `${branches.join(" UNION ALL ")} ORDER BY due_at, tid LIMIT :limit`,
    );
    byCount.set(lanes, statement);
    return statement;
  };
  return function* (
    lanes: readonly Lane[],
    klass: number,
    at: number,
    low: number,
    limit: number,
  ): Script<Row[]> {
    if (limit <= 0) return [];
    const rows: Row[] = [];
    for (let from = 0; from < lanes.length; from += lanesMax) {
      const some = lanes.slice(from, from + lanesMax);
      const named = some.flatMap((lane, n) => [
        [`queue${n}`, lane.queue],
        [`handler${n}`, lane.handler],
      ]);
      const values = { ...Object.fromEntries(named), class: klass, low, at, limit };
      rows.push(...(yield statementFor(some.length).with(values)));
    }
    return lanes.length <= lanesMax ? rows : rows.toSorted(byDueTime).slice(0, limit);
  };
}

function byDueTime(a: Row, b: Row): number {
  return int(a, "due_at") - int(b, "due_at") || (text(a, "tid") < text(b, "tid") ? -1 : 1);
}

export const deadRunner: ClaimResult = { answer: { kind: "dead" }, lowWater: everything };

type Taken = { readonly precedence: number; readonly dueAt: number };

/** Each class is taken in the order of due times, over all lanes. */
export function lowWaterAfter(
  { limit, reservedForNew }: ClaimRequest,
  from: LowWater,
  now: number,
  taken: readonly Taken[],
): LowWater {
  const old = taken.filter(({ precedence }) => precedence !== NEW);
  if (old.some(({ precedence }) => precedence === ORPHANED)) return from;
  const after = (klass: Taken[]): number =>
    taken.length < limit || klass.length === 0
      ? now - STRAGGLER_MS
      : klass.reduce((low, { dueAt }) => Math.min(low, dueAt), Infinity);
  const lookedForNew = reservedForNew > 0 || old.length < limit;
  return {
    resuming: after(old),
    fresh: lookedForNew ? after(taken.filter(({ precedence }) => precedence === NEW)) : from.fresh,
  };
}

function tidOf(row: Row): { tid: string } {
  return { tid: text(row, "tid") };
}

export function toClaimed(row: Row, now: number): Claimed {
  return {
    iid: text(row, "tid"),
    workflow: text(row, "workflow"),
    id: text(row, "id"),
    runNumber: int(row, "run_no"),
    claimNumber: int(row, "claim_no"),
    resuming: int(row, "precedence") !== NEW,
    takenOver: int(row, "precedence") === ORPHANED,
    takeovers: int(row, "takeovers"),
    eventCount: int(row, "event_count"),
    historyBytes: int(row, "history_bytes"),
    createdAt: int(row, "created_at"),
    params: textOrNull(row, "params"),
    now,
  };
}

import type { Target } from "../../store/records.js";
import type {
  Claimed,
  EventPlace,
  LeaseOnWake,
  NewEvent,
  SendEventAnswer,
} from "../../store/store.js";
import { waitMaskOf } from "../../store/wait-mask.js";
import { int, intOrNull, Raced, text, textOrNull, type Sql, type Verb } from "../sql.js";
import type { Row, Script, Statement } from "../statement.js";
import { assignments, setOf, stateWord } from "../ticket.js";
import { RESUMING, toClaimed } from "./claim.js";
import { aliveSql } from "./create.js";
import {
  hookedColumn,
  isHooked,
  isRegistered,
  poster,
  postId,
  postSelected,
} from "./hooks/posting.js";
import { statusOfRow } from "./status.js";

export type SendEvent = Verb<
  [target: Target, event: NewEvent, lease: LeaseOnWake | null],
  SendEventAnswer
>;

/** Wakes a parked run if one of its waits may be for this type; an earlier due time stays. */
const wokenSql = (mask: string): string =>
  `t.state = ${stateWord.waiting} AND (t.wait_mask & ${mask}) <> 0`;

/** Later than anything the run's owner has judged, even if the clock stands still or steps back. */
const laterThanSeen = (now: string): string =>
  `CASE WHEN ${now} > t.seen_at THEN ${now} ELSE t.seen_at + 1 END`;
const laterThan = (seenAt: number, now: number): number => Math.max(now, seenAt + 1);

function readInstance(sql: Sql): Statement {
  return sql.prepare("event.instance", readInstanceSql(sql));
}

function readInstanceSql(sql: Sql, more = ""): string {
  return `SELECT i.iid, i.run_no, i.status, i.created_at, t.state, t.pause_requested${more}
    FROM ${sql.table("instance")} AS i LEFT JOIN ${sql.table("ticket")} AS t ON t.tid == i.iid
    WHERE i.workflow = :workflow AND i.id = :id`;
}

/** An event that cannot be added was perhaps added before: sent again, it is success also after the end of its run. */
function refuser(sql: Sql): (found: Row | undefined, event: NewEvent) => Script<SendEventAnswer> {
  // One snapshot of both: between two looks it could move from the inbox to the events.
  const known = sql.prepare(
    "event.known",
    `SELECT e.event_id FROM ${sql.table("event")} AS e
     WHERE e.iid = :iid AND e.run_no = :run_no AND e.event_id = :event_id
     UNION ALL SELECT n.event_id FROM ${sql.table("inbox")} AS n
     WHERE n.iid = :iid AND n.run_no = :run_no AND n.event_id = :event_id`,
  );
  return function* (found, event) {
    if (found === undefined) return { kind: "notFound" };
    // Its ticket was replaced by a restart while we waited for the old one's lock.
    if (text(found, "status") === "live") throw new Raced();
    const sent = yield known.with({
      iid: text(found, "iid"),
      run_no: int(found, "run_no"),
      event_id: event.eventId,
    });
    return sent.length > 0
      ? { kind: "duplicate" }
      : { kind: "terminal", status: statusOfRow(found) };
  };
}

export function sendEventVerb(sql: Sql): SendEvent {
  return sql.dialect.writableCtes ? inOneStatement(sql) : inSteps(sql);
}

function inOneStatement(sql: Sql): SendEvent {
  const instance = readInstance(sql);
  const refuse = refuser(sql);
  const statement = (isLeasing: boolean): Statement => {
    const taken = isLeasing
      ? `${wokenSql(":mask")} AND t.claim_no = :claim_no AND EXISTS (${aliveSql(sql)})`
      : "false";
    const changes = {
      event_count: "timed.number",
      due_at: "CASE WHEN timed.woken THEN least(t.due_at, timed.now) ELSE t.due_at END",
    };
    const leases = isLeasing ? Object.entries(setOf("claim", "timed.now")) : [];
    for (const [column, value] of leases) {
      const otherwise = column === "due_at" ? changes.due_at : `t.${column}`;
      Object.assign(changes, {
        [column]: `CASE WHEN timed.taken THEN ${value} ELSE ${otherwise} END`,
      });
    }
    return sql.prepare(
      isLeasing ? "event.send.leased" : "event.send",
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
         UPDATE ${sql.table("ticket")} AS t SET ${assignments(changes)}
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
  };
  const send = statement(false);
  const sendAndLease = statement(true);
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
      if (row !== undefined) {
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
          claimed:
            int(row, "taken") === 1
              ? claimedBy(target, place, { ...row, claim_no: int(row, "claim_no") })
              : null,
        };
      }
      const [found] = yield instance.with({ workflow: target.workflow, id: target.id });
      return yield* refuse(found, event);
    },
  };
}

function inSteps(sql: Sql): SendEvent {
  const instance = readInstance(sql);
  const refuse = refuser(sql);
  const lock = sql.prepare(
    "event.lock",
    `SELECT t.tid, t.run_no, t.claim_no, t.owner, t.takeovers, t.event_count, t.history_bytes, t.seen_at,
       CASE WHEN ${wokenSql(":mask")} THEN 1 ELSE 0 END AS woken
     FROM ${sql.table("ticket")} AS t WHERE t.tid = :iid ${sql.dialect.lock}`,
  );
  // A statement of its own: in the locking one the time would be as old as the wait for the lock.
  const time = sql.prepare(
    "event.time",
    `SELECT :now AS now, ${hookedColumn(sql)},
       (SELECT e.number FROM ${sql.table("event")} AS e
       WHERE e.iid = :iid AND e.run_no = :run_no AND e.event_id = :event_id) AS known`,
  );
  const alive = sql.prepare("event.alive", aliveSql(sql));
  const add = sql.prepare(
    "event.add",
    `INSERT INTO ${sql.table("event")} (iid, run_no, number, event_id, kind, type, payload, created_at)
     VALUES (:iid, :run_no, :number, :event_id, 'event', :type, :payload, :created_at)`,
  );
  const count = sql.prepare(
    "event.count",
    `UPDATE ${sql.table("ticket")} SET event_count = event_count + 1,
       due_at = CASE WHEN :woken = 1 AND (due_at IS NULL OR due_at > :at) THEN :at ELSE due_at END
     WHERE tid = :iid`,
  );
  const countAndLease = sql.prepare(
    "event.lease",
    `UPDATE ${sql.table("ticket")} AS t SET ${assignments({
      event_count: "t.event_count + 1",
      ...setOf("claim", ":at"),
    })} WHERE t.tid = :iid`,
  );
  const post = poster(sql, "event");
  return {
    transaction: true,
    *script(target, event, lease): Script<SendEventAnswer> {
      const [found] = yield instance.with({ workflow: target.workflow, id: target.id });
      if (found === undefined) return { kind: "notFound" };
      const iid = text(found, "iid");
      const [ticket] = yield lock.with({ iid, mask: waitMaskOf([event.type]) });
      if (ticket === undefined) {
        const [ended] = yield instance.with({ workflow: target.workflow, id: target.id });
        return yield* refuse(ended, event);
      }
      const runNumber = int(ticket, "run_no");
      const [clock] = yield time.with({ iid, run_no: runNumber, event_id: event.eventId });
      if (intOrNull(clock as Row, "known") !== null) return { kind: "duplicate" };
      const at = int(clock as Row, "now");
      const woken = int(ticket, "woken");
      const place: EventPlace = {
        iid,
        runNumber,
        number: int(ticket, "event_count") + 1,
        createdAt: laterThan(int(ticket, "seen_at"), at),
      };
      yield add.with({
        iid,
        run_no: runNumber,
        number: place.number,
        created_at: place.createdAt,
        event_id: event.eventId,
        type: event.type,
        payload: event.payload,
      });
      const isTaken =
        woken === 1 &&
        lease?.claimNumber === int(ticket, "claim_no") &&
        (yield alive.with({ runner: lease.runner })).length > 0;
      yield isTaken
        ? countAndLease.with({ iid, at, runner: lease.runner })
        : count.with({ iid, at, woken });
      if (woken === 1 && isHooked(clock as Row, "onWorkflowEnqueued")) {
        const id = postId.event(iid, runNumber, place.number);
        const told = { workflow: target.workflow, instanceId: target.id, runNumber };
        yield post("onWorkflowEnqueued", [{ ...told, id, reason: "event" }], at);
      }
      const claim_no = int(ticket, "claim_no") + 1;
      const { created_at } = found;
      return {
        kind: "accepted",
        woken: woken === 1,
        owner: textOrNull(ticket, "owner"),
        place,
        claimed: isTaken
          ? claimedBy(target, place, { ...ticket, claim_no, created_at, now: at })
          : null,
      };
    },
  };
}

/** The run that an event has woken, leased in the same write. */
function claimedBy({ workflow, id }: Target, { iid, number }: EventPlace, row: Row): Claimed {
  const ticket = { ...row, tid: iid, workflow, id, event_count: number };
  return toClaimed({ ...ticket, precedence: RESUMING, params: null }, int(row, "now"));
}

/** Inside a user's transaction: reads without a lock, and only inserts. */
export type PostEvent = Verb<
  [target: Target, event: NewEvent, inboxId: string, hooked: boolean],
  SendEventAnswer
>;

export function postEventVerb(sql: Sql): PostEvent {
  const refuse = refuser(sql);
  const instance = sql.prepare(
    "event.post.instance",
    readInstanceSql(sql, `, :now AS now, ${hookedColumn(sql)}`),
  );
  const post = sql.prepare(
    "event.post",
    `INSERT INTO ${sql.table("inbox")} (id, iid, run_no, event_id, kind, type, payload)
     VALUES (:inbox_id, :iid, :run_no, :event_id, 'event', :type, :payload)`,
  );
  const tell = poster(sql, "event.post");
  return {
    transaction: true,
    *script(target, event, inboxId, hooked): Script<SendEventAnswer> {
      const [found] = yield instance.with({ workflow: target.workflow, id: target.id });
      if (found === undefined || text(found, "status") !== "live") {
        return yield* refuse(found, event);
      }
      yield post.with({
        inbox_id: inboxId,
        iid: text(found, "iid"),
        run_no: int(found, "run_no"),
        event_id: event.eventId,
        type: event.type,
        payload: event.payload,
      });
      // A tick has to move it in, whatever the run is doing.
      if (hooked || isHooked(found, "onWorkflowEnqueued")) {
        const told = {
          id: postId.once("event", inboxId, text(found, "iid")),
          workflow: target.workflow,
          instanceId: target.id,
          runNumber: int(found, "run_no"),
        };
        yield tell("onWorkflowEnqueued", [{ ...told, reason: "event" }], int(found, "now"));
      }
      return { kind: "accepted", woken: false, owner: null, place: null, claimed: null };
    },
  };
}

export type InboxHolds = Verb<[], boolean>;

export function inboxHoldsVerb(sql: Sql): InboxHolds {
  const look = sql.prepare("inbox.look", `SELECT id FROM ${sql.table("inbox")} LIMIT 1`);
  return {
    transaction: false,
    *script(): Script<boolean> {
      return (yield look.with()).length > 0;
    },
  };
}

export type MoveInbox = Verb<[limit: number], number>;

/**
 * Takes inbox rows in order, numbers them under their tickets' locks, and leaves those whose ticket is held.
 * One mover at a time: two would take turns in one run's events and mix their order.
 */
export function moveInboxVerb(sql: Sql): MoveInbox {
  const alone = sql.prepare(
    "inbox.alone",
    `SELECT name FROM ${sql.table("meta")} WHERE name = 'inbox' ${sql.dialect.lockSkipping}`,
  );
  const take = sql.prepare(
    "inbox.take",
    `SELECT id, iid, run_no, event_id, kind, type, payload FROM ${sql.table("inbox")}
     ORDER BY id LIMIT :limit`,
  );
  const lock = sql.prepare(
    "inbox.lock",
    `SELECT t.tid, t.run_no, t.event_count, t.seen_at, t.state, t.wait_mask
     FROM ${sql.rows("runs", "r", { iid: "key" })} ${sql.dialect.lookUp("ticket", "t")} ON t.tid == r.iid
     ${sql.dialect.lockSkippingOf("t")}`,
  );
  const busy = sql.prepare(
    "inbox.busy",
    `SELECT t.tid FROM ${sql.rows("runs", "r", { iid: "key" })} ${sql.dialect.drivenJoin} ${sql.table("ticket")} AS t
       ON t.tid == r.iid`,
  );
  const known = sql.prepare(
    "inbox.known",
    `SELECT e.iid, e.event_id
     FROM ${sql.rows("events", "n", { iid: "key", run_no: "int", event_id: "key" })} ${sql.dialect.drivenJoin}
       ${sql.table("event")} AS e ON e.iid == n.iid AND e.run_no = n.run_no AND e.event_id = n.event_id`,
  );
  const now = sql.prepare("inbox.now", "SELECT :now AS now");
  const add = sql.prepare(
    "inbox.add",
    `INSERT INTO ${sql.table("event")} (iid, run_no, number, event_id, kind, type, payload, created_at)
     SELECT n.iid, n.run_no, n.number, n.event_id, n.kind, n.type, n.payload, n.created_at
     FROM ${sql.rows("events", "n", {
       iid: "key",
       run_no: "int",
       number: "big",
       event_id: "key",
       kind: "word",
       type: "key",
       payload: "body",
       created_at: "big",
     })}`,
  );
  const count = sql.prepare(
    "inbox.count",
    sql.dialect.updateFrom({
      table: "ticket",
      alias: "t",
      rows: sql.rows("runs", "r", { iid: "key", event_count: "big", mask: "big" }),
      on: "t.tid == r.iid",
      set: {
        due_at: `CASE WHEN ${wokenSql("r.mask")} AND (t.due_at IS NULL OR t.due_at > :at) THEN :at ELSE t.due_at END`,
        event_count: "r.event_count",
      },
    }),
  );
  const remove = sql.prepare(
    "inbox.remove",
    sql.dialect.deleteMatching({
      table: "inbox",
      key: "id",
      rows: sql.rows("taken", "r", { id: "key" }),
      matches: "r.id",
    }),
  );

  return {
    transaction: true,
    *script(limit): Script<number> {
      if ((yield alone.with()).length === 0) return 0;
      const rows = yield take.with({ limit });
      if (rows.length === 0) return 0;
      const runs = [...new Set(rows.map((row) => text(row, "iid")))].map((iid) => ({ iid }));
      const tickets = new Map((yield lock.with({ runs })).map((row) => [text(row, "tid"), row]));
      const unlocked = runs.filter(({ iid }) => !tickets.has(iid));
      const held = new Set(
        unlocked.length === 0
          ? []
          : (yield busy.with({ runs: unlocked })).map((row) => text(row, "tid")),
      );
      // What is left of a run that ended or was restarted has nowhere to go.
      const taken = rows.filter((row) => !held.has(text(row, "iid")));
      const live = taken.filter((row) => {
        const ticket = tickets.get(text(row, "iid"));
        return ticket !== undefined && int(ticket, "run_no") === int(row, "run_no");
      });
      if (live.length > 0) yield* number(live, tickets);
      if (taken.length > 0)
        yield remove.with({ taken: taken.map((row) => ({ id: text(row, "id") })) });
      return taken.length;
    },
  };

  function* number(rows: readonly Row[], tickets: ReadonlyMap<string, Row>): Script<void> {
    const key = (row: Row): string => JSON.stringify([text(row, "iid"), text(row, "event_id")]);
    const seen = new Set(
      (yield known.with({
        events: rows.map((row) => ({
          iid: text(row, "iid"),
          run_no: int(row, "run_no"),
          event_id: text(row, "event_id"),
        })),
      })).map(key),
    );
    const [clock] = yield now.with();
    const at = int(clock as Row, "now");
    const events = [];
    const counts = new Map<string, { count: number; types: string[] }>();
    for (const row of rows) {
      if (seen.has(key(row))) continue;
      seen.add(key(row));
      const iid = text(row, "iid");
      const ticket = tickets.get(iid) as Row;
      const tally = counts.get(iid) ?? { count: int(ticket, "event_count"), types: [] };
      tally.count += 1;
      tally.types.push(text(row, "type"));
      counts.set(iid, tally);
      events.push({
        iid,
        run_no: int(row, "run_no"),
        number: tally.count,
        event_id: text(row, "event_id"),
        kind: text(row, "kind"),
        type: text(row, "type"),
        payload: textOrNull(row, "payload"),
        created_at: laterThan(int(ticket, "seen_at"), at),
      });
    }
    if (events.length === 0) return;
    yield add.with({ events });
    yield count.with({
      at,
      runs: [...counts].map(([iid, { count: event_count, types }]) => ({
        iid,
        event_count,
        mask: waitMaskOf(types),
      })),
    });
  }
}

import { waitMaskOf } from "../../../model/wait-mask.js";
import { int, text, textOrNull, type Sql, type Verb } from "../../sql.js";
import type { Row, RowValues, Script } from "../../statement.js";
import { laterThan } from "./in-steps.js";
import { wokenSql } from "./text.js";

type InboxHolds = Verb<[], boolean>;

export function inboxHoldsVerb(sql: Sql): InboxHolds {
  const look = sql.prepare("inbox.look", `SELECT id FROM ${sql.table("inbox")} LIMIT 1`);
  return {
    transaction: false,
    *script(): Script<boolean> {
      return (yield look.with()).length > 0;
    },
  };
}

type MoveInbox = Verb<[limit: number], number>;

/**
 * Takes rows of the inbox in order, numbers them under their tickets' locks, and leaves those whose ticket is locked by
 * somebody else. One mover works at a time: two would take turns in one run's events and mix their order.
 */
export function moveInboxVerb(sql: Sql): MoveInbox {
  const { alone, take, lock, busy, remove } = takingStatements(sql);
  const number = numberer(sql);
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
      // The events of a run that has ended or was restarted have nowhere to go: they are taken and dropped.
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
}

function takingStatements(sql: Sql) {
  const runs = sql.rows("runs", "r", { iid: "key" });
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
     FROM ${runs} ${sql.dialect.lookUp("ticket", "t")} ON t.tid == r.iid
     ${sql.dialect.lockSkippingOf("t")}`,
  );
  const busy = sql.prepare(
    "inbox.busy",
    `SELECT t.tid FROM ${runs} ${sql.dialect.drivenJoin} ${sql.table("ticket")} AS t
       ON t.tid == r.iid`,
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
  return { alone, take, lock, busy, remove };
}

type Numberer = (rows: readonly Row[], tickets: ReadonlyMap<string, Row>) => Script<void>;

/** Adds rows of the inbox as events of their runs, whose tickets are locked. */
function numberer(sql: Sql): Numberer {
  const { known, now, add, count } = numberingStatements(sql);
  return function* (rows, tickets) {
    const seen = new Set((yield known.with({ events: rows.map(idOf) })).map(keyOf));
    const [clock] = yield now.with();
    const at = int(clock as Row, "now");
    const events: RowValues[] = [];
    const counts = new Map<string, { count: number; types: string[] }>();
    for (const row of rows) {
      if (seen.has(keyOf(row))) continue;
      seen.add(keyOf(row));
      const { iid, run_no, event_id } = idOf(row);
      const ticket = tickets.get(iid) as Row;
      const tally = counts.get(iid) ?? { count: int(ticket, "event_count"), types: [] };
      tally.count += 1;
      tally.types.push(text(row, "type"));
      counts.set(iid, tally);
      events.push({
        iid,
        run_no,
        number: tally.count,
        event_id,
        kind: text(row, "kind"),
        type: text(row, "type"),
        payload: textOrNull(row, "payload"),
        created_at: laterThan(int(ticket, "seen_at"), at),
      });
    }
    if (events.length === 0) return;
    yield add.with({ events });
    const runs = Array.from(counts, ([iid, { count: event_count, types }]) => {
      return { iid, event_count, mask: waitMaskOf(types) };
    });
    yield count.with({ at, runs });
  };
}

function idOf(row: Row): { iid: string; run_no: number; event_id: string } {
  return { iid: text(row, "iid"), run_no: int(row, "run_no"), event_id: text(row, "event_id") };
}

function keyOf(row: Row): string {
  return JSON.stringify([text(row, "iid"), text(row, "event_id")]);
}

function numberingStatements(sql: Sql) {
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
  return { known, now, add, count };
}

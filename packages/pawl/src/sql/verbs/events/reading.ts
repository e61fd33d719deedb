import type { EventRecord } from "../../../store/records.js";
import { int, intOrNull, text, textOrNull, type Sql } from "../../sql.js";
import type { Row, Script } from "../../statement.js";

type Reader = { readonly iid: string; readonly runNumber: number; readonly seenEvents: number };
export type EventReader = (runs: readonly Reader[]) => Script<Map<string, EventRecord[]>>;

/** Reads the events that each run has not seen. It must run after the tickets were locked, never in their snapshot. */
export function eventReader(sql: Sql): EventReader {
  const read = sql.prepare(
    "events.unseen",
    `SELECT e.iid, e.number, e.kind, e.type, e.payload, e.created_at, e.delivered_at, e.consumed_by
     FROM ${sql.rows("runs", "r", { iid: "key", run_no: "int", seen_events: "big" })}
       ${sql.dialect.drivenJoin} ${sql.table("event")} AS e
       ON e.iid == r.iid AND e.run_no = r.run_no AND e.number > r.seen_events`,
  );
  return function* (runs) {
    const found = new Map<string, EventRecord[]>();
    if (runs.length === 0) return found;
    const rows = yield read.with({
      runs: runs.map((run) => ({
        iid: run.iid,
        run_no: run.runNumber,
        seen_events: run.seenEvents,
      })),
    });
    for (const row of rows) {
      const iid = text(row, "iid");
      const events = found.get(iid) ?? [];
      events.push(toEvent(row));
      found.set(iid, events);
    }
    for (const events of found.values()) events.sort((a, b) => a.number - b.number);
    return found;
  };
}

export function toEvent(row: Row): EventRecord {
  return {
    number: int(row, "number"),
    kind: text(row, "kind"),
    type: text(row, "type"),
    payload: textOrNull(row, "payload"),
    createdAt: int(row, "created_at"),
    deliveredAt: intOrNull(row, "delivered_at"),
    consumedBy: intOrNull(row, "consumed_by"),
  };
}

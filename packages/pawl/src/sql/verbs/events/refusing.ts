import type { NewEvent, SendEventAnswer } from "../../../store/store.js";
import { int, Raced, text, type Sql } from "../../sql.js";
import type { Row, Script, Statement } from "../../statement.js";
import { statusOfRow } from "../status.js";

/** Reads an instance with its ticket. */
export function readInstance(sql: Sql): Statement {
  return sql.prepare("event.instance", readInstanceSql(sql));
}

export function readInstanceSql(sql: Sql, more = ""): string {
  return `SELECT i.iid, i.run_no, i.status, i.created_at, t.state, t.pause_requested${more}
    FROM ${sql.table("instance")} AS i LEFT JOIN ${sql.table("ticket")} AS t ON t.tid == i.iid
    WHERE i.workflow = :workflow AND i.id = :id`;
}

type Refuser = (found: Row | undefined, event: NewEvent) => Script<SendEventAnswer>;

/**
 * Answers for an event that cannot be added. It may have been added before: an event that is sent again succeeds, also
 * after the end of its run.
 */
export function refuser(sql: Sql): Refuser {
  // One snapshot for both tables: between two reads, the event could move from the inbox to the events.
  const known = sql.prepare(
    "event.known",
    `SELECT e.event_id FROM ${sql.table("event")} AS e
     WHERE e.iid = :iid AND e.run_no = :run_no AND e.event_id = :event_id
     UNION ALL SELECT n.event_id FROM ${sql.table("inbox")} AS n
     WHERE n.iid = :iid AND n.run_no = :run_no AND n.event_id = :event_id`,
  );
  return function* (found, event) {
    if (found === undefined) return { kind: "notFound" };
    // A restart replaced the ticket while we waited for the lock on the old one.
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

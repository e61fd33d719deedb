import type { Lane } from "../../store/store.js";
import { int, intOrNull, type Sql, type Verb } from "../sql.js";
import type { Script } from "../statement.js";

export type NextDue = Verb<[lanes: readonly Lane[]], number | null>;

/** Work that needs no waiting (an inbox to move, a dead runner's tickets) answers 0. */
export function nextDueVerb(sql: Sql): NextDue {
  const ticket = sql.table("ticket");
  const first = (klass: number): string =>
    `(SELECT t.due_at FROM ${ticket} AS t ${sql.dialect.throughIndex("ticket_due")}
      WHERE t.queue = l.queue AND t.handler = l.handler AND t.class = ${klass} AND t.due_at IS NOT NULL
      ORDER BY t.due_at LIMIT 1)`;
  const read = sql.prepare(
    "next.due",
    `SELECT ${first(0)} AS resuming, ${first(1)} AS fresh, :now AS now,
       CASE WHEN EXISTS (SELECT 1 FROM ${sql.table("runner")} AS r ${sql.dialect.drivenJoin} ${ticket} AS t ${sql.dialect.throughIndex("ticket_owner")}
           ON t.owner = r.id
         WHERE r.dead = 1 AND t.queue = l.queue AND t.handler = l.handler) THEN 1 ELSE 0 END AS orphaned
     FROM ${sql.rows("lanes", "l", { queue: "key", handler: "key" })}`,
  );
  const inbox = sql.prepare("next.inbox", `SELECT id FROM ${sql.table("inbox")} LIMIT 1`);
  return {
    transaction: false,
    *script(lanes): Script<number | null> {
      if ((yield inbox.with()).length > 0) return 0;
      if (lanes.length === 0) return null;
      const rows = yield read.with({
        lanes: lanes.map(({ queue, handler }) => ({ queue, handler })),
      });
      const waits = rows.flatMap((row) => {
        if (int(row, "orphaned") === 1) return [0];
        const due = [intOrNull(row, "resuming"), intOrNull(row, "fresh")].filter(
          (at) => at !== null,
        );
        return due.map((at) => Math.max(0, at - int(row, "now")));
      });
      return waits.length === 0 ? null : Math.min(...waits);
    },
  };
}

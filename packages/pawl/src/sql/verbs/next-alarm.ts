import type { HookName } from "../../model/hooks.js";
import type { DbTime } from "../../store/records.js";
import type { Lane } from "../../store/store.js";
import { int, intOrNull, type Sql } from "../sql.js";
import type { Row, Script } from "../statement.js";
import { NEW, RESUMING } from "./claim.js";
import { firstDue } from "./next-due.js";

/** `at` is null if nothing will ever be due. `busy` tells that runs are leased to a runner that counts as alive. */
export type NextAlarm = {
  readonly now: DbTime;
  readonly at: DbTime | null;
  readonly busy: boolean;
};

type NextAlarmScript = (lanes: readonly Lane[], hooks: readonly HookName[]) => Script<NextAlarm>;

/** Tells when something will be due, in one statement, since it follows every write of a Durable Object. */
export function nextAlarmScript(sql: Sql): NextAlarmScript {
  const [runner, ticket, inbox, outbox] = (["runner", "ticket", "inbox", "outbox"] as const).map(
    (name) => sql.table(name),
  );
  const lanes = sql.keys("lanes", "l", { queue: "key", handler: "key" });
  const hooks = sql.keys("hooks", "h", { name: "key" });
  const ownedBy = (state: string): string =>
    `${runner} AS r CROSS JOIN ${ticket} AS t ON t.owner = r.id WHERE r.dead = ${state}`;
  const look = sql.prepare(
    "next.alarm",
    `SELECT :now AS now, EXISTS (SELECT 1 FROM ${ownedBy("0")}) AS busy, (SELECT MIN(at) FROM (
         SELECT ${firstDue(sql, "l.queue", "l.handler", RESUMING, "0")} AS at FROM ${lanes}
         UNION ALL SELECT ${firstDue(sql, "l.queue", "l.handler", NEW, "0")} FROM ${lanes}
         UNION ALL SELECT 0 FROM ${lanes} WHERE EXISTS (
           SELECT 1 FROM ${ownedBy("1")} AND t.queue = l.queue AND t.handler = l.handler)
         UNION ALL SELECT 0 WHERE EXISTS (SELECT 1 FROM ${inbox})
         UNION ALL SELECT (SELECT o.due_at FROM ${outbox} AS o WHERE o.hook = h.name AND o.due_at >= 0
           ORDER BY o.due_at LIMIT 1) FROM ${hooks})) AS at`,
  );
  return function* script(known, names) {
    const rows = yield look.with({
      lanes: known.map(({ queue, handler }) => ({ queue, handler })),
      hooks: names.map((name) => ({ name })),
    });
    const row = rows[0] as Row;
    return { now: int(row, "now"), at: intOrNull(row, "at"), busy: int(row, "busy") === 1 };
  };
}

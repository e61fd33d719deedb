import type { Lane } from "../../store/store.js";
import { int, intOrNull, type Sql, type Verb } from "../sql.js";
import type { Call, Script, Statement } from "../statement.js";
import { NEW, RESUMING, type LowWater } from "./claim.js";
import { inboxHoldsVerb } from "./events/inbox.js";

export type NextDue = Verb<[lanes: readonly Lane[], from: LowWater], number | null>;

/**
 * Answers 0 if there is work at once: an inbox to move, or tickets of a dead runner. Without lanes there is no work.
 */
export function nextDueVerb(sql: Sql): NextDue {
  const inboxHolds = inboxHoldsVerb(sql);
  const reading = sql.dialect.rangesFromRows ? byRows(sql) : byConstants(sql);
  return {
    transaction: false,
    *script(lanes, from): Script<number | null> {
      if (lanes.length === 0) return null;
      if (yield* inboxHolds.script()) return 0;
      const rows = yield reading(lanes, { low_resuming: from.resuming, low_fresh: from.fresh });
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

type Lows = { readonly low_resuming: number; readonly low_fresh: number };
type Reading = (lanes: readonly Lane[], lows: Lows) => Call;

function byRows(sql: Sql): Reading {
  const read = sql.prepare(
    "next.due",
    `${selectLane(sql, "l.queue", "l.handler")} FROM ${sql.rows("lanes", "l", { queue: "key", handler: "key" })}`,
  );
  return (lanes, lows) =>
    read.with({ lanes: lanes.map(({ queue, handler }) => ({ queue, handler })), ...lows });
}

/** One branch for each lane, where a lane out of a row would not be read as a range of the index. */
function byConstants(sql: Sql): Reading {
  const byCount = new Map<number, Statement>();
  const statementFor = (lanes: number): Statement => {
    const known = byCount.get(lanes);
    if (known !== undefined) return known;
    const branches = Array.from({ length: lanes }, (_, n) =>
      selectLane(sql, `:queue${n}`, `:handler${n}`),
    );
    const statement = sql.prepare(`next.due.${lanes}`, branches.join(" UNION ALL "));
    byCount.set(lanes, statement);
    return statement;
  };
  return (lanes, lows) =>
    statementFor(lanes.length).with({
      ...Object.fromEntries(
        lanes.flatMap(({ queue, handler }, n) => [
          [`queue${n}`, queue],
          [`handler${n}`, handler],
        ]),
      ),
      ...lows,
    });
}

function selectLane(sql: Sql, queue: string, handler: string): string {
  return `SELECT ${firstDue(sql, queue, handler, RESUMING, ":low_resuming")} AS resuming,
    ${firstDue(sql, queue, handler, NEW, ":low_fresh")} AS fresh, :now AS now,
    CASE WHEN EXISTS (SELECT 1 FROM ${sql.table("runner")} AS r ${sql.dialect.drivenJoin} ${sql.table("ticket")} AS t ${sql.dialect.throughIndex("ticket_owner")}
        ON t.owner == r.id
      WHERE r.dead = 1 AND t.queue = ${queue} AND t.handler = ${handler}) THEN 1 ELSE 0 END AS orphaned`;
}

/** An expression for the earliest due time, from `low` on, of a lane's tickets of a class, if there is one. */
export function firstDue(
  sql: Sql,
  queue: string,
  handler: string,
  klass: number,
  low: string,
): string {
  return `(SELECT t.due_at FROM ${sql.table("ticket")} AS t ${sql.dialect.throughIndex("ticket_due")}
    WHERE t.queue = ${queue} AND t.handler = ${handler} AND t.class = ${klass} AND t.due_at >= ${low}
    ORDER BY t.due_at LIMIT 1)`;
}

import type { Lane } from "../../store/store.js";
import { int, intOrNull, text, type Sql, type Verb } from "../sql.js";
import type { Script } from "../statement.js";
import { NEW, RESUMING } from "./claim.js";
import { firstDue } from "./next-due.js";

type UnknownLanes = Verb<[known: readonly Lane[]], Lane[]>;

/** How many unknown lanes are looked at, and how many tickets of dead runners in each queue. */
const MAX_LANES = 100;
const MAX_ORPHANS = 1_000;

/** Goes from lane to lane with one seek each, however many tickets a lane has. */
export function unknownLanesVerb(sql: Sql): UnknownLanes {
  const ticket = sql.table("ticket");
  const through = sql.dialect.throughIndex("ticket_due");
  const claimable = sql.dialect.partialIndexes ? "AND t.due_at IS NOT NULL" : "";
  const next = sql.prepare(
    "unknown.next",
    `SELECT t.handler FROM ${ticket} AS t ${through}
     WHERE t.queue = :queue AND t.handler > :after ${claimable} ORDER BY t.handler LIMIT 1`,
  );
  const first = (klass: number): string => firstDue(sql, ":queue", ":handler", klass, "0");
  const due = sql.prepare(
    "unknown.due",
    `SELECT ${first(RESUMING)} AS resuming, ${first(NEW)} AS fresh, :now AS now`,
  );
  const orphans = sql.prepare(
    "unknown.orphans",
    `SELECT t.handler
     FROM ${sql.table("runner")} AS r ${sql.dialect.drivenJoin} ${ticket} AS t ${sql.dialect.throughIndex("ticket_owner")}
       ON t.owner == r.id
     WHERE r.dead = 1 AND t.queue = :queue LIMIT ${MAX_ORPHANS}`,
  );

  function* isDue(lane: Lane): Script<boolean> {
    const [row] = yield due.with(lane);
    if (row === undefined) return false;
    const times = [intOrNull(row, "resuming"), intOrNull(row, "fresh")];
    return times.some((at) => at !== null && at <= int(row, "now"));
  }

  return {
    transaction: false,
    *script(known): Script<Lane[]> {
      const isKnown = new Set(known.map(keyOf));
      const found = new Map<string, Lane>();
      let looks = 0;
      for (const queue of new Set(known.map((lane) => lane.queue))) {
        for (const row of yield orphans.with({ queue })) {
          const lane = { queue, handler: text(row, "handler") };
          if (!isKnown.has(keyOf(lane))) found.set(keyOf(lane), lane);
        }
        let after = "";
        while (looks < MAX_LANES) {
          const [row] = yield next.with({ queue, after });
          if (row === undefined) break;
          after = text(row, "handler");
          const lane = { queue, handler: after };
          if (isKnown.has(keyOf(lane))) continue;
          looks += 1;
          if (!found.has(keyOf(lane)) && (yield* isDue(lane))) found.set(keyOf(lane), lane);
        }
      }
      return [...found.values()].slice(0, MAX_LANES);
    },
  };
}

function keyOf({ queue, handler }: Lane): string {
  return JSON.stringify([queue, handler]);
}

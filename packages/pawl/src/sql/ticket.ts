import {
  edges,
  type EdgeName,
  type Filling,
  type TicketEdge,
  type TicketState,
} from "../model/ticket.js";

/*
 * The edges of a ticket as SQL. `t` is the ticket, `p` the part that a commit writes, `i` the instance. Conditions stay
 * the text of their statements; this file alone writes `state`.
 */

/** The states as SQL literals, for conditions. */
export const stateWord: { readonly [S in TicketState]: string } = {
  queued: "'queued'",
  waiting: "'waiting'",
  leased: "'leased'",
  paused: "'paused'",
};

function isOneOf(column: string, words: readonly string[]): string {
  return words.length === 1
    ? `${column} = '${words[0]}'`
    : `${column} IN (${words.map((word) => `'${word}'`).join(", ")})`;
}

/** The assignments of an edge, in their order. MySQL carries them out one by one, each seeing those before it. */
export function setOf(edge: EdgeName, now: string): Record<string, string> {
  const { set }: TicketEdge = edges[edge];
  return Object.fromEntries(
    Object.entries(set).map(([column, filling]) => [column, sqlOf(column, filling, now)]),
  );
}

export function assignments(set: Readonly<Record<string, string>>): string {
  return Object.entries(set)
    .map(([column, expression]) => `${column} = ${expression}`)
    .join(", ");
}

/** The columns and values of a row that an edge inserts, beside those that tell the run. */
export function birthOf(edge: EdgeName, now: string): { columns: string; values: string } {
  const set = setOf(edge, now);
  return { columns: Object.keys(set).join(", "), values: Object.values(set).join(", ") };
}

/**
 * A takeover where the condition holds, else a claim. MySQL must evaluate the condition before it assigns the owner.
 */
export function claimOrTakeOver(isTakeover: string, now: string): Record<string, string> {
  const claim = setOf("claim", now);
  return Object.fromEntries(
    Object.entries(setOf("takeOver", now)).map(([column, taken]) => {
      const claimed = claim[column] ?? `t.${column}`;
      const either = `CASE WHEN ${isTakeover} THEN ${taken} ELSE ${claimed} END`;
      return [column, taken === claimed ? taken : either];
    }),
  );
}

function sqlOf(column: string, filling: Filling, now: string): string {
  if (typeof filling === "number") return String(filling);
  switch (filling) {
    case null:
      return "NULL";
    case "queued":
    case "waiting":
    case "leased":
    case "paused":
      return stateWord[filling];
    case ":now":
      return now;
    case ":latest":
      return `CASE WHEN t.${column} > ${now} THEN t.${column} ELSE ${now} END`;
    case ":first":
      return `COALESCE(t.${column}, ${now})`;
    case ":runner":
      return ":runner";
    case ":next":
      return `t.${column} + 1`;
    case ":part":
      return `p.${column}`;
    case ":partOrKept":
      return `COALESCE(p.${column}, t.${column})`;
    case ":wake":
      return `COALESCE(p.wake_at, ${now} + p.wake_in)`;
    case ":instance":
      return `i.${column}`;
  }
}

/**
 * How a fenced part ends: the first condition that holds decides. A pause beats a park, an unseen event beats parking,
 * and an end beats all. A park that the ticket has seen was refused then, and stays refused whatever was asked since.
 */
export const endings = [
  [["complete", "fail"], "p.next IN ('complete', 'fail')"],
  [["goOn"], "t.part_no >= p.part_no"],
  [["pauseAtBoundary"], "p.next IN ('park', 'release') AND t.pause_requested = 1"],
  [["goOn"], "p.next = 'park' AND t.event_count > p.seen_events"],
  [["park"], "p.next = 'park'"],
  [["release"], "p.next = 'release'"],
] as const satisfies readonly (readonly [readonly EdgeName[], string])[];

type CommitEdge = (typeof endings)[number][0][number];

/** The edges by which a commit writes a ticket that stays, in the order of the model. */
const kept = (Object.keys(edges) as CommitEdge[]).filter(
  (name) =>
    endings.some(([made]) => (made as readonly EdgeName[]).includes(name)) &&
    edges[name].row === "updated",
);

/** The state in which a part leaves its ticket; a finished run has none. */
export type Becomes = TicketState | "finished";

function becomes(edge: CommitEdge): Becomes {
  const { set } = edges[edge];
  return "state" in set ? set.state : "finished";
}

export const becomesSql = `CASE
  ${endings.map(([[edge], condition]) => `WHEN ${condition} THEN '${becomes(edge)}'`).join(" ")}
  ELSE '${becomes("goOn")}' END`;

/**
 * The assignments of a part to its ticket, for whichever edge `p.becomes` tells. A part that is progress writes none.
 */
export function endTurnSet(now: string): Record<string, string> {
  const sets = kept.map((edge) => [becomes(edge), setOf(edge, now)] as const);
  if (new Set(sets.map(([state]) => state)).size < sets.length) {
    throw new Error(
      "two edges of a commit leave the ticket in the same state: `becomes` cannot tell them apart",
    );
  }
  const columns = new Set(sets.flatMap(([, set]) => Object.keys(set)));
  const set = Array.from(columns, (column) => {
    const byValue = new Map<string, string[]>();
    for (const [state, { [column]: value = `t.${column}` }] of sets) {
      byValue.set(value, [...(byValue.get(value) ?? []), state]);
    }
    return [column, byState([...byValue])];
  });
  return { ...Object.fromEntries(set), state: "p.becomes" };
}

/** A value by the state in which the ticket will be left; the value for most of the states is the ELSE. */
function byState(values: readonly (readonly [value: string, states: readonly string[]])[]): string {
  const sorted = values.toSorted(([, a], [, b]) => a.length - b.length);
  const [otherwise] = sorted.at(-1) as (typeof values)[number];
  if (sorted.length === 1) return otherwise;
  const branches = sorted
    .slice(0, -1)
    .map(([value, states]) => `WHEN ${isOneOf("p.becomes", states)} THEN ${value}`);
  return `CASE ${branches.join(" ")} ELSE ${otherwise} END`;
}

/**
 * Whether a part writes its ticket. A part that has to do with the ticket leaves its number there, a refused park
 * nothing else: sent again it counts no more, not even late. A finished ticket is deleted: written too, in the same
 * statement, one of both would silently not happen.
 */
export const writesTicketSql = `(p.becomes <> 'finished' AND t.part_no < p.part_no
  AND (p.next <> 'continue' OR p.takeovers IS NOT NULL))`;

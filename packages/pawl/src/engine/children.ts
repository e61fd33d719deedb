import { fnv1a } from "../model/hash.js";
import type { ChildOrigin } from "../model/target.js";
import type { Attempt } from "./attempt.js";

/** Counts the children that one body has created, by the id that the body asked for. */
export type ChildCounts = Map<string, number>;

/**
 * Names the origin of a run's next child. An origin says which run, which step, and which of the step's children it is. A
 * body that is tried again, or code that is replayed, names the same origins, and so creates each child once. A child with
 * an id has the same origin whenever the code asks for that id. The others are told apart by their order.
 *
 * `attempt` is the one whose body is calling; outside of bodies, which is null, `outside` counts.
 */
export function nextOrigin(
  { iid, runNumber }: { readonly iid: string; readonly runNumber: number },
  attempt: Attempt | null,
  outside: ChildCounts,
  named: string | null,
): ChildOrigin {
  const place = attempt === null ? "0" : hash(`${attempt.step.count} ${attempt.step.name}`);
  const nth = countUp(attempt?.children ?? outside, named ?? "");
  const which = named === null ? `${nth}` : `${hash(named)}-${nth}`;
  const origin = `${iid}-${runNumber}-${place}-${which}`;
  // An id must not begin with a hyphen, but an internal id may.
  return { origin, id: `c${origin}` };
}

function countUp(counts: ChildCounts, what: string): number {
  const count = (counts.get(what) ?? 0) + 1;
  counts.set(what, count);
  return count;
}

/** Returns 64 bits: two FNV-1a hashes with different seeds. They are enough to tell apart the steps of one run. */
function hash(text: string): string {
  return [0x811c9dc5, 0x01234567].map((seed) => fnv1a(text, seed).toString(36)).join("");
}

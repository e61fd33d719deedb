import type { DbTime, EventRecord } from "../store/records.js";
import type { Wake } from "../store/store.js";
import type { Step } from "./step.js";

/** A wait that is over: by an event, or by its time. */
export type Ended = { readonly step: Step; readonly event: EventRecord | null };

export type Times = {
  /** The latest time that the database has told. */
  readonly now: DbTime;
  /** The time of the last look that fetched all events up to it: the store gives later ones a later time. */
  readonly lookedAt: DbTime;
};

/**
 * Which waits are over, in the order in which that happened.
 *
 * Events go by number to the waiter that called first. An event that was there in time beats the deadline even if
 * we look late, and one that came later never counts.
 */
export function endedWaits(
  waits: readonly Step[],
  events: readonly EventRecord[],
  times: Times,
): Ended[] {
  const ended: (Ended & { readonly at: DbTime })[] = [];
  const open = new Set(waits.filter((step) => step.type === "waitForEvent"));
  for (const event of events) {
    for (const step of open) {
      if (step.eventType !== event.type || step.timesOutAtOnce) continue;
      if (step.wakeAt !== null && event.createdAt > step.wakeAt) continue;
      open.delete(step);
      ended.push({ step, event, at: event.createdAt });
      break;
    }
  }
  for (const step of waits) {
    if (step.type === "waitForEvent" && !open.has(step)) continue;
    const now = step.type === "waitForEvent" ? times.lookedAt : times.now;
    if (isOver(step, now)) ended.push({ step, event: null, at: step.wakeAt ?? now });
  }
  return ended.toSorted((a, b) => a.at - b.at || a.step.ord - b.step.ord);
}

function isOver(step: Step, now: DbTime): boolean {
  if (step.timesOutAtOnce) return true;
  if (step.wakeAt !== null) return step.wakeAt <= now;
  // A sleep of no length, or until a time that is past, is over before it is registered.
  if (step.wake === null || step.type !== "sleep") return false;
  return "at" in step.wake ? step.wake.at <= now : step.wake.inMs === 0;
}

/**
 * When to look again: the first end of these waits. Not later than the true one; `now` is a time that is
 * certainly past when the database computes it.
 */
export function earliestWake(waits: Iterable<Step>, now: DbTime): Wake | null {
  let at = Infinity;
  let inMs = Infinity;
  for (const { wakeAt, wake } of waits) {
    if (wakeAt !== null) at = Math.min(at, wakeAt);
    else if (wake !== null && "at" in wake) at = Math.min(at, wake.at);
    else if (wake !== null) inMs = Math.min(inMs, wake.inMs);
  }
  if (at === Infinity) return inMs === Infinity ? null : { inMs };
  return { at: Math.min(at, now + inMs) };
}

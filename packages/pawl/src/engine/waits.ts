import type { DbTime, EventRecord } from "../store/records.js";
import type { Wake } from "../store/store.js";
import { waitMaskOf } from "../store/wait-mask.js";
import type { Step } from "./step.js";

/** What a run waits for, and the times and events that the database has told. */
export class Waits {
  /** In the order of their calls. */
  readonly #steps = new Set<Step>();
  /** Unconsumed, in order. */
  #events: EventRecord[];
  #seenEvents: number;
  #now: DbTime;
  #lookedAt: DbTime;

  constructor(now: DbTime, events: readonly EventRecord[], seenEvents: number) {
    this.#now = now;
    this.#lookedAt = now;
    this.#events = [...events];
    this.#seenEvents = seenEvents;
  }

  /** The latest time that the database told. */
  get now(): DbTime {
    return this.#now;
  }

  /** The number of the last event that came. */
  get seenEvents(): number {
    return this.#seenEvents;
  }

  get count(): number {
    return this.#steps.size;
  }

  has(step: Step): boolean {
    return this.#steps.has(step);
  }

  add(step: Step): void {
    const { wake } = step;
    if (wake !== null) step.endsNotBefore = "at" in wake ? wake.at : this.#now + wake.inMs;
    this.#steps.add(step);
  }

  /** The database told its time. */
  heard(now: DbTime): void {
    this.#now = Math.max(this.#now, now);
  }

  /** All events up to this time were fetched, or are with `take`. */
  looked(at: DbTime): void {
    this.heard(at);
    this.#lookedAt = Math.max(this.#lookedAt, at);
  }

  take(events: readonly EventRecord[]): void {
    const fresh = events.filter(({ number }) => number > this.#seenEvents);
    this.#events.push(...fresh);
    this.#seenEvents = Math.max(this.#seenEvents, fresh.at(-1)?.number ?? 0);
  }

  /** Those that are over, in the order in which that happened: they wait no more, and their events are used up. */
  end(): EndedWait[] {
    if (this.#steps.size === 0) return [];
    const times = { now: this.#now, lookedAt: this.#lookedAt };
    const ended = endedWaits([...this.#steps], this.#events, times);
    for (const { step } of ended) this.#steps.delete(step);
    const used = new Set(ended.map(({ event }) => event));
    if (used.size > 0) this.#events = this.#events.filter((event) => !used.has(event));
    return ended;
  }

  /** When the first of them ends; null if none will by time. */
  get wake(): Wake | null {
    return earliestWake(this.#steps, this.#now);
  }

  get mask(): number {
    return waitMaskOf([...this.#steps].flatMap(({ eventType }) => eventType ?? []));
  }
}

/** A wait that is over: by an event, or by its time. */
export type EndedWait = { readonly step: Step; readonly event: EventRecord | null };

type Times = {
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
function endedWaits(
  waits: readonly Step[],
  events: readonly EventRecord[],
  times: Times,
): EndedWait[] {
  const ended: (EndedWait & { readonly at: DbTime })[] = [];
  const open = new Set(waits.filter((step) => step.type === "waitForEvent"));
  for (const event of events) {
    for (const step of open) {
      if (step.eventType !== event.type || step.timesOutAtOnce) continue;
      // Whether a later one is in time is known when the answer tells when the wait ends.
      if (event.createdAt > (step.wakeAt ?? step.endsNotBefore)) continue;
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
function earliestWake(waits: Iterable<Step>, now: DbTime): Wake | null {
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

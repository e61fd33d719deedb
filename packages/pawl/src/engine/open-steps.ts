import type { DbTime, EventRecord } from "../store/records.js";
import type { Wake } from "../model/wake.js";
import { waitMaskOf } from "../model/wait-mask.js";
import type { OpenStep, Step } from "./step.js";

/** A wait that has ended, either by an event or by its time. */
type EndedWait = { readonly step: Step; readonly event: EventRecord | null };

/**
 * The steps that the code has called and that are neither settled nor running. They are ready to start, or they wait.
 * This also keeps the times and events that the database has told, because they decide when a wait is over.
 */
export class OpenSteps {
  /** The steps that were called and have not begun, in the order of their calls. */
  readonly ready = new Set<Step>();
  /** The steps that wait, in the order of their calls. */
  readonly waiting = new Set<Step>();
  /** The latest time that the database has told. */
  now: DbTime;
  /** The number of the last event that came. */
  seenEvents: number;
  /** The time up to which all events have come. The store gives later events a later time. */
  #polledAt: DbTime;
  /** The events that are not consumed yet, in the order of their numbers. */
  #events: EventRecord[];

  constructor(now: DbTime, events: readonly EventRecord[], seenEvents: number) {
    this.now = now;
    this.#polledAt = now;
    this.#events = [...events];
    this.seenEvents = seenEvents;
  }

  wait(step: Step): void {
    const open = step.open as OpenStep;
    const { wake } = open;
    if (wake !== null) open.endsNotBefore = "at" in wake ? wake.at : this.now + wake.inMs;
    this.waiting.add(step);
  }

  /** Returns what the step is doing. Its row is written accordingly. */
  doing(step: Step): "waiting" | "resting" | "running" {
    if (this.waiting.has(step)) return "waiting";
    return this.ready.has(step) ? "resting" : "running";
  }

  /** Notes a time that the database has told. */
  heard(now: DbTime): void {
    if (now > this.now) this.now = now;
  }

  /** Notes that all events up to this time have come, or come with `take`. */
  polled(at: DbTime): void {
    this.heard(at);
    this.#polledAt = Math.max(this.#polledAt, at);
  }

  /** Keeps the events that have not come before. Returns false if they are not in the order of their numbers. */
  take(events: readonly EventRecord[]): boolean {
    let last = 0;
    for (const event of events) {
      if (event.number <= last) return false;
      last = event.number;
      if (last <= this.seenEvents) continue;
      this.#events.push(event);
      this.seenEvents = last;
    }
    return true;
  }

  /** Removes the waits that are over. Returns them with their events, in the order in which they ended. */
  endWaits(): readonly EndedWait[] {
    if (this.waiting.size === 0) return nothing;
    const ended = endedWaits(this.waiting, this.#events, this.now, this.#polledAt);
    if (ended.length === 0) return nothing;
    for (const { step } of ended) this.waiting.delete(step);
    const used = new Set(ended.map(({ event }) => event));
    this.#events = this.#events.filter((event) => !used.has(event));
    return ended;
  }

  /**
   * When the first wait ends; null if no wait ends by time. It is never later than the true end, because `now` is
   * certainly past when the database computes that end.
   */
  get wake(): Wake | null {
    let at = Infinity;
    let inMs = Infinity;
    for (const step of this.waiting) {
      const { wakeAt, wake } = step.open as OpenStep;
      if (wakeAt !== null) at = Math.min(at, wakeAt);
      else if (wake !== null && "at" in wake) at = Math.min(at, wake.at);
      else if (wake !== null) inMs = Math.min(inMs, wake.inMs);
    }
    if (at === Infinity) return inMs === Infinity ? null : { inMs };
    return { at: Math.min(at, this.now + inMs) };
  }

  /** When the first wait ends, if its end is registered. It is now if a body is ready to start. */
  get wakeAt(): DbTime | null {
    if (this.ready.size > 0) return this.now;
    const { wake } = this;
    return wake !== null && "at" in wake ? wake.at : null;
  }

  /** The types of events that may wake the run. */
  get waitMask(): number {
    const keys: string[] = [];
    for (const step of this.waiting) {
      const { waitKey } = step.open as OpenStep;
      if (waitKey !== null) keys.push(waitKey);
    }
    return waitMaskOf(keys);
  }
}

const nothing: readonly EndedWait[] = [];

/**
 * Returns the waits that are over, in the order in which they ended.
 *
 * Each event, by number, goes to the step that called first. An event that arrived in time beats the deadline even if
 * the run sees it late. An event that arrived after the deadline never counts.
 */
function endedWaits(
  waiting: ReadonlySet<Step>,
  events: readonly EventRecord[],
  now: DbTime,
  polledAt: DbTime,
): EndedWait[] {
  const ended: (EndedWait & { readonly at: DbTime })[] = [];
  const served = events.length === 0 ? none : serve(waiting, events, ended);
  for (const step of waiting) {
    if (served.has(step)) continue;
    const until = step.kind.takesEvents ? polledAt : now;
    if (!isOver(step, until)) continue;
    ended.push({ step, event: null, at: (step.open as OpenStep).wakeAt ?? until });
  }
  return ended.toSorted((a, b) => a.at - b.at || a.step.ord - b.step.ord);
}

/** Gives each event to the first step that waits for it. Returns the steps that got one. */
function serve(
  waiting: ReadonlySet<Step>,
  events: readonly EventRecord[],
  ended: (EndedWait & { readonly at: DbTime })[],
): ReadonlySet<Step> {
  const served = new Set<Step>();
  const takers = new Set<Step>();
  for (const step of waiting) if (step.kind.takesEvents) takers.add(step);
  for (const event of events) {
    for (const step of takers) {
      const { waitKey, endsAs, wakeAt, endsNotBefore } = step.open as OpenStep;
      if (waitKey !== event.type || endsAs !== null) continue;
      // Whether a later event is in time is known once the database has told when the wait ends.
      if (event.createdAt > (wakeAt ?? endsNotBefore)) continue;
      takers.delete(step);
      served.add(step);
      ended.push({ step, event, at: event.createdAt });
      break;
    }
  }
  return served;
}

const none: ReadonlySet<Step> = new Set();

function isOver(step: Step, now: DbTime): boolean {
  const { endsAs, wakeAt, wake } = step.open as OpenStep;
  if (endsAs !== null) return true;
  if (wakeAt !== null) return wakeAt <= now;
  if (wake === null || !step.kind.mayEndUnregistered) return false;
  return "at" in wake ? wake.at <= now : wake.inMs === 0;
}

import type { Cancel, Runtime } from "../model/seams.js";
import { webRuntime } from "../runtime.js";
import { ManualClock } from "./clock.js";

type Timer = { readonly at: number; readonly order: number; readonly callback: () => void };

/** Real patience under a test clock is short: tests await the outside world rarely, and never for long. */
const MAX_GRACE_MS = 100;

/** A clock whose timers fire when it is moved. */
export class VirtualTime extends ManualClock {
  readonly #timers = new Set<Timer>();
  #order = 0;

  after(ms: number, callback: () => void): Cancel {
    const timer = { at: this.now() + Math.max(0, Math.ceil(ms)), order: this.#order++, callback };
    this.#timers.add(timer);
    return () => void this.#timers.delete(timer);
  }

  /** The next timer up to a time, taken out; the clock moves to it. */
  takeNext(upTo: number): Timer | null {
    let next: Timer | null = null;
    for (const timer of this.#timers) {
      if (timer.at > upTo) continue;
      const isEarlier = next === null || timer.at < next.at;
      if (isEarlier || (timer.at === next?.at && timer.order < next.order)) next = timer;
    }
    if (next === null) return null;
    this.#timers.delete(next);
    this.set(Math.max(this.now(), next.at));
    return next;
  }

  runtime(): Runtime {
    return {
      ...webRuntime,
      clock: this,
      scheduler: {
        after: (ms, callback) => this.after(ms, callback),
        sleep: (ms) => new Promise((resolve) => void this.after(ms, resolve)),
        grace: (ms, callback) => webRuntime.scheduler.after(Math.min(ms, MAX_GRACE_MS), callback),
        stride: () => webRuntime.scheduler.stride(),
        macrotask: (callback) => webRuntime.scheduler.macrotask(callback),
        round: (callback) => webRuntime.scheduler.round(callback),
      },
    };
  }
}

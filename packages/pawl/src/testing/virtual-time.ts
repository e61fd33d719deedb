import type { Cancel, Runtime } from "../model/seams.js";
import { webRuntime } from "../runtime.js";
import { ManualClock } from "./clock.js";

type Timer = { readonly at: number; readonly order: number; readonly callback: () => void };

/** The longest wait in real time under a test clock: tests await the outside world rarely, and never for long. */
const MAX_GRACE_MS = 100;

/** A clock with timers that fire when it is moved. Make a store on it to share it with a harness. */
export class VirtualTime extends ManualClock {
  readonly #timers = new Set<Timer>();
  #order = 0;

  /** Calls back when the clock has moved by this many milliseconds, unless the returned function cancels it first. */
  after(ms: number, callback: () => void): Cancel {
    const timer = { at: this.now() + Math.max(0, Math.ceil(ms)), order: this.#order++, callback };
    this.#timers.add(timer);
    return () => void this.#timers.delete(timer);
  }

  /**
   * Moves the clock to the next timer that is due by `upTo`, and takes that timer out. Returns null if there is none.
   */
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

  /** Returns a runtime whose clock and timers go by this time. */
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

import { membersOf, type Signal } from "../model/abort.js";
import type { Scheduler } from "../model/seams.js";
import { targetKey, type Ended, type Target } from "../store/records.js";

/** Those in this process who wait for a run to end. Without its outcome it is a hint: they look for themselves. */
export class FinishWaiters {
  readonly #scheduler: Scheduler;
  readonly #waiters = new Map<string, Set<(ended: Ended | null) => void>>();

  constructor(scheduler: Scheduler) {
    this.#scheduler = scheduler;
  }

  wait(target: Target, ms: number, signal?: Signal): Promise<Ended | null> {
    const abort = signal === undefined ? null : membersOf(signal);
    if (abort?.aborted === true) return Promise.resolve(null);
    const key = targetKey(target);
    const waiters = this.#waiters.get(key) ?? new Set();
    this.#waiters.set(key, waiters);
    return new Promise((resolve) => {
      const done = (ended: Ended | null): void => {
        cancel();
        abort?.removeEventListener("abort", giveUp);
        waiters.delete(done);
        if (waiters.size === 0 && this.#waiters.get(key) === waiters) this.#waiters.delete(key);
        resolve(ended);
      };
      const giveUp = (): void => done(null);
      const cancel = this.#scheduler.after(ms, giveUp);
      abort?.addEventListener("abort", giveUp);
      waiters.add(done);
    });
  }

  tell(target: Target, ended: Ended | null): void {
    for (const done of this.#waiters.get(targetKey(target)) ?? []) done(ended);
  }

  /** Any of them may have missed something. */
  tellAll(): void {
    for (const waiters of this.#waiters.values()) for (const done of waiters) done(null);
  }
}

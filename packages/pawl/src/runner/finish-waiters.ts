import { membersOf, type Signal } from "../model/abort.js";
import type { Scheduler } from "../model/seams.js";
import type { Target } from "../store/records.js";

/** Those in this process who wait for a run to end. A hint: they look for themselves. */
export class FinishWaiters {
  readonly #scheduler: Scheduler;
  readonly #waiters = new Map<string, Set<() => void>>();

  constructor(scheduler: Scheduler) {
    this.#scheduler = scheduler;
  }

  wait(target: Target, ms: number, signal?: Signal): Promise<void> {
    const abort = signal === undefined ? null : membersOf(signal);
    if (abort?.aborted === true) return Promise.resolve();
    const key = targetKey(target);
    const waiters = this.#waiters.get(key) ?? new Set();
    this.#waiters.set(key, waiters);
    return new Promise((resolve) => {
      const done = (): void => {
        cancel();
        abort?.removeEventListener("abort", done);
        waiters.delete(done);
        if (waiters.size === 0 && this.#waiters.get(key) === waiters) this.#waiters.delete(key);
        resolve();
      };
      const cancel = this.#scheduler.after(ms, done);
      abort?.addEventListener("abort", done);
      waiters.add(done);
    });
  }

  tell(target: Target): void {
    for (const done of this.#waiters.get(targetKey(target)) ?? []) done();
  }

  /** Any of them may have missed something. */
  tellAll(): void {
    for (const waiters of this.#waiters.values()) for (const done of waiters) done();
  }
}

export function targetKey({ workflow, id }: Target): string {
  return `${workflow}\n${id}`;
}

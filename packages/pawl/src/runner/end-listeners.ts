import type { EndListener } from "../instances/ports.js";
import { membersOf, type Signal } from "../model/abort.js";
import type { Scheduler } from "../model/seams.js";
import { targetKey, type Ended, type Target } from "../store/records.js";

/** Those in this process who wait for a run to end. Without its outcome it is a hint: they look for themselves. */
export class EndListeners {
  readonly #scheduler: Scheduler;
  readonly #ears = new Map<string, Set<OpenEndListener>>();

  constructor(scheduler: Scheduler) {
    this.#scheduler = scheduler;
  }

  ear(target: Target): EndListener {
    const key = targetKey(target);
    const ears = this.#ears.get(key) ?? new Set();
    this.#ears.set(key, ears);
    const ear = new OpenEndListener(this.#scheduler, () => {
      ears.delete(ear);
      if (ears.size === 0 && this.#ears.get(key) === ears) this.#ears.delete(key);
    });
    ears.add(ear);
    return ear;
  }

  wait(target: Target, ms: number, signal?: Signal): Promise<Ended | null> {
    return this.ear(target).heard(ms, signal);
  }

  tell(target: Target, ended: Ended | null): void {
    for (const ear of this.#ears.get(targetKey(target)) ?? []) ear.tell(ended);
  }

  /** Any of them may have missed something. */
  tellAll(): void {
    for (const ears of this.#ears.values()) for (const ear of ears) ear.tell(null);
  }
}

class OpenEndListener implements EndListener {
  readonly #scheduler: Scheduler;
  readonly close: () => void;
  #wasTold = false;
  #ended: Ended | null = null;
  #wake: (() => void) | null = null;

  constructor(scheduler: Scheduler, close: () => void) {
    this.#scheduler = scheduler;
    this.close = close;
  }

  tell(ended: Ended | null): void {
    this.#wasTold = true;
    this.#ended ??= ended;
    this.#wake?.();
  }

  heard(ms: number, signal?: Signal): Promise<Ended | null> {
    const abort = signal === undefined ? null : membersOf(signal);
    if (this.#wasTold || abort?.aborted === true) {
      this.close();
      return Promise.resolve(this.#ended);
    }
    return new Promise((resolve) => {
      const done = (): void => {
        cancel();
        abort?.removeEventListener("abort", done);
        this.close();
        resolve(this.#ended);
      };
      const cancel = this.#scheduler.after(ms, done);
      abort?.addEventListener("abort", done);
      this.#wake = done;
    });
  }
}

import type { EndListener } from "../instances/ports.js";
import { membersOf, type Signal } from "../model/abort.js";
import type { Scheduler } from "../model/seams.js";
import { type Ended } from "../store/records.js";
import { targetKey, type Target } from "../model/target.js";

/**
 * The callers in this process that wait for a run to end, by `targetKey`. A notice without an outcome is only a hint:
 * the callers then read the outcome.
 */
export class EndListeners {
  readonly #scheduler: Scheduler;
  readonly #byKey = new Map<string, Set<OpenEndListener>>();

  constructor(scheduler: Scheduler) {
    this.#scheduler = scheduler;
  }

  listen(key: string): EndListener {
    const listeners = this.#byKey.get(key) ?? new Set();
    this.#byKey.set(key, listeners);
    const listener = new OpenEndListener(this.#scheduler, () => {
      listeners.delete(listener);
      if (listeners.size === 0 && this.#byKey.get(key) === listeners) this.#byKey.delete(key);
    });
    listeners.add(listener);
    return listener;
  }

  /** The subscriber to notices of ends. */
  readonly hear = (target: Target & { readonly key?: string }, ended: Ended | null): void => {
    this.tell(target.key ?? targetKey(target), ended);
  };

  tell(key: string, ended: Ended | null): void {
    for (const listener of this.#byKey.get(key) ?? []) listener.tell(ended);
  }

  /** Tells all listeners, because any of them may have missed something. */
  tellAll(): void {
    for (const listeners of this.#byKey.values()) {
      for (const listener of listeners) listener.tell(null);
    }
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

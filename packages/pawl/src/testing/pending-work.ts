import type { Cancel, Runtime } from "../model/seams.js";

/**
 * Counts what will happen without the clock being moved: macrotasks, and waits in real time (for a lock, or for code that
 * stalls).
 */
export class PendingWork {
  #macrotasks = 0;
  #graces = 0;

  get count(): number {
    return this.#macrotasks + this.#graces;
  }

  /** Returns the runtime with its macrotasks, rounds and waits in real time counted. */
  counted(runtime: Runtime): Runtime {
    const { scheduler } = runtime;
    return {
      ...runtime,
      scheduler: {
        ...scheduler,
        macrotask: (callback) => scheduler.macrotask(this.#macrotask(callback)),
        round: (callback) => scheduler.round(this.#macrotask(callback)),
        grace: (ms, callback) => this.#grace((end) => scheduler.grace(ms, end), callback),
      },
    };
  }

  #macrotask(callback: () => void): () => void {
    this.#macrotasks += 1;
    return () => {
      this.#macrotasks -= 1;
      callback();
    };
  }

  #grace(start: (end: () => void) => Cancel, callback: () => void): Cancel {
    let isOver = false;
    const end = (): void => {
      if (!isOver) this.#graces -= 1;
      isOver = true;
    };
    this.#graces += 1;
    const cancel = start(() => {
      end();
      callback();
    });
    return () => {
      end();
      cancel();
    };
  }
}

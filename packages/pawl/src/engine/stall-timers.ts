import type { Cancel, Scheduler } from "../model/seams.js";
import type { EngineContext } from "./context.js";

/** How long a run waits for its code: to call the steps that it called before, and to await a step at all. */
export class StallTimers {
  readonly #scheduler: Scheduler;
  readonly #timing: EngineContext["timing"];
  #stall: Cancel | null = null;
  #stuck: Cancel | null = null;

  constructor({ runtime, timing }: EngineContext) {
    this.#scheduler = runtime.scheduler;
    this.#timing = timing;
  }

  /** The replay waits for a call: the code may be awaiting something else in between. */
  untilCalled(giveUp: () => void): void {
    this.#stall ??= this.#scheduler.grace(this.#timing.stallMs, () => {
      this.#stall = null;
      giveUp();
    });
  }

  /** The code awaits no step. Every heartbeat finds that out again: the time counts from the first. */
  untilStuck(report: () => void): void {
    this.#stuck ??= this.#scheduler.after(this.#timing.reportStuckMs, report);
  }

  /** Something will bring the run on. */
  notStuck(): void {
    this.#stuck?.();
    this.#stuck = null;
  }

  /** The code was given something, or nobody waits for it any more. */
  over(): void {
    this.#stall?.();
    this.#stall = null;
    this.notStuck();
  }
}

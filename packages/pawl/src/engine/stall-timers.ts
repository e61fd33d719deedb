import type { Cancel, Scheduler } from "../model/seams.js";
import type { EngineContext } from "./context.js";

/** The timers of a run that waits for its code: to call the recorded steps again, or to await a step at all. */
export class StallTimers {
  readonly #scheduler: Scheduler;
  readonly #timing: EngineContext["timing"];
  #stall: Cancel | null = null;
  #stuck: Cancel | null = null;

  constructor({ runtime, timing }: EngineContext) {
    this.#scheduler = runtime.scheduler;
    this.#timing = timing;
  }

  /** Waits for the code to call a recorded step again. The code may be awaiting something else first. */
  untilCalled(giveUp: () => void): void {
    this.#stall ??= this.#scheduler.grace(this.#timing.stallMs, () => {
      this.#stall = null;
      giveUp();
    });
  }

  /**
   * Reports code that awaits no step. Every heartbeat finds such code again, so the time counts from the first call.
   */
  untilStuck(report: () => void): void {
    this.#stuck ??= this.#scheduler.after(this.#timing.reportStuckMs, report);
  }

  /** Cancels the report, because something will move the run on. */
  notStuck(): void {
    this.#stuck?.();
    this.#stuck = null;
  }

  /** Cancels both timers, because the code was given something, or nobody waits for it any more. */
  cancel(): void {
    this.#stall?.();
    this.#stall = null;
    this.notStuck();
  }
}

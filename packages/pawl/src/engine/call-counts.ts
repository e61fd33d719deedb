import { MaxStepsExceededError } from "../model/errors.js";

/** Half a second at most. */
const MAX_REPEATS = 20_000;

/** How often a run's code has called steps; answers an error when it was too often. */
export class CallCounts {
  readonly #maxSteps: number;
  #steps = 0;
  /** Since a step has ended. */
  #repeats = 0;

  constructor(maxSteps: number) {
    this.#maxSteps = maxSteps;
  }

  step(): Error | null {
    this.#steps += 1;
    if (this.#steps <= this.#maxSteps) return null;
    return new MaxStepsExceededError(`the run called more than ${this.#maxSteps} steps`);
  }

  /** Answers that need no step come at once: a loop of them would keep its process from anything else for ever. */
  repeat(): Error | null {
    this.#repeats += 1;
    if (this.#repeats <= MAX_REPEATS) return null;
    return new MaxStepsExceededError(
      `the run called steps again that had ended, or wrongly, ${MAX_REPEATS} times in a row: ` +
        `step names must differ in every round of a loop`,
    );
  }

  /** A step has ended: the code waits for something now and then. */
  ended(): void {
    this.#repeats = 0;
  }
}

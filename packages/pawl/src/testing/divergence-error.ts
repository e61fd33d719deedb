/** A step as it is recorded in the history, or called by the code. */
export type ReplayedStep = {
  readonly name: string;
  /** 1, or under `repeatedStepNames: "counted"` how often this name was called so far. */
  readonly count: number;
  /** `do`, `sleep` or `waitForEvent`. */
  readonly type: string;
  /** The step's place in the order of calls, from 1. */
  readonly position: number;
};

/** Thrown by `replay` when the code does not follow the history. Its message names the first step where they part. */
export class DivergenceError extends Error {
  static {
    this.prototype.name = "DivergenceError";
  }
  /** The step that the history has here; null if the history has ended. */
  readonly recorded: ReplayedStep | null;
  /** The step that the code called instead; null if it called none. */
  readonly requested: ReplayedStep | null;

  constructor(
    message: string,
    steps: { readonly recorded: ReplayedStep | null; readonly requested: ReplayedStep | null },
    options?: ErrorOptions,
  ) {
    super(message, options);
    this.recorded = steps.recorded;
    this.requested = steps.requested;
  }
}

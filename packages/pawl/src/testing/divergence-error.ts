/** A step as the history or the code names it. */
export type ReplayedStep = {
  readonly name: string;
  readonly count: number;
  readonly type: string;
  /** In the order of calls, from 1. */
  readonly position: number;
};

/** The code does not follow the history. */
export class DivergenceError extends Error {
  static {
    this.prototype.name = "DivergenceError";
  }
  /** What the history has here; null if it has ended. */
  readonly recorded: ReplayedStep | null;
  /** What the code called instead; null if nothing. */
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

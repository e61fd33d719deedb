import type { Logger } from "./logger.js";

/** The invariants that the code checks as it goes. The names are stable: operators and tests look for them. */
export type InvariantName =
  /** A run's hold on its ticket changes only along `holdEdges`. */
  | "run.hold"
  /** The state of a run's code changes only along `codeEdges`. */
  | "run.code"
  /** A run in memory goes on only under the claim that follows its last one. */
  | "run.claim"
  /** Only a part that gives the ticket up is answered with a ticket that is not leased any more. */
  | "run.answer"
  /** Events reach a run in the order of their numbers. */
  | "run.events"
  /** The engine itself does not throw in the middle of a turn. */
  | "run.throws"
  /** A ticket has one run in the slots of a process. */
  | "slots.one"
  /** A commit answers every part. */
  | "commit.answers";

/**
 * Reports broken invariants. A broken invariant is a bug of the engine. It is counted and logged as an error, and the
 * code that found it takes the way out that loses nothing: mostly it forgets the run, which is then loaded again.
 */
export class Invariants {
  readonly #logger: Logger;
  readonly #broken = new Map<InvariantName, number>();

  constructor(logger: Logger) {
    this.#logger = logger;
  }

  /** How often each invariant was broken in this process. */
  get broken(): ReadonlyMap<InvariantName, number> {
    return this.#broken;
  }

  /** Reports a broken invariant. Callers check the condition themselves, so that a check that holds costs no call. */
  report(invariant: InvariantName, fields: Readonly<Record<string, unknown>>): void {
    this.#broken.set(invariant, (this.#broken.get(invariant) ?? 0) + 1);
    this.#logger.error("invariant.broken", { invariant, ...fields });
  }
}

import type { Verb } from "./sql.js";

/** The side that asks. A caller's request may wait for locks that the engine's own work must not wait behind. */
export type ConnectionClass = "engine" | "request";

/** One connection or a few. The driver package is the user's, and only the members used here are asked of it. */
export interface Driver<Tx> {
  /**
   * Runs a verb on one connection: in one transaction at READ COMMITTED if the verb wants one, otherwise each statement
   * by itself. An error of a statement is thrown into the script first; if the script lets it out, everything is rolled
   * back.
   *
   * A driver whose connections keep plans makes those of the verb's `rehearsal` afterwards, when there is time.
   */
  run<Args extends readonly unknown[], T>(
    by: ConnectionClass,
    verb: Verb<Args, T>,
    args: Args,
  ): Promise<T>;
  /** Runs a verb inside the user's open transaction. It neither commits, nor rolls back, nor retries. */
  within<Args extends readonly unknown[], T>(tx: Tx, verb: Verb<Args, T>, args: Args): Promise<T>;
  close(): Promise<void>;
}

/** Runs a verb until the database has answered it. */
export type RunVerb = <Args extends readonly unknown[], T>(
  by: ConnectionClass,
  verb: Verb<Args, T>,
  ...args: Args
) => Promise<T>;

import type { Call, Script } from "./statement.js";

/** Who asks: a caller's request may wait for locks that the engine's own work must not wait behind. */
export type ConnectionClass = "engine" | "request";

/**
 * A connection, or a few. The driver package is the user's; only the members used here are asked of it.
 */
export interface Driver<Tx> {
  /**
   * Runs a script on one connection, as one transaction at READ COMMITTED if asked, else each statement by
   * itself. Rolls back on any error. An error of a statement is thrown into the script first.
   *
   * After it there is time for a rehearsal: statements with nothing in them, for a connection that keeps their plans.
   */
  run<T>(
    lane: ConnectionClass,
    transaction: boolean,
    script: () => Script<T>,
    rehearsal?: readonly Call[],
  ): Promise<T>;
  /** Runs a script inside the user's open transaction. Neither commits, nor rolls back, nor retries. */
  within<T>(tx: Tx, script: () => Script<T>): Promise<T>;
  close(): Promise<void>;
}

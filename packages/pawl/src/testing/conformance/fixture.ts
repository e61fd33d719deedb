import type { Clock } from "../../model/seams.js";
import type { Store } from "../../store/store.js";

/** How the suite reaches a real database. One fixture per database; each case gets an empty one. */
export interface StoreFixture {
  /**
   * Opens a fresh, empty database, migrated unless told otherwise. With a clock, every store on it uses that
   * clock.
   */
  open(options?: { readonly clock?: Clock; readonly migrate?: boolean }): Promise<TestDatabase>;
}

export interface TestDatabase {
  readonly store: Store;
  /**
   * True if a transaction that has written keeps all other writers waiting until it ends (SQLite). The suite
   * then only asks that the others go on afterwards.
   */
  readonly oneWriter: boolean;
  /** Opens another store on the same database with connections of its own, as another process would have. */
  connect(): Promise<Store>;
  /** Begins a user's transaction on the user's own connection. One at a time. */
  begin(): Promise<TestTransaction>;
  /** Ends everything that was opened here, even after a failed case: transactions, stores, connections. */
  destroy(): Promise<void>;
}

export interface TestTransaction {
  /** The value to pass as `{ tx }`. */
  readonly tx: unknown;
  commit(): Promise<void>;
  rollback(): Promise<void>;
}

/** One promise of the store. It throws if the promise is broken, and needs no test framework. */
export type ConformanceCase = {
  readonly name: string;
  /** The case uses users' transactions, so it is not for a database that has none to pass on. */
  readonly needsTransactions?: true;
  run(fixture: StoreFixture): Promise<void>;
};

import type { Clock } from "../../model/seams.js";
import type { Store } from "../../store/store.js";

/** How the suite reaches a real database. One fixture per database; each case gets an empty one. */
export interface StoreFixture {
  /**
   * A fresh, empty database, migrated unless told otherwise. With a clock, every store on it uses that
   * clock.
   */
  open(options?: { readonly clock?: Clock; readonly migrate?: boolean }): Promise<TestDatabase>;
}

export interface TestDatabase {
  readonly store: Store;
  /**
   * True if a transaction that has written keeps all other writers waiting until it ends (SQLite). The
   * suite then asks only that they go on afterwards.
   */
  readonly oneWriter: boolean;
  /** Another store on the same database with connections of its own, as another process would have. */
  connect(): Promise<Store>;
  /** A transaction of the user's, on the user's own connection. One at a time. */
  begin(): Promise<TestTransaction>;
  /** Ends all that was opened here, also after a failed case: transactions, stores, connections. */
  destroy(): Promise<void>;
}

export interface TestTransaction {
  /** What is passed as `{ tx }`. */
  readonly tx: unknown;
  commit(): Promise<void>;
  rollback(): Promise<void>;
}

/** One promise of the store. Throws if it is broken; needs no test framework. */
export type ConformanceCase = {
  readonly name: string;
  /** It plays with transactions of the user's: not for a database where there are none to pass on. */
  readonly needsTransactions?: true;
  run(fixture: StoreFixture): Promise<void>;
};

import { checkOptions, type Known } from "./model/known-options.js";
import type { Clock } from "./model/seams.js";
import { webRuntime } from "./runtime.js";
import { sqliteDialect } from "./sql/dialects/sqlite.js";
import {
  sqliteDriver,
  type SqliteHandle,
  type SqliteStatement,
  type SqliteSynchronous,
} from "./sql/drivers/sqlite.js";
import { checkedIdentifier } from "./sql/checked.js";
import { sqlStore } from "./sql/store.js";
import type { Store } from "./store/store.js";

export type { SqliteHandle, SqliteStatement, SqliteSynchronous };

export type SqliteStoreOptions = {
  /** The prefix of the tables' names. Default `pawl_`. */
  readonly tablePrefix?: string;
  /**
   * How durable a commit is. `"full"` (default) survives a power cut. `"normal"` is about ten times faster for single
   * commits; a power cut may lose the last moments, but leaves the database consistent.
   */
  readonly synchronous?: SqliteSynchronous;
  /** Stands in for the database's clock in tests. */
  readonly clock?: Clock;
};

const known: Known<SqliteStoreOptions> = { tablePrefix: true, synchronous: true, clock: true };

/**
 * Returns a store in a SQLite file, or in memory. The handle may come from `node:sqlite`, `@photostructure/sqlite`,
 * `better-sqlite3` or `libsql`; Pawl never closes it. For a file the store opens a second connection of the same class.
 * Throws `ValidationError` for an option that is not allowed.
 *
 * @example
 * ```ts
 * const store = sqliteStore(openSqlite("pawl.db")); // openSqlite is of @pawl/dispatcher-node
 * ```
 */
export function sqliteStore(
  handle: SqliteHandle,
  options: SqliteStoreOptions = {},
): Store<SqliteHandle> {
  checkOptions("sqliteStore", options, known);
  return sqlStore({
    dialect: sqliteDialect(checkedIdentifier("tablePrefix", options.tablePrefix ?? "pawl_")),
    driver: sqliteDriver(handle, options.synchronous ?? "full"),
    runtime: webRuntime,
    clock: options.clock,
  });
}

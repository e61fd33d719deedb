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
  /** Prefix of the tables' names. Default `pawl_`. */
  readonly tablePrefix?: string;
  /** How sure a commit is: "full" (default) survives a power cut, "normal" may lose the last moments. */
  readonly synchronous?: SqliteSynchronous;
  /** Stands in for the database's time, in tests. */
  readonly clock?: Clock;
};

const known: Known<SqliteStoreOptions> = { tablePrefix: true, synchronous: true, clock: true };

/** The store in a SQLite file, or in memory. The handle stays the user's: Pawl never closes it. */
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

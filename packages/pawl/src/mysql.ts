import { checkOptions, type Known } from "./model/known-options.js";
import type { Clock } from "./model/seams.js";
import { webRuntime } from "./runtime.js";
import { mysqlDialect } from "./sql/dialects/mysql.js";
import { mysqlDriver, type MysqlPool, type MysqlTransaction } from "./sql/drivers/mysql.js";
import { checkedCount, checkedIdentifier } from "./sql/checked.js";
import { sqlStore } from "./sql/store.js";
import type { Store } from "./store/store.js";

export type { MysqlPool, MysqlTransaction };

export type MysqlStoreOptions = {
  /** The prefix of the tables' names. Default `pawl_`. */
  readonly tablePrefix?: string;
  /** How many connections the engine takes out of the pool and keeps. Default 2. */
  readonly connections?: number;
  /** Stands in for the database's clock in tests. */
  readonly clock?: Clock;
};

const known: Known<MysqlStoreOptions> = { tablePrefix: true, connections: true, clock: true };

/**
 * Returns a store in MySQL (8.0 or later) or MariaDB (10.6 or later). The engine takes connections out of the pool and
 * keeps them, so the pool needs room for them; it never ends the pool. Throws `ValidationError` for an option that is
 * not allowed.
 *
 * @example
 * ```ts
 * const store = mysqlStore(mysql.createPool({ uri, connectionLimit: 10 }));
 * ```
 */
export function mysqlStore(
  pool: MysqlPool,
  options: MysqlStoreOptions = {},
): Store<MysqlTransaction> {
  checkOptions("mysqlStore", options, known);
  const dialect = mysqlDialect(checkedIdentifier("tablePrefix", options.tablePrefix ?? "pawl_"));
  return sqlStore({
    dialect,
    driver: mysqlDriver(
      pool,
      checkedCount("connections", options.connections ?? 2),
      (error) => dialect.classify(error) === "disconnected",
    ),
    runtime: webRuntime,
    clock: options.clock,
  });
}

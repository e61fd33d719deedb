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
  /** Prefix of the tables' names. Default `pawl_`. */
  readonly tablePrefix?: string;
  /** How many connections the engine takes out of the pool and keeps. Default 2. */
  readonly connections?: number;
  /** Stands in for the database's time, in tests. */
  readonly clock?: Clock;
};

const known: Known<MysqlStoreOptions> = { tablePrefix: true, connections: true, clock: true };

/** The store in MySQL (8.0 and later) or MariaDB (10.6 and later). The pool stays the user's: Pawl never ends it. */
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

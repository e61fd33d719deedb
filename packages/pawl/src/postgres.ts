import { checkOptions, type Known } from "./model/known-options.js";
import type { Clock } from "./model/seams.js";
import { webRuntime } from "./runtime.js";
import { postgresDialect } from "./sql/dialects/postgres.js";
import { postgresDriver, type PgPool, type PgTransaction } from "./sql/drivers/postgres.js";
import { PgHints } from "./sql/drivers/postgres-hints.js";
import { checkedCount, checkedIdentifier } from "./sql/checked.js";
import { sqlStore } from "./sql/store.js";
import type { Store } from "./store/store.js";

export type { PgPool, PgTransaction };

export type PostgresStoreOptions = {
  /** The schema that holds Pawl's tables. Default `pawl`. */
  readonly schema?: string;
  /**
   * How many connections of its own the engine opens with the pool's options, beside the pool's. Default 2. One more is
   * opened for hints between processes.
   */
  readonly connections?: number;
  /** Stands in for the database's clock in tests. */
  readonly clock?: Clock;
};

const known: Known<PostgresStoreOptions> = { schema: true, connections: true, clock: true };

/**
 * Returns a store in PostgreSQL 14 or later. The engine opens connections of its own with the pool's options; it takes
 * none out of the pool and never ends the pool. Throws `ValidationError` for an option that is not allowed.
 *
 * @example
 * ```ts
 * const store = postgresStore(new pg.Pool({ connectionString }));
 * ```
 */
export function postgresStore(
  pool: PgPool,
  options: PostgresStoreOptions = {},
): Store<PgTransaction> {
  checkOptions("postgresStore", options, known);
  const schema = checkedIdentifier("schema", options.schema ?? "pawl");
  const dialect = postgresDialect(schema);
  return sqlStore({
    dialect,
    driver: postgresDriver(
      pool,
      checkedCount("connections", options.connections ?? 2),
      dialect,
      webRuntime.clock,
    ),
    hints: new PgHints(pool, schema, webRuntime),
    runtime: webRuntime,
    clock: options.clock,
  });
}

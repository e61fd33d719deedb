import { openSqlite } from "@pawl/dispatcher-node";
import type { Store } from "pawl";

/** A database, as one process describes it to another. */
export type StorePlace = {
  readonly kind: "sqlite" | "postgres" | "mariadb" | "mysql";
  /** A URL, or the path of a SQLite file. */
  readonly at: string;
  /** The schema or the database. */
  readonly name: string;
};

export async function openStore({ kind, at, name }: StorePlace): Promise<Store> {
  if (kind === "sqlite") {
    const { sqliteStore } = await import("pawl/sqlite");
    return sqliteStore(openSqlite(at));
  }
  if (kind === "postgres") {
    const { default: pg } = await import("pg");
    const { postgresStore } = await import("pawl/postgres");
    return postgresStore(new pg.Pool({ connectionString: at }), { schema: name });
  }
  const { default: mysql } = await import("mysql2/promise");
  const { mysqlStore } = await import("pawl/mysql");
  return mysqlStore(mysql.createPool({ uri: at, database: name }));
}

import { randomBytes } from "node:crypto";
import mysql from "mysql2/promise";
import { mysqlStore } from "pawl/mysql";
import { postgresStore } from "pawl/postgres";
import pg from "pg";
import type { Clock } from "../../src/model/seams.js";
import type { Store } from "../../src/store/store.js";
import type { Scope } from "./scope.js";
import { type Kind, sharedServer } from "./servers.js";
import { until } from "./until.js";

export type Row = Readonly<Record<string, unknown>>;

/** A connection of a person with a SQL prompt. */
export type Session = {
  /** The server's number for this connection. */
  readonly id: number;
  query(sql: string, values?: readonly unknown[]): Promise<Row[]>;
  close(): Promise<void>;
};

type StoreOptions = {
  readonly connections?: number;
  readonly clock?: Clock | undefined;
  /** Another way to the same server. */
  readonly url?: string;
};

/** An empty place on a server for one test: a schema on PostgreSQL, a database on the others. */
export type Database = {
  readonly kind: Kind;
  readonly url: string;
  readonly name: string;
  table(name: string): string;
  /** A store with a pool of its own. */
  store(options?: StoreOptions): Store;
  session(): Promise<Session>;
};

type PlaceOptions = {
  readonly url?: string;
  /** The name of a place that exists already. */
  readonly name?: string;
};

export async function database(
  scope: Scope,
  kind: Kind,
  { url = sharedServer(kind), name }: PlaceOptions = {},
): Promise<Database> {
  const place = name ?? `t${randomBytes(6).toString("hex")}`;
  if (name === undefined) {
    await onServer(kind, url, place, "make");
    scope.defer(() => onServer(kind, url, place, "drop"));
  }
  return {
    kind,
    url,
    name: place,
    table: (table) => (kind === "postgres" ? `${place}.${table}` : `${place}.pawl_${table}`),
    store: ({ connections, clock, url: via = url } = {}) => {
      const options = {
        ...(connections === undefined ? {} : { connections }),
        ...(clock === undefined ? {} : { clock }),
      };
      if (kind === "postgres") {
        const pool = postgresPool(scope, via);
        const store = postgresStore(pool, { schema: place, ...options });
        scope.defer(() => store.close());
        return store;
      }
      const store = mysqlStore(mysqlPool(scope, via, place), options);
      scope.defer(() => store.close());
      return store;
    },
    session: async () => {
      const session =
        kind === "postgres" ? await postgresSession(url) : await mysqlSession(url, place);
      scope.defer(() => session.close());
      return session;
    },
  };
}

/** A migrated database with a store on it. */
export async function world(
  scope: Scope,
  kind: Kind,
  options: PlaceOptions & { readonly clock?: Clock } = {},
): Promise<{ db: Database; store: Store }> {
  const db = await database(scope, kind, options);
  const store = db.store({ clock: options.clock });
  await store.migrate();
  return { db, store };
}

export function postgresPool(scope: Scope, url: string, options: pg.PoolConfig = {}): pg.Pool {
  const pool = new pg.Pool({ connectionString: url, max: 4, ...options });
  scope.defer(() => pool.end());
  return pool;
}

export function mysqlPool(
  scope: Scope,
  url: string,
  name: string,
  options: mysql.PoolOptions = {},
): mysql.Pool {
  const pool = mysql.createPool({ uri: url, database: name, connectionLimit: 4, ...options });
  scope.defer(() => pool.end());
  return pool;
}

async function onServer(
  kind: Kind,
  url: string,
  place: string,
  verb: "make" | "drop",
): Promise<void> {
  const [client, what] =
    kind === "postgres"
      ? [await postgresSession(url), "SCHEMA"]
      : [await mysqlSession(url), "DATABASE"];
  try {
    if (verb === "make") {
      // A PostgreSQL store makes its schema itself.
      if (kind !== "postgres") await client.query(`CREATE DATABASE ${place}`);
    } else {
      await client.query(`DROP ${what} IF EXISTS ${place} ${kind === "postgres" ? "CASCADE" : ""}`);
    }
  } finally {
    await client.close();
  }
}

export async function postgresSession(url: string): Promise<Session> {
  const client = new pg.Client({ connectionString: url });
  client.on("error", () => {});
  await client.connect();
  const { rows } = await client.query<{ id: number }>("SELECT pg_backend_pid() AS id");
  return {
    id: rows[0]!.id,
    query: async (sql, values = []) => (await client.query<Row>(sql, [...values])).rows,
    close: () => client.end(),
  };
}

export async function mysqlSession(url: string, name?: string): Promise<Session> {
  const connection = await mysql.createConnection({
    uri: url,
    ...(name === undefined ? {} : { database: name }),
  });
  connection.on("error", () => {});
  return {
    id: connection.threadId,
    query: async (sql, values = []) => {
      const [rows] = await connection.query(sql, [...values]);
      return Array.isArray(rows) ? (rows as Row[]) : [];
    },
    close: async () => connection.destroy(),
  };
}

/** A connection that waits for a lock in this database. `since` differs for each statement that waits. */
export type Waiter = { readonly id: number; readonly since: string };

export async function waiters(db: Database, watcher: Session): Promise<Waiter[]> {
  if (db.kind === "postgres") {
    const rows = await watcher.query(
      `SELECT pid AS id, query_start::text AS since FROM pg_stat_activity
       WHERE cardinality(pg_blocking_pids(pid)) > 0 AND strpos(query, $1) > 0`,
      [db.name],
    );
    return rows.map((row) => ({ id: Number(row["id"]), since: String(row["since"]) }));
  }
  // The tables with this information are a cache, which is not refreshed while anyone keeps reading it.
  const [row] = await watcher.query("SHOW ENGINE INNODB STATUS");
  return String(row?.["Status"])
    .split("---TRANSACTION ")
    .filter((text) => text.includes("LOCK WAIT") && text.includes(`\`${db.name}\``))
    .map((text) => ({
      id: Number(/thread id (\d+)/.exec(text)?.[1]),
      since: /^\d+/.exec(text)?.[0] ?? "",
    }));
}

/** Waits until a connection waits for a lock in this database. If one is given, it must be that one. */
export function untilBlocked(db: Database, watcher: Session, blocked?: Session): Promise<Waiter> {
  return until(
    async () =>
      (await waiters(db, watcher)).find(({ id }) => blocked === undefined || id === blocked.id),
    blocked === undefined ? "anyone waiting for a lock" : `${blocked.id} waiting for a lock`,
  );
}

import { randomBytes } from "node:crypto";
import path from "node:path";
import { DatabaseSync, type DatabaseSyncInstance } from "@photostructure/sqlite";
import mysql from "mysql2";
import { mysqlStore } from "pawl/mysql";
import { postgresStore } from "pawl/postgres";
import { sqliteStore } from "pawl/sqlite";
import pg from "pg";
import type { Clock } from "../src/model/seams.js";
import type { Store } from "../src/store/store.js";
import type {
  StoreFixture,
  TestDatabase,
  TestTransaction,
} from "../src/testing/conformance/index.js";
import { temporaryFolder } from "./support/folder.js";
import { Scope } from "./support/scope.js";

type Options = { readonly clock?: Clock; readonly migrate?: boolean };

/** Session defaults of every connection, as an administrator might have set them. */
export type ServerDefaults = {
  readonly isolation?: "READ COMMITTED" | "REPEATABLE READ" | "SERIALIZABLE";
};

/** Neither the process's zone nor UTC, so that a time that went through either would be hours off. */
const SERVER_ZONE = { name: "America/St_Johns", offset: "-03:30" };

/** Opens what all databases have in common: stores to close, and a transaction to end. */
async function testDatabase(
  options: Options,
  database: {
    readonly oneWriter: boolean;
    readonly scope: Scope;
    /** A store with connections of its own. */
    readonly connect: () => Store;
    readonly begin: () => Promise<TestTransaction>;
  },
): Promise<TestDatabase> {
  const { scope, oneWriter } = database;
  const connect = async (): Promise<Store> => {
    const store = database.connect();
    scope.defer(() => store.close());
    return store;
  };
  try {
    const store = await connect();
    if (options.migrate !== false) await store.migrate();
    let open: TestTransaction | undefined;
    scope.defer(() => open?.rollback());
    const begin = async (): Promise<TestTransaction> => {
      const begun = await database.begin();
      const ending = (end: "commit" | "rollback") => async () => {
        open = undefined;
        await begun[end]();
      };
      open = { tx: begun.tx, commit: ending("commit"), rollback: ending("rollback") };
      return open;
    };
    return { store, oneWriter, connect, begin, destroy: () => scope.close() };
  } catch (error) {
    await scope.end();
    throw error;
  }
}

const clockOf = ({ clock }: Options) => (clock === undefined ? {} : { clock });

const freshName = (): string => `t${randomBytes(6).toString("hex")}`;

/** A fixture on a server. It keeps migrated databases for the next case until it is disposed of. */
export type ServerFixture = StoreFixture & { dispose(): Promise<void> };

/** Keeps databases for reuse: emptying tables takes milliseconds, making them half a second on MySQL. */
class Shelf {
  readonly #names: string[] = [];

  take(options: Options): string {
    return (options.migrate === false ? undefined : this.#names.pop()) ?? freshName();
  }

  put(name: string): void {
    this.#names.push(name);
  }

  takeAll(): string[] {
    return this.#names.splice(0);
  }
}

// SQLite ----------------------------------------------------------------------------------------------------------

export const sqliteFile: StoreFixture = {
  async open(options = {}) {
    const scope = new Scope();
    const folder = temporaryFolder(scope);
    const openFile = (): DatabaseSyncInstance => {
      const handle = new DatabaseSync(path.join(folder, "test.db"));
      scope.defer(() => handle.close());
      return handle;
    };
    // The first store gets the handle on which the user's transactions run. A write of the engine on that handle would be
    // acknowledged, and then rolled back with the user's transaction.
    const users = openFile();
    let next: DatabaseSyncInstance | undefined = users;
    return testDatabase(options, {
      oneWriter: true,
      scope,
      connect: () => {
        const handle = next ?? openFile();
        next = undefined;
        return sqliteStore(handle, clockOf(options));
      },
      begin: async () => sqliteTransaction(users),
    });
  },
};

/** A database in memory has one handle, which all stores and the user share. */
export const sqliteMemory: StoreFixture = {
  async open(options = {}) {
    const scope = new Scope();
    const handle = new DatabaseSync(":memory:");
    scope.defer(() => handle.close());
    return testDatabase(options, {
      oneWriter: true,
      scope,
      connect: () => sqliteStore(handle, clockOf(options)),
      begin: async () => sqliteTransaction(handle),
    });
  },
};

function sqliteTransaction(handle: DatabaseSyncInstance): TestTransaction {
  handle.exec("BEGIN");
  return {
    tx: handle,
    commit: async () => handle.exec("COMMIT"),
    rollback: async () => handle.exec("ROLLBACK"),
  };
}

// PostgreSQL ------------------------------------------------------------------------------------------------------

/** Gives each case a schema of its own. */
export function postgres(url: string, { isolation }: ServerDefaults = {}): ServerFixture {
  const settings = [
    `-c TimeZone=${SERVER_ZONE.name}`,
    ...(isolation ? [`-c default_transaction_isolation=${isolation.replace(" ", "\\ ")}`] : []),
  ];
  const newPool = () => new pg.Pool({ connectionString: url, options: settings.join(" "), max: 3 });
  const shelf = new Shelf();
  return {
    async open(options = {}) {
      const scope = new Scope();
      const schema = shelf.take(options);
      const openPool = (): pg.Pool => {
        const pool = newPool();
        scope.defer(() => pool.end());
        return pool;
      };
      const users = openPool();
      scope.defer(async () => {
        await users.query(options.migrate === false ? dropSchema(schema) : emptySchema(schema));
        if (options.migrate !== false) shelf.put(schema);
      });
      let next: pg.Pool | undefined = users;
      return testDatabase(options, {
        oneWriter: false,
        scope,
        connect: () => {
          const pool = next ?? openPool();
          next = undefined;
          return postgresStore(pool, { schema, ...clockOf(options) });
        },
        begin: () => postgresTransaction(users),
      });
    },
    async dispose() {
      const pool = newPool();
      for (const schema of shelf.takeAll()) await pool.query(dropSchema(schema));
      await pool.end();
    },
  };
}

/** Begins a transaction as a user would, on a connection of the user's pool. */
export async function postgresTransaction(users: pg.Pool): Promise<TestTransaction> {
  const client = await users.connect();
  await client.query("BEGIN");
  const end = (statement: string) => async () => {
    await client.query(statement);
    client.release();
  };
  return { tx: client, commit: end("COMMIT"), rollback: end("ROLLBACK") };
}

const dropSchema = (schema: string) => `DROP SCHEMA IF EXISTS ${schema} CASCADE`;

const emptySchema = (schema: string) =>
  `DO $$ DECLARE name text; BEGIN
     FOR name IN SELECT tablename FROM pg_tables WHERE schemaname = '${schema}' AND tablename <> 'meta'
     LOOP EXECUTE format('DELETE FROM ${schema}.%I', name); END LOOP;
   END $$`;

// MySQL and MariaDB -----------------------------------------------------------------------------------------------

/** Gives each case tables of its own, by their prefix. */
export function mysqlFamily(url: string, { isolation }: ServerDefaults = {}): ServerFixture {
  const newPool = (): mysql.Pool => {
    const pool = mysql.createPool({ uri: url, connectionLimit: 5, timezone: "+05:45" });
    pool.on("connection", (connection) => {
      connection.query(`SET SESSION time_zone = '${SERVER_ZONE.offset}'`);
      if (isolation) connection.query(`SET SESSION TRANSACTION ISOLATION LEVEL ${isolation}`);
    });
    return pool;
  };
  const shelf = new Shelf();
  return {
    async open(options = {}) {
      const scope = new Scope();
      const name = shelf.take(options);
      const openPool = (): mysql.Pool => {
        const pool = newPool();
        scope.defer(() => pool.promise().end());
        return pool;
      };
      const users = openPool();
      scope.defer(async () => {
        await (options.migrate === false ? dropTables(users, name) : emptyTables(users, name));
        if (options.migrate !== false) shelf.put(name);
      });
      let stores = 0;
      return testDatabase(options, {
        oneWriter: false,
        scope,
        connect: () => {
          // Stores get pools with callbacks and with promises in turn, because people have either.
          const pool = stores === 0 ? users : openPool();
          stores += 1;
          const given = stores % 2 === 0 ? pool.promise() : pool;
          return mysqlStore(given, { tablePrefix: `${name}_`, ...clockOf(options) });
        },
        begin: async () => {
          const connection = await users.promise().getConnection();
          await connection.beginTransaction();
          const end = (how: "commit" | "rollback") => async () => {
            await connection[how]();
            connection.release();
          };
          return { tx: connection, commit: end("commit"), rollback: end("rollback") };
        },
      });
    },
    async dispose() {
      const pool = newPool();
      for (const name of shelf.takeAll()) await dropTables(pool, name);
      await pool.promise().end();
    },
  };
}

async function tablesOf(pool: mysql.Pool, name: string): Promise<string[]> {
  const [rows] = await pool
    .promise()
    .query<mysql.RowDataPacket[]>("SHOW TABLES LIKE ?", [`${name}\\_%`]);
  return rows.flatMap((row) => Object.values(row).map(String));
}

async function dropTables(pool: mysql.Pool, name: string): Promise<void> {
  const tables = await tablesOf(pool, name);
  if (tables.length > 0) await pool.promise().query(`DROP TABLE ${tables.join(", ")}`);
}

async function emptyTables(pool: mysql.Pool, name: string): Promise<void> {
  for (const table of await tablesOf(pool, name)) {
    if (table !== `${name}_meta`) await pool.promise().query(`DELETE FROM ${table}`);
  }
}

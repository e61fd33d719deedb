import { execFile } from "node:child_process";
import { createRequire } from "node:module";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { inspect, promisify } from "node:util";
import mysql from "mysql2";
import mysqlPromise from "mysql2/promise";
import {
  mysqlStore,
  type MysqlPool,
  type MysqlStoreOptions,
  type MysqlTransaction,
} from "pawl/mysql";
import { postgresStore, type PgTransaction } from "pawl/postgres";
import { sqliteStore, type SqliteHandle } from "pawl/sqlite";
import type pg from "pg";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Store } from "../src/store/store.js";
import {
  storeConformanceByTheme,
  type StoreFixture,
  type TestDatabase,
} from "../src/testing/conformance/index.js";
import {
  anEvent,
  anInstance,
  aPart,
  aStep,
  claimOne,
  commitOk,
  complete,
  create,
  historyRows,
  recordedEvents,
  leasedRun,
  parkFor,
  sendTo,
  currentStatus,
  targetOf,
} from "../src/testing/conformance/build.js";
import { inTime } from "../src/testing/conformance/concurrency.js";
import { postgresTransaction } from "./fixtures.js";
import { bouncer } from "./support/bouncer.js";
import { type Database, database, mysqlPool, postgresPool, world } from "./support/database.js";
import { temporaryFolder } from "./support/folder.js";
import { runtime } from "./support/runtime.js";
import { inScope, Scope } from "./support/scope.js";
import { type Kind, servers, sharedServer, stores } from "./support/servers.js";
import { until } from "./support/until.js";

/** Runs the cases of these themes whose names match. */
function conforms(fixture: () => StoreFixture, themes: Readonly<Record<string, RegExp>>): void {
  for (const [theme, like] of Object.entries(themes)) {
    const cases = storeConformanceByTheme[theme]?.filter(({ name }) => like.test(name)) ?? [];
    if (cases.length === 0) throw new Error(`no case of ${theme} is like ${like}`);
    for (const each of cases) test(`${theme}: ${each.name}`, () => each.run(fixture()));
  }
}

const all = /./;

// SQLite ------------------------------------------------------------------------------------------------------------

type SqliteClass = new (path: string) => SqliteHandle;

const require = createRequire(import.meta.url);

type SqliteDriver = {
  readonly classOf: (loaded: Record<string, unknown>) => unknown;
  /** The first Node that can load it. An older one may even crash. */
  readonly fromNode: number;
};

/** Drivers by the name of their package. */
const sqliteDrivers: Readonly<Record<string, SqliteDriver>> = {
  "node:sqlite": { classOf: ({ DatabaseSync }) => DatabaseSync, fromNode: 22 },
  "@photostructure/sqlite": { classOf: ({ DatabaseSync }) => DatabaseSync, fromNode: 20 },
  libsql: { classOf: (loaded) => loaded, fromNode: 20 },
  "better-sqlite3": { classOf: (loaded) => loaded, fromNode: 22 },
};
const thisNode = Number(process.versions.node.split(".")[0]);
const namesOf = (fits: (driver: SqliteDriver) => boolean): string[] =>
  Object.keys(sqliteDrivers).filter((name) => fits(sqliteDrivers[name] as SqliteDriver));
const loadable = namesOf(({ fromNode }) => fromNode <= thisNode);
const forNewerNodes = namesOf(({ fromNode }) => fromNode > thisNode);

function sqliteClass(name: string): SqliteClass {
  const loaded = require(name) as Record<string, unknown>;
  return sqliteDrivers[name]?.classOf(loaded) as SqliteClass;
}

function file(scope: Scope): string {
  return path.join(temporaryFolder(scope), "test.db");
}

function sqliteFixture(Handle: SqliteClass, place: "file" | "memory"): StoreFixture {
  return {
    async open({ clock, migrate = true } = {}): Promise<TestDatabase> {
      const scope = new Scope();
      const at = place === "file" ? file(scope) : ":memory:";
      const open = (): SqliteHandle => {
        const handle = new Handle(at);
        scope.defer(() => handle.close());
        return handle;
      };
      const users = open();
      const connect = (handle: SqliteHandle): Store => {
        const store = sqliteStore(handle, clock === undefined ? {} : { clock });
        scope.defer(() => store.close());
        return store;
      };
      const store = connect(users);
      if (migrate) await store.migrate();
      return {
        store,
        oneWriter: true,
        connect: async () => connect(place === "file" ? open() : users),
        begin: async () => {
          users.exec("BEGIN");
          return {
            tx: users,
            commit: async () => void users.exec("COMMIT"),
            rollback: async () => void users.exec("ROLLBACK"),
          };
        },
        destroy: async () => void (await scope.end()),
      };
    },
  };
}

describe.runIf(stores.includes("sqlite")).each(loadable)("SQLite by %s", (name) => {
  const Handle = sqliteClass(name);

  describe.each(["file", "memory"] as const)("%s", (place) => {
    // The tests in conformance/ already use that driver.
    if (name !== "@photostructure/sqlite") {
      conforms(() => sqliteFixture(Handle, place), {
        create: all,
        transactions: all,
        commit: all,
      });
    }

    test("a commit gets through beside a user's open transaction on a file, and after it in memory", () =>
      inScope(async (scope) => {
        const handle = new Handle(place === "file" ? file(scope) : ":memory:");
        scope.defer(() => handle.close());
        const store = sqliteStore(handle);
        scope.defer(() => store.close());
        await store.migrate();
        handle.exec("CREATE TABLE of_the_user (n INT)");
        const run = await leasedRun(store);

        handle.exec("BEGIN");
        handle.exec("SELECT * FROM of_the_user");
        let answered = false;
        const reading = commitOk(store, aPart(run, { steps: [aStep(1)] })).finally(
          () => (answered = true),
        );
        reading.catch(() => {}); // reported below
        if (place === "file") await until(() => answered, "written beside a reader");
        else await new Promise((resolve) => setImmediate(resolve));
        expect(answered).toBe(place === "file");
        handle.exec("COMMIT");
        await inTime(reading, "commit");

        handle.exec("BEGIN");
        handle.exec("INSERT INTO of_the_user VALUES (1)");
        const writing = commitOk(store, aPart(run, { partNumber: 2, next: complete() }));
        writing.catch(() => {}); // reported below
        handle.exec("ROLLBACK");
        await inTime(writing, "commit");
        expect(await currentStatus(store, run)).toBe("complete");
        expect(handle.prepare("SELECT * FROM of_the_user").all()).toEqual([]);
      }));
  });

  test("a handle that is not in a transaction is refused as tx", () =>
    inScope(async (scope) => {
      const handle = new Handle(":memory:");
      scope.defer(() => handle.close());
      const store = sqliteStore(handle);
      await store.migrate();
      const creating = store.create([anInstance()], { tx: handle });
      await expect(creating).rejects.toMatchObject({ code: "INVALID_REQUEST" });
    }));

  test("a file gets a connection of the engine's own, in WAL with full sync", () =>
    inScope(async (scope) => {
      const opened: SqliteHandle[] = [];
      class Watched extends Handle {
        constructor(at: string) {
          super(at);
          opened.push(this);
        }
      }
      const handle = new Watched(file(scope));
      scope.defer(() => handle.close());
      const store = sqliteStore(handle);
      scope.defer(() => store.close());
      await store.migrate();
      const [, own] = opened as [SqliteHandle, SqliteHandle];
      expect(opened.length).toBe(2);
      expect(own.prepare("PRAGMA journal_mode").all()).toMatchObject([{ journal_mode: "wal" }]);
      expect(own.prepare("PRAGMA synchronous").all()).toMatchObject([{ synchronous: 2 }]);
    }));
});

const newerNodes =
  stores.includes("sqlite") && forNewerNodes.length > 0 ? ["22.20.0", "24.11.1"] : [];

test.each(newerNodes)(
  `SQLite on Node %s by ${forNewerNodes.join(" and ")}`,
  { timeout: 600_000 },
  async (version) => {
    const tests = `SQLite by (${forNewerNodes.join("|")})`;
    const { numPassedTests, testResults } = await runOn(version, tests);
    const failed = testResults
      .flatMap(({ assertionResults }) => assertionResults)
      .filter(({ status }) => status === "failed");
    expect(failed).toEqual([]);
    expect(numPassedTests).toBeGreaterThan(100 * forNewerNodes.length);
  },
);

type Report = {
  readonly numPassedTests: number;
  readonly testResults: readonly {
    readonly assertionResults: readonly { readonly status: string; readonly fullName: string }[];
  }[];
};

/** Runs these tests of this file on another Node. */
async function runOn(version: string, tests: string): Promise<Report> {
  const root = fileURLToPath(new URL("../../../", import.meta.url));
  const execute = promisify(execFile);
  const node = await runtime("node", version);
  const vitest = [path.join(root, "node_modules/vitest/vitest.mjs"), "run", "--project", "stores"];
  const args = [...vitest, fileURLToPath(import.meta.url), "-t", tests, "--reporter=json"];
  const env = { ...process.env, PAWL_TEST_STORES: "sqlite" };
  const options = { cwd: root, env, maxBuffer: 2 ** 28 };
  // Vitest exits with an error if a test failed. The report says which one.
  const { stdout } = await execute(node, args, options).catch((error: unknown) => {
    if (error instanceof Error && "stdout" in error) return error as Error & { stdout: string };
    throw error;
  });
  return JSON.parse(stdout.slice(stdout.indexOf('{"num'))) as Report;
}

// mysql2 ------------------------------------------------------------------------------------------------------------

const mysqlFamily = servers.filter((kind) => kind !== "postgres");

/** Takes one run through everything that a store does. */
async function aTurn(store: Store): Promise<void> {
  const run = await leasedRun(store, { workflow: `w${Math.random()}` });
  await sendTo(store, run, anEvent("paid", { payload: '"é\u{1f600}"' }));
  const step = aStep(1, { result: '"ö"', tookMs: 5 });
  await commitOk(store, aPart(run, { seenEvents: 1, steps: [step], next: parkFor(["more"]) }));
  await sendTo(store, run, anEvent("more"));
  const again = await claimOne(store, run);
  await commitOk(store, aPart(again, { consumed: [{ number: 1, ord: 1 }], next: complete() }));
  expect((await historyRows(store, run)).map(({ kind }) => kind).toSorted()).toEqual([
    "event",
    "event",
    "step",
  ]);
  const [event] = await recordedEvents(store, run);
  expect(event).toMatchObject({ number: 1, type: "paid", payload: '"é\u{1f600}"', consumedBy: 1 });
  expect(await currentStatus(store, run)).toBe("complete");
}

describe.each(mysqlFamily)("mysql2 with %s", (kind) => {
  const scope = new Scope();
  let db: Database;
  beforeAll(async () => {
    db = (await world(scope, kind)).db;
  });
  afterAll(() => scope.end());

  const storeOn = (inner: Scope, pool: MysqlPool, options: MysqlStoreOptions = {}): Store => {
    const store = mysqlStore(pool, options);
    inner.defer(() => store.close());
    return store;
  };

  test("works with a callback pool", () =>
    inScope(async (inner) => {
      const pool = mysql.createPool({ uri: db.url, database: db.name });
      inner.defer(() => pool.promise().end());
      await aTurn(storeOn(inner, pool));
    }));

  test("works with a promise pool", () =>
    inScope(async (inner) => aTurn(storeOn(inner, mysqlPool(inner, db.url, db.name)))));

  test.each<[string, mysqlPromise.PoolOptions]>([
    ["big numbers as strings", { supportBigNumbers: true, bigNumberStrings: true }],
    ["decimals as numbers", { decimalNumbers: true }],
    ["dates as strings, another zone", { dateStrings: true, timezone: "-11:00" }],
    ["named placeholders", { namedPlaceholders: true }],
    ["rows as arrays", { rowsAsArray: true }],
    ["nested tables", { nestTables: true }],
    ["no casts", { typeCast: false }],
    ["its own query format", { queryFormat: (text: string) => text }],
  ])("works with a pool with this option: %s", (_, options) =>
    inScope(async (inner) => {
      const pool = mysqlPool(inner, db.url, db.name, options);
      const store = storeOn(inner, pool);
      await aTurn(store);
      const connection = await pool.getConnection();
      inner.defer(() => connection.release());
      await connection.beginTransaction();
      const instance = anInstance({ params: '"é\u{1f600}"' });
      expect(await store.create([instance], { tx: connection })).toMatchObject([
        { kind: "created" },
      ]);
      expect(
        await store.create([anInstance({ id: instance.id })], { tx: connection }),
      ).toMatchObject([{ kind: "duplicate" }]);
      await connection.commit();
      expect((await store.get(targetOf(instance)))?.params).toBe('"é\u{1f600}"');
    }),
  );

  test("uses its own character set on a pool with another one", () =>
    inScope(async (inner) => {
      await aTurn(storeOn(inner, mysqlPool(inner, db.url, db.name, { charset: "latin1" })));
    }));

  test("keeps written data out of the error of a statement", () =>
    inScope(async (inner) => {
      const pool = mysqlPool(inner, db.url, db.name);
      const store = storeOn(inner, pool, { tablePrefix: "renamed_" });
      await store.migrate();
      const run = await leasedRun(store);
      await pool.query("RENAME TABLE renamed_step TO renamed_away");
      const part = aPart(run, { steps: [aStep(1, { result: '"hunter2"' })] });
      const error = await store.commit([part]).catch((thrown: unknown) => thrown);
      expect(inspect(error, { depth: 9 })).toContain("renamed_step");
      expect(inspect(error, { depth: 9 })).not.toContain("hunter2");
    }));

  test("refuses a pool that would have no connection left for its user", () =>
    inScope(async (inner) => {
      const small = mysqlPool(inner, db.url, db.name, { connectionLimit: 2 });
      expect(() => mysqlStore(small)).toThrow("connectionLimit is 2");
      expect(() => mysqlStore(small.pool)).toThrow("connectionLimit is 2");
      await aTurn(storeOn(inner, small, { connections: 1 }));
    }));

  test("keeps the engine's session settings out of the user's connections", () =>
    inScope(async (inner) => {
      const pool = mysqlPool(inner, db.url, db.name, { connectionLimit: 4 });
      const store = storeOn(inner, pool);
      const settings = "SELECT @@SESSION.sql_mode AS m, @@SESSION.innodb_lock_wait_timeout AS t";
      const [before] = await pool.query(settings);
      await Promise.all([aTurn(store), aTurn(store)]);
      await store.close();
      const after = await Promise.all(Array.from({ length: 4 }, () => pool.query(settings)));
      for (const [rows] of after) expect(rows).toEqual(before);
    }));

  describe("a tx", () => {
    const createIn = async (tx: unknown): Promise<Store> => {
      const store = storeOn(scope, mysqlPool(scope, db.url, db.name));
      await store.create([anInstance({ workflow: "tx" })], { tx: tx as MysqlTransaction });
      return store;
    };
    const visible = async (): Promise<number> => {
      const session = await db.session();
      const rows = await session.query(
        `SELECT iid FROM ${db.table("instance")} WHERE workflow = 'tx'`,
      );
      return rows.length;
    };

    test("may be a promise connection, from a pool or not", () =>
      inScope(async (inner) => {
        const pooled = await mysqlPool(inner, db.url, db.name).getConnection();
        inner.defer(() => pooled.destroy());
        const single = await mysqlPromise.createConnection({ uri: db.url, database: db.name });
        inner.defer(() => single.destroy());
        for (const connection of [pooled, single]) {
          const before = await visible();
          await connection.beginTransaction();
          await createIn(connection);
          expect(await visible()).toBe(before);
          await connection.rollback();
          expect(await visible()).toBe(before);
          await connection.beginTransaction();
          await createIn(connection);
          await connection.commit();
          expect(await visible()).toBe(before + 1);
        }
      }));

    test("may be a callback connection", () =>
      inScope(async (inner) => {
        const connection = mysql.createConnection({ uri: db.url, database: db.name });
        inner.defer(() => connection.destroy());
        const before = await visible();
        await connection.promise().beginTransaction();
        await createIn(connection);
        await connection.promise().rollback();
        expect(await visible()).toBe(before);
      }));

    test("is refused if it is a pool, or no connection at all", () =>
      inScope(async (inner) => {
        const callbacks = mysql.createPool({ uri: db.url, database: db.name });
        inner.defer(() => callbacks.promise().end());
        for (const tx of [callbacks, mysqlPool(inner, db.url, db.name), {}, null, 1, "tx"]) {
          await expect(createIn(tx)).rejects.toMatchObject({ code: "INVALID_REQUEST" });
        }
      }));
  });
});

// pg ----------------------------------------------------------------------------------------------------------------

const isPostgresAsked = servers.includes("postgres");

describe.runIf(isPostgresAsked)("pg", () => {
  test("refuses a tx that is a pool, or no connection at all", () =>
    inScope(async (scope) => {
      const { db, store } = await world(scope, "postgres");
      for (const tx of [postgresPool(scope, db.url), {}, null, 1, "tx"]) {
        const creating = store.create([anInstance()], { tx: tx as PgTransaction });
        await expect(creating).rejects.toMatchObject({ code: "INVALID_REQUEST" });
      }
    }));

  test("keeps a pool's options, even those in its URL, and adds its own", () =>
    inScope(async (scope) => {
      const { db } = await world(scope, "postgres");
      const session = await db.session();
      // This table, filled by a trigger, shows the engine's session from the inside.
      await session.query(`CREATE TABLE ${db.name}.seen (settings text)`);
      await session.query(
        `CREATE FUNCTION ${db.name}.note() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
           INSERT INTO ${db.name}.seen VALUES (concat_ws(', ', current_setting('enable_seqscan'),
             current_setting('transaction_isolation'), current_setting('statement_timeout'),
             CASE WHEN EXISTS (SELECT FROM pg_prepared_statements) THEN 'prepared' END));
           RETURN NULL; END $$`,
      );
      await session.query(
        `CREATE TRIGGER note AFTER UPDATE ON ${db.table("ticket")}
         FOR EACH ROW EXECUTE FUNCTION ${db.name}.note()`,
      );
      const options = "-c statement_timeout=54321 -c default_transaction_isolation=serializable";
      const inUrl = `${db.url}?options=${encodeURIComponent(options)}&application_name=mine`;
      for (const pool of [postgresPool(scope, inUrl), postgresPool(scope, db.url, { options })]) {
        const store = postgresStore(pool, { schema: db.name });
        scope.defer(() => store.close());
        await aTurn(store);
      }
      expect(await session.query(`SELECT DISTINCT settings FROM ${db.name}.seen`)).toEqual([
        { settings: "off, read committed, 54321ms, prepared" },
      ]);
    }));

  test("works with a pool that has parsers of its own", () =>
    inScope(async (scope) => {
      const { db } = await world(scope, "postgres");
      const types = {
        getTypeParser: (oid: number) => (text: string) => (oid === 20 ? BigInt(text) : text),
      };
      const store = postgresStore(postgresPool(scope, db.url, { types }), { schema: db.name });
      scope.defer(() => store.close());
      await aTurn(store);
    }));

  test("keeps the engine's settings and statements out of the user's sessions", () =>
    inScope(async (scope) => {
      const { db } = await world(scope, "postgres");
      const pool = postgresPool(scope, db.url);
      const store = postgresStore(pool, { schema: db.name });
      scope.defer(() => store.close());
      await Promise.all([aTurn(store), aTurn(store)]);
      await untouched(pool, 3);
    }));
});

/** Checks the settings of as many of the server's sessions as there are. */
async function untouched(pool: pg.Pool, sessions: number): Promise<void> {
  const clients = await Promise.all(Array.from({ length: sessions }, () => pool.connect()));
  const seen = new Set<number>();
  try {
    for (const client of clients) await client.query("BEGIN");
    for (const client of clients) {
      const { rows } = await client.query<Record<string, unknown>>(
        `SELECT pg_backend_pid() AS pid, current_setting('enable_seqscan') AS seqscan,
           current_setting('plan_cache_mode') AS plans, current_setting('lock_timeout') AS locks,
           current_setting('default_transaction_isolation') AS isolation,
           (SELECT count(*)::int FROM pg_prepared_statements) AS prepared`,
      );
      const { pid, ...settings } = rows[0]!;
      seen.add(Number(pid));
      expect(settings).toEqual({
        seqscan: "on",
        plans: "auto",
        locks: "0",
        isolation: "read committed",
        prepared: 0,
      });
    }
  } finally {
    for (const client of clients) {
      await client.query("ROLLBACK");
      client.release();
    }
  }
  expect(seen.size).toBe(sessions);
}

// pgbouncer ---------------------------------------------------------------------------------------------------------

/** Gives each case a schema of its own, and sends everything through the pooler. */
function bounced(url: string): StoreFixture {
  return {
    async open({ clock, migrate = true } = {}): Promise<TestDatabase> {
      const scope = new Scope();
      const db = await database(scope, "postgres" satisfies Kind, { url });
      const users = postgresPool(scope, url);
      const store = db.store({ clock });
      if (migrate) await store.migrate();
      return {
        store,
        oneWriter: false,
        connect: async () => db.store({ clock }),
        begin: () => postgresTransaction(users),
        destroy: async () => void (await scope.end()),
      };
    },
  };
}

const withBouncer = isPostgresAsked && process.env["PAWL_TEST_PGBOUNCER"] !== "no";

/** Whether the pooler refuses or ignores the engine's settings, the engine behaves the same. */
describe.runIf(withBouncer).each([
  [
    "refuses the engine's settings",
    "",
    {
      create: /read and claimed|taken id|20 concurrent|batch of 100|1 MiB/,
      transactions: /rolls back|duplicate|keep their order/,
      claim: /concurrent|see the last|dead/,
      commit: /as they are|everything at once|200 parts|fences|many connections/,
      events: /concurrent|awaited/,
      races: /^complete of a leased run/,
      resend: /said to be new/,
    },
  ],
  ["ignores the engine's settings", "options", { control: /restart/, runners: /./ }],
] as const)("a pgbouncer in transaction mode that %s", (_, ignored, themes) => {
  const scope = new Scope();
  let url: string;
  beforeAll(async () => {
    url = await bouncer(scope, sharedServer("postgres"), ignored);
  });
  afterAll(() => scope.end());

  conforms(() => bounced(url), themes);

  test("gives others sessions without traces of the engine", () =>
    inScope(async (inner) => {
      const { db, store } = await world(inner, "postgres", { url });
      await Promise.all([aTurn(store), aTurn(store), aTurn(store)]);
      await create(store);
      await untouched(postgresPool(inner, db.url), 3);
      await aTurn(store);
    }));
});

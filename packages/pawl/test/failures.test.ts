import { createServer, type AddressInfo } from "node:net";
import path from "node:path";
import { DatabaseSync } from "@photostructure/sqlite";
import { type MysqlPool, mysqlStore } from "pawl/mysql";
import { postgresStore } from "pawl/postgres";
import { sqliteStore } from "pawl/sqlite";
import { describe, expect, test } from "vitest";
import { WorkflowError } from "../src/model/errors.js";
import type { Runtime } from "../src/model/seams.js";
import { webRuntime } from "../src/runtime.js";
import type { Dialect } from "../src/sql/dialect.js";
import { mysqlDialect } from "../src/sql/dialects/mysql.js";
import { postgresDialect } from "../src/sql/dialects/postgres.js";
import { sqliteDialect } from "../src/sql/dialects/sqlite.js";
import type { Driver } from "../src/sql/driver.js";
import { mysqlDriver } from "../src/sql/drivers/mysql.js";
import { postgresDriver } from "../src/sql/drivers/postgres.js";
import { sqliteDriver } from "../src/sql/drivers/sqlite.js";
import { sqlStore } from "../src/sql/store.js";
import type { Claimed, Store } from "../src/store/store.js";
import {
  anEvent,
  anInstance,
  aPart,
  aStep,
  complete,
  create,
  recordedEvents,
  someInstances,
  recordedSteps,
  targetOf,
  pause,
} from "../src/testing/conformance/build.js";
import { inTime, untilNotBusy } from "../src/testing/conformance/concurrency.js";
import {
  type Database,
  database,
  mysqlPool,
  postgresPool,
  type Session,
  untilBlocked,
  world,
} from "./support/database.js";
import {
  databaseError,
  Fault,
  faultyMysqlPool,
  faultyPgClient,
  faultySqlite,
} from "./support/faults.js";
import { temporaryFolder } from "./support/folder.js";
import { proxy } from "./support/proxy.js";
import { inScope, type Scope } from "./support/scope.js";
import { canStartServers, type Kind, privateServer, servers } from "./support/servers.js";
import { until } from "./support/until.js";

// A restart under load ----------------------------------------------------------------------------------------------

const LANE = { queue: "default", handler: "load" };
const WORKERS = 4;
const LEASE_MS = 600_000;

/**
 * Sends a request again that the store gave up on, because a caller that was not told does not know the
 * outcome.
 */
async function insist<T>(work: () => Promise<T>): Promise<T> {
  return until(async () => {
    try {
      return { answer: await work() };
    } catch (error) {
      if (error instanceof WorkflowError && error.code === "STORE_UNAVAILABLE") return undefined;
      throw error;
    }
  }, "answered").then(({ answer }) => answer);
}

class Load {
  readonly created = new Set<string>();
  readonly sent = new Set<string>();
  readonly accepted = new Set<string>();
  rounds = 0;
  stopping = false;

  constructor(private readonly store: Store) {}

  async worker(runner: string): Promise<void> {
    const { store } = this;
    await insist(() => store.register(runner, LEASE_MS));
    while (!this.stopping) {
      const instance = anInstance({ workflow: LANE.handler });
      const [born] = await insist(() => store.create([instance]));
      expect(born?.kind).toBe("created");
      this.created.add(instance.iid);
      const event = anEvent();
      this.sent.add(event.eventId);
      const answer = await insist(() => store.sendEvent(targetOf(instance), event));
      if (answer.kind === "accepted" || answer.kind === "duplicate") {
        this.accepted.add(event.eventId);
      }
      await this.turn(runner);
      this.rounds += 1;
    }
    while ((await this.turn(runner)) > 0);
  }

  /** Claims runs and finishes them. A claim whose reply was lost shows up at the heartbeat. */
  private async turn(runner: string): Promise<number> {
    const { store } = this;
    const beat = await insist(() => store.heartbeat(runner, LEASE_MS));
    if (beat.kind === "dead") throw new Error("nobody may declare it dead");
    const unknown = await insist(() =>
      store.adopt(
        runner,
        beat.owned.map(({ iid }) => iid),
      ),
    );
    const answer = await insist(() =>
      store.claim({ runner, lanes: [LANE], limit: 3, reservedForNew: 0 }),
    );
    if (answer.kind === "dead") throw new Error("nobody may declare it dead");
    const runs = [...unknown, ...answer.claimed];
    for (const run of runs) await this.finish(run);
    return runs.length;
  }

  private async finish(run: Claimed): Promise<void> {
    const seenEvents = run.eventCount + 1_000;
    const parts = [
      aPart(run, { seenEvents, steps: [aStep(1)] }),
      aPart(run, { seenEvents, partNumber: 2, steps: [aStep(2)], next: complete() }),
    ];
    for (const part of parts) {
      const answer = await insist(() =>
        untilNotBusy(async () => (await this.store.commit([part]))[0]!),
      );
      expect(answer.kind).toBe("ok");
    }
  }
}

describe.skipIf(!canStartServers)("a server that restarts under load", () => {
  test.concurrent.each(servers)("%s: nothing acknowledged is lost or doubled", (kind: Kind) =>
    inScope(async (scope) => {
      const server = await privateServer(scope, kind);
      const db = await database(scope, kind, { url: server.url });
      const crashes = uncaught(scope);
      const { store, idleClients } = await storeWithIdleClients(scope, db);
      await store.migrate();
      const load = new Load(store);
      const workers = Array.from({ length: WORKERS }, (_, n) => load.worker(`runner-${n}`));
      const failed = Promise.all(workers).then(() => {});
      failed.catch(() => {}); // reported below

      for (let restarts = 0; restarts < 2; restarts++) {
        const before = load.rounds;
        await Promise.race([
          failed,
          until(() => load.rounds >= before + 3 * WORKERS, "working before the restart"),
        ]);
        await idleClients();
        await server.restart();
      }
      const after = load.rounds;
      await Promise.race([
        failed,
        until(() => load.rounds >= after + 3 * WORKERS, "working again after the restart"),
      ]);
      load.stopping = true;
      await failed;

      await verify(store, await db.session(), db, load);
      expect(crashes).toEqual([]);
    }),
  );
});

async function verify(store: Store, session: Session, db: Database, load: Load): Promise<void> {
  const rows = await session.query(`SELECT iid, status FROM ${db.table("instance")}`);
  expect(rows.map((row) => String(row["iid"])).toSorted()).toEqual([...load.created].toSorted());
  expect(new Set(rows.map((row) => String(row["status"])))).toEqual(new Set(["complete"]));
  expect(await session.query(`SELECT tid FROM ${db.table("ticket")}`)).toEqual([]);

  const steps = await session.query(`SELECT iid, ord FROM ${db.table("step")}`);
  const wanted = [...load.created].flatMap((iid) => [`${iid} 1`, `${iid} 2`]);
  expect(steps.map((row) => `${String(row["iid"])} ${String(row["ord"])}`).toSorted()).toEqual(
    wanted.toSorted(),
  );

  const events = await session.query(`SELECT event_id FROM ${db.table("event")}`);
  const stored = events.map((row) => String(row["event_id"]));
  expect(new Set(stored).size, "no event twice").toBe(stored.length);
  expect(
    [...load.accepted].filter((id) => !stored.includes(id)),
    "accepted and lost",
  ).toEqual([]);
  expect(
    stored.filter((id) => !load.sent.has(id)),
    "never sent",
  ).toEqual([]);
  expect(load.accepted.size).toBeGreaterThan(0);
  await until(async () => (await store.nextDueInMs([LANE])) === null, "nothing left");
}

/** Collects what would have ended a process without a test runner around it. */
function uncaught(scope: Scope): unknown[] {
  const seen: unknown[] = [];
  const note = (error: unknown): void => void seen.push(error);
  for (const event of ["uncaughtException", "unhandledRejection"] as const) {
    process.on(event, note);
    scope.defer(() => process.off(event, note));
  }
  return seen;
}

async function storeWithIdleClients(scope: Scope, db: Database) {
  const idle = async (pool: { query(sql: string): Promise<unknown> }): Promise<void> => {
    await Promise.all([pool.query("SELECT 1"), pool.query("SELECT 1")]);
  };
  if (db.kind === "postgres") {
    const pool = postgresPool(scope, db.url);
    const store = postgresStore(pool, { schema: db.name });
    scope.defer(() => store.close());
    return { store, idleClients: () => idle(pool) };
  }
  const pool = mysqlPool(scope, db.url, db.name);
  const store = mysqlStore(pool);
  scope.defer(() => store.close());
  return { store, idleClients: () => idle(pool) };
}

// Errors of the database's own --------------------------------------------------------------------------------------

const begin = (kind: Kind): string => (kind === "postgres" ? "BEGIN" : "START TRANSACTION");

describe.each(servers)("a lock on %s that another session holds", (kind: Kind) => {
  test.concurrent("longer than the engine waits makes the store resend the write until it succeeds", () =>
    inScope(async (scope) => {
      const { db, store } = await world(scope, kind);
      const run = await create(store);
      const [user, watcher] = [await db.session(), await db.session()];
      await user.query(begin(kind));
      await user.query(`SELECT tid FROM ${db.table("ticket")} FOR UPDATE`);
      const sending = store.sendEvent(targetOf(run), anEvent());
      sending.catch(() => {}); // reported below
      const waits = new Set<string>();
      await until(async () => {
        waits.add((await untilBlocked(db, watcher)).since);
        return waits.size >= 2;
      }, "waiting a second time");
      await user.query("COMMIT");
      expect((await inTime(sending, "sendEvent")).kind).toBe("accepted");
      expect((await recordedEvents(store, run)).length).toBe(1);
    }));

  test.concurrent("in a deadlock with the engine makes the store resend as the victim", () =>
    inScope(async (scope) => {
      const { db, store } = await world(scope, kind);
      const run = await create(store);
      const [user, watcher] = [await db.session(), await db.session()];
      await makeTheOtherTheVictim(db, user);
      await user.query(`SELECT iid FROM ${db.table("instance")} FOR UPDATE`);
      // The pause locks the ticket, then waits for the instance.
      const pausing = store.control(targetOf(run), pause);
      pausing.catch(() => {}); // reported below
      await untilBlocked(db, watcher);
      await user.query(`SELECT tid FROM ${db.table("ticket")} FOR UPDATE`);
      await user.query("COMMIT");
      expect(await inTime(pausing, "pause")).toMatchObject({ kind: "ok", status: "paused" });
    }));
});

async function makeTheOtherTheVictim(db: Database, user: Session): Promise<void> {
  if (db.kind === "postgres") {
    // Only the session that looks for a deadlock finds it, and gives way.
    await user.query("SET deadlock_timeout = '60s'");
    await user.query("BEGIN");
    return;
  }
  // The session that has written less gives way.
  await user.query(`CREATE TABLE weight (n INT PRIMARY KEY)`);
  await user.query("START TRANSACTION");
  const rows = Array.from({ length: 500 }, (_, n) => `(${n})`).join(",");
  await user.query(`INSERT INTO weight VALUES ${rows}`);
}

describe("a constraint that the data breaks", () => {
  test.concurrent.each(servers)("on %s fails at once, for its own caller only", (kind: Kind) =>
    inScope(async (scope) => {
      const { db, store } = await world(scope, kind);
      const session = await db.session();
      const key = kind === "postgres" ? "id" : "CONVERT(id USING utf8mb4)";
      await session.query(
        `ALTER TABLE ${db.table("instance")} ADD CONSTRAINT never CHECK (${key} <> 'forbidden')`,
      );
      const forbidden = (): Promise<unknown> =>
        store.create([anInstance({ id: "forbidden" })]).catch((e: unknown) => e);
      const error = await forbidden();
      expect(error).not.toBeInstanceOf(WorkflowError);
      expect(String(error)).toMatch(/never/);
      // Requests that came at the same time are not refused because of it.
      const [again] = await Promise.all([forbidden(), create(store), create(store)]);
      expect(again).toMatchObject({ message: (error as Error).message });
    }),
  );
});

// Errors by injection -----------------------------------------------------------------------------------------------

type Faulty = {
  readonly store: Store;
  readonly fault: Fault;
  /** How long each retry slept. */
  readonly slept: number[];
};

type Injection = {
  readonly name: string;
  readonly make: (scope: Scope) => Promise<Faulty>;
  readonly transient: readonly object[];
  readonly permanent: readonly object[];
};

function faulty<Tx>(dialect: Dialect, driver: Driver<Tx>, fault: Fault, scope: Scope): Faulty {
  const slept: number[] = [];
  const impatient: Runtime = {
    ...webRuntime,
    scheduler: { ...webRuntime.scheduler, sleep: async (ms) => void slept.push(ms) },
  };
  const store = sqlStore({ dialect, driver, runtime: impatient });
  scope.defer(() => store.close());
  return { store, fault, slept };
}

const injections: readonly Injection[] = [
  {
    name: "SQLite",
    make: async (scope) => {
      const fault = new Fault((sql) => sql === "BEGIN IMMEDIATE");
      const handle = new (faultySqlite(fault))(sqliteFile(scope));
      scope.defer(() => handle.close());
      const made = faulty(sqliteDialect("pawl_"), sqliteDriver(handle, "full"), fault, scope);
      await made.store.migrate();
      return made;
    },
    transient: [
      ...[5, 517, 6, 7, 13, 778].map((errcode) => ({ errcode })),
      ...["BUSY", "BUSY_TIMEOUT", "IOERR_WRITE", "FULL"].map((name) => ({
        code: `SQLITE_${name}`,
      })),
    ],
    permanent: [
      ...[1, 787, 11].map((errcode) => ({ errcode })),
      ...["ERROR", "CORRUPT_VTAB", "CONSTRAINT_CHECK"].map((name) => ({ code: `SQLITE_${name}` })),
    ],
  },
  ...servers.map((kind): Injection => {
    const isPostgres = kind === "postgres";
    return {
      name: kind,
      make: async (scope) => {
        const fault = new Fault((sql) => sql.includes("INSERT INTO") && sql.includes("instance"));
        const { db } = await world(scope, kind);
        if (isPostgres) {
          const pool = postgresPool(scope, db.url, { Client: faultyPgClient(fault) });
          const dialect = postgresDialect(db.name);
          return faulty(dialect, postgresDriver(pool, 1, dialect, webRuntime.clock), fault, scope);
        }
        const dialect = mysqlDialect("pawl_");
        const pool = faultyMysqlPool(mysqlPool(scope, db.url, db.name), fault);
        return faulty(dialect, mysqlDriver(pool, 1, lost(dialect)), fault, scope);
      },
      transient: isPostgres
        ? [
            "40001",
            "40P01",
            "55P03",
            "57014",
            "57P01",
            "57P03",
            "57P05",
            "25P03",
            "53100",
            "53300",
            "58030",
            "25006",
            "08006",
            "ECONNRESET",
          ].map((code) => ({ code }))
        : [
            ...[1020, 1205, 1213, 1021, 1114, 1317, 1969, 1040, 1226, 1053, 1290, 1836].map(
              (errno) => ({ errno }),
            ),
            { code: "PROTOCOL_CONNECTION_LOST" },
            { code: "ECONNRESET" },
          ],
      permanent: isPostgres
        ? ["42601", "42501", "23502", "23514"].map((code) => ({ code }))
        : [1064, 1048, 1142, 3819, 4025].map((errno) => ({ errno })),
    };
  }),
];

const isLock = (fields: object): boolean =>
  ["55P03", 1205].some((code) => Object.values(fields).includes(code));

const lost =
  (dialect: Dialect) =>
  (error: unknown): boolean =>
    dialect.classify(error) === "disconnected";

function sqliteFile(scope: Scope): string {
  return path.join(temporaryFolder(scope), "test.db");
}

describe.each(injections)("an error of $name", ({ make, transient, permanent }) => {
  test("that passes is retried, and the write applies once", () =>
    inScope(async (scope) => {
      const { store, fault, slept } = await make(scope);
      await create(store);
      for (const fields of transient) {
        slept.length = 0;
        fault.fail(2, databaseError(fields));
        const instance = await create(store);
        expect(fault.tries, JSON.stringify(fields)).toBe(3);
        // A lock is first tried in a hurry and then waited for, which saves one sleep.
        expect(slept.length).toBe(isLock(fields) ? 1 : 2);
        expect((await store.get(targetOf(instance)))?.iid).toBe(instance.iid);
      }
    }));

  test("that stays ends in STORE_UNAVAILABLE, without SQL, after bounded and jittered tries", () =>
    inScope(async (scope) => {
      const { store, fault, slept } = await make(scope);
      await create(store);
      slept.length = 0;
      fault.fail(Infinity, databaseError(transient[0]!));
      const instance = anInstance();
      const error = await store.create([instance]).catch((e: unknown) => e);
      expect(error).toBeInstanceOf(WorkflowError);
      expect(error).toMatchObject({ code: "STORE_UNAVAILABLE", status: 503 });
      expect((error as Error).message).not.toMatch(/insert|select|hunter2/i);
      expect(fault.tries).toBeGreaterThan(3);
      expect(fault.tries).toBe(slept.length + 1);
      const total = slept.reduce((sum, ms) => sum + ms, 0);
      expect(total).toBeGreaterThan(2_000);
      expect(total).toBeLessThan(10_000);
      expect(new Set(slept).size, "jitter").toBeGreaterThan(slept.length / 2);
      fault.fail(0, databaseError({}));
      expect(await store.get(targetOf(instance))).toBeNull();
      await create(store); // the store works again
    }));

  test("that stays is waited out once for all concurrent creates", () =>
    inScope(async (scope) => {
      const { store, fault } = await make(scope);
      await create(store);

      const tries: number[] = [];
      for (const instances of [someInstances(1), someInstances(200)]) {
        fault.fail(Infinity, databaseError(transient[0]!));
        const errors = await Promise.all(
          instances.map((instance) => store.create([instance]).catch((e: unknown) => e)),
        );
        for (const error of errors) expect(error).toMatchObject({ code: "STORE_UNAVAILABLE" });
        tries.push(fault.tries);
      }
      expect(tries[1]).toBe(tries[0]);
      fault.fail(0, databaseError({}));
      await Promise.all(someInstances(200).map((instance) => store.create([instance])));
    }));

  test("that is a mistake is thrown at once", () =>
    inScope(async (scope) => {
      const { store, fault } = await make(scope);
      await create(store);
      for (const fields of permanent) {
        fault.fail(1, databaseError(fields));
        const error = await store.create([anInstance()]).catch((e: unknown) => e);
        expect(error, JSON.stringify(fields)).toMatchObject(fields);
        expect(error).not.toBeInstanceOf(WorkflowError);
        expect(fault.tries).toBe(1);
      }
      await create(store);
    }));
});

// SQLite ------------------------------------------------------------------------------------------------------------

describe("a SQLite file that another connection is writing", () => {
  test("is waited for without blocking the process, and then written", () =>
    inScope(async (scope) => {
      const file = sqliteFile(scope);
      const tries = new Fault((sql) => sql === "BEGIN IMMEDIATE");
      const handle = new (faultySqlite(tries))(file);
      scope.defer(() => handle.close());
      const store = sqliteStore(handle);
      scope.defer(() => store.close());
      await store.migrate();
      const other = new DatabaseSync(file);
      scope.defer(() => other.close());
      other.exec("BEGIN IMMEDIATE");
      tries.fail(0, () => new Error());
      const instance = anInstance();
      const creating = store.create([instance]);
      creating.catch(() => {}); // reported below
      await until(() => tries.tries >= 3, "tried three times");
      other.exec("COMMIT");
      expect((await inTime(creating, "create"))[0]?.kind).toBe("created");
      expect(await recordedSteps(store, instance)).toEqual([]);
    }));

  test("is waited for when the engine opens its own connection, without leaving one open", () =>
    inScope(async (scope) => {
      const file = sqliteFile(scope);
      let opened = 0;
      let closed = 0;
      class Watched extends DatabaseSync {
        constructor(at: string) {
          super(at);
          opened += 1;
        }
        override close(): void {
          closed += 1;
          super.close();
        }
      }
      const handle = new Watched(file);
      scope.defer(() => handle.close());
      const other = new DatabaseSync(file);
      scope.defer(() => other.close());
      other.exec("BEGIN EXCLUSIVE"); // before the file is in WAL
      const store = sqliteStore(handle);
      scope.defer(() => store.close());
      const migrating = store.migrate();
      migrating.catch(() => {}); // reported below
      await until(() => opened >= 3, "tried twice");
      other.exec("COMMIT");
      await inTime(migrating, "migrate");
      expect(opened - closed, "the user's and the engine's").toBe(2);
    }));
});

// Servers that are not there ----------------------------------------------------------------------------------------

describe("a server that is not there", () => {
  test.concurrent.each(servers)("%s: answers STORE_UNAVAILABLE soon", (kind: Kind) =>
    inScope(async (scope) => {
      const url = new URL(
        kind === "postgres" ? "postgres://nobody@127.0.0.1/none" : "mysql://nobody@127.0.0.1/none",
      );
      url.port = String(await closedPort());
      const store =
        kind === "postgres"
          ? postgresStore(postgresPool(scope, url.href))
          : mysqlStore(mysqlPool(scope, url.href, "none"));
      scope.defer(() => store.close());
      const error = await inTime(
        store.now().catch((e: unknown) => e),
        "now",
      );
      expect(error).toMatchObject({ code: "STORE_UNAVAILABLE" });
    }),
  );

  test.concurrent.each(servers)("%s that accepts connections but stays silent: the same", (kind) =>
    inScope(async (scope) => {
      const { db } = await world(scope, kind);
      const line = await proxy(scope, kind, db.url);
      const store =
        kind === "postgres"
          ? postgresStore(
              postgresPool(scope, line.url, { connectionTimeoutMillis: 300, query_timeout: 300 }),
              { schema: db.name },
            )
          : impatientMysql(mysqlPool(scope, line.url, db.name, { connectTimeout: 300 }));
      scope.defer(() => store.close());
      scope.defer(() => line.close()); // or the pool would wait for an answer to its goodbye
      await store.now();
      line.fallSilent();
      // So many creates must not wait one after the other for a server that does not answer.
      const creating = someInstances(200).map((instance) => store.create([instance]));
      const errors = await inTime(
        Promise.all(creating.map((asked) => asked.catch((e: unknown) => e))),
        "creates",
      );
      for (const error of errors) expect(error).toMatchObject({ code: "STORE_UNAVAILABLE" });
    }),
  );
});

/** A store that gives up soon, because a mysql2 pool has no limit of its own that the engine could go by. */
function impatientMysql(pool: MysqlPool): Store {
  const dialect = mysqlDialect("pawl_");
  const driver = mysqlDriver(pool, 2, lost(dialect), 300);
  return sqlStore({ dialect, driver, runtime: webRuntime });
}

async function closedPort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => void server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}

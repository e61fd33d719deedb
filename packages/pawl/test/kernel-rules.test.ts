import path from "node:path";
import { DatabaseSync } from "@photostructure/sqlite";
import { mysqlStore } from "pawl/mysql";
import { sqliteStore } from "pawl/sqlite";
import pg from "pg";
import { describe, expect, test } from "vitest";
import { webRuntime } from "../src/runtime.js";
import { mysqlDialect } from "../src/sql/dialects/mysql.js";
import { mysqlDriver } from "../src/sql/drivers/mysql.js";
import { sqlStore } from "../src/sql/store.js";
import type { Store } from "../src/store/store.js";
import type { Part, PartAnswer } from "../src/store/part.js";
import {
  anEvent,
  anInstance,
  aPart,
  aRunner,
  aStep,
  claim,
  claimOne,
  commit,
  commitOk,
  complete,
  create,
  dueIn,
  recordedEvents,
  type Leased,
  leasedRun,
  leaseMs,
  loadOne,
  parkFor,
  release,
  sendTo,
  someInstances,
  currentStatus,
  recordedSteps,
  targetOf,
  waiting,
} from "../src/testing/conformance/build.js";
import { inTime, untilNotBusy } from "../src/testing/conformance/concurrency.js";
import {
  type Database,
  mysqlPool,
  type Session,
  untilBlocked,
  waiters,
  world,
} from "./support/database.js";
import { databaseError, Fault, faultyMysqlPool, watchMysqlErrors } from "./support/faults.js";
import { temporaryFolder } from "./support/folder.js";
import { inScope, type Scope } from "./support/scope.js";
import { type Kind, servers } from "./support/servers.js";
import { until } from "./support/until.js";

/*
 * The rules of the store that experiments showed to be necessary. For each of them the naive way, by hand, goes wrong, and
 * the store, in the same place, does not. Rules of speed are measured by the benchmarks, and rules of turns are tested with
 * the engine.
 */

const only = (kind: Kind): Kind[] => servers.filter((server) => server === kind);
const mysqlFamily = servers.filter((kind) => kind !== "postgres");

/** Opens a place for naive tables, a store beside them, and sessions of people with SQL prompts. */
async function scene(scope: Scope, kind: Kind) {
  const { db, store } = await world(scope, kind);
  const sessions = [await db.session(), await db.session(), await db.session()] as const;
  const [one, two, watcher] = sessions;
  if (kind === "postgres") for (const each of [one, two]) await quickToSeeDeadlocks(each);
  const run = (text: string) => one.query(text.replaceAll("naive", `${db.name}.naive`));
  return { db, store, one, two, watcher, run };
}

const quickToSeeDeadlocks = (session: Session) => session.query("SET deadlock_timeout = '50ms'");

const begin = (session: Session, level?: string): Promise<unknown> =>
  session
    .query(level === undefined ? "SELECT 1" : `SET SESSION TRANSACTION ISOLATION LEVEL ${level}`)
    .then(() => session.query("START TRANSACTION"));

/** Returns the error code with which a promise rejects. */
const codeOf = (work: Promise<unknown>): Promise<unknown> =>
  work.then(
    () => "no error",
    (error: { code?: unknown; errno?: unknown }) => error.errno ?? error.code,
  );

/** Starts a commit that stands in the middle of its write, with the ticket locked, until `finish`. */
async function inFlight(
  { db, watcher }: { db: Database; watcher: Session },
  blocker: Session,
  store: Store,
  part: Part,
): Promise<{ finish: () => Promise<Exclude<PartAnswer, { kind: "busy" }>> }> {
  await begin(blocker);
  await blocker.query(
    `INSERT INTO ${db.table("step")} (iid, run_no, ord, called_after, claim_no, part_no, name, count, type,
       status, attempts, started_at)
     VALUES ('${part.iid}', 1, ${part.steps[0]!.ord}, 0, 0, 0, 'x', 1, 'do', 'running', 0, 0)`,
  );
  const committing = commit(store, part);
  committing.catch(() => {}); // reported by finish
  await untilBlocked(db, watcher);
  return {
    finish: async () => {
      await blocker.query("ROLLBACK");
      return inTime(committing, "commit");
    },
  };
}

describe("claim first, read history in a later statement", () => {
  test.each(only("postgres"))("naive on %s: in one statement, the last commit is missed", (kind) =>
    inScope(async (scope) => {
      const { db, one, two, watcher, run } = await scene(scope, kind);
      await run("CREATE TABLE naive_ticket (tid text PRIMARY KEY, owner text)");
      await run("CREATE TABLE naive_step (tid text, ord int)");
      await run("INSERT INTO naive_ticket VALUES ('t', 'dead')");
      await one.query("BEGIN");
      await one.query(`SELECT tid FROM ${db.name}.naive_ticket FOR UPDATE`);
      await one.query(`INSERT INTO ${db.name}.naive_step VALUES ('t', 1)`);
      const claiming = two.query(
        `WITH claimed AS (UPDATE ${db.name}.naive_ticket SET owner = 'me' WHERE owner = 'dead' RETURNING tid)
         SELECT c.tid, s.ord FROM claimed AS c LEFT JOIN ${db.name}.naive_step AS s ON s.tid = c.tid`,
      );
      await untilBlocked(db, watcher, two);
      await one.query("COMMIT");
      expect(await claiming).toEqual([{ tid: "t", ord: null }]);
      expect(await two.query(`SELECT ord FROM ${db.name}.naive_step`)).toEqual([{ ord: 1 }]);
    }),
  );

  test.each(mysqlFamily)("naive on %s: in one snapshot, the last commit is missed", (kind) =>
    inScope(async (scope) => {
      const { one, two, run } = await scene(scope, kind);
      await run("CREATE TABLE naive_ticket (tid INT PRIMARY KEY, owner VARCHAR(9))");
      await run("CREATE TABLE naive_step (tid INT, ord INT)");
      await run("INSERT INTO naive_ticket VALUES (1, 'dead')");
      await begin(two, "REPEATABLE READ");
      await two.query("SELECT * FROM naive_ticket");
      await one.query("INSERT INTO naive_step VALUES (1, 1)");
      await two.query("UPDATE naive_ticket SET owner = 'me' WHERE owner = 'dead'");
      expect(await two.query("SELECT ord FROM naive_step")).toEqual([]);
      await two.query("COMMIT");
    }),
  );

  test.each(servers)(
    "the store on %s: a claim of a dead owner's run sees the owner's last commit",
    (kind) =>
      inScope(async (scope) => {
        const { db, store, one, watcher } = await scene(scope, kind);
        const run = await leasedRun(store);
        await store.retire(run.runner);
        const other = db.store();
        const runner = await aRunner(other);
        const last = await inFlight({ db, watcher }, one, store, aPart(run, { steps: [aStep(1)] }));
        expect(await claim(other, runner), "claimed while it is being written").toEqual([]);
        expect((await last.finish()).kind).toBe("ok");
        const taken = await claimOne(other, run, runner);
        expect((await loadOne(other, taken)).steps.map(({ ord }) => ord)).toEqual([1]);
      }),
  );
});

describe("a heartbeat touches one row, the runner's", () => {
  test.each(servers)("naive on %s: a heartbeat that touches tickets meets deadlocks", (kind) =>
    inScope(async (scope) => {
      const { db, one, two, watcher, run } = await scene(scope, kind);
      await run("CREATE TABLE naive_ticket (tid INT PRIMARY KEY, lease INT)");
      await run("INSERT INTO naive_ticket VALUES (1, 0), (2, 0)");
      const ticket = (tid: number): string =>
        `SELECT tid FROM ${db.name}.naive_ticket WHERE tid = ${tid} FOR UPDATE`;
      await begin(one);
      await one.query(ticket(2));
      const beating = codeOf(two.query(`UPDATE ${db.name}.naive_ticket SET lease = lease + 1`));
      await untilBlocked(db, watcher, two);
      const committing = codeOf(one.query(ticket(1)));
      const codes = await Promise.all([
        committing.then(async (code) => {
          await one.query("ROLLBACK");
          return code;
        }),
        beating,
      ]);
      expect(codes).toContain(kind === "postgres" ? "40P01" : 1213);
    }),
  );

  test.each(servers)("the store on %s: a heartbeat answers while its tickets are locked", (kind) =>
    inScope(async (scope) => {
      const { db, store, one, watcher } = await scene(scope, kind);
      const runner = await aRunner(store);
      await leasedRun(store, { runner });
      const second = await leasedRun(store, { runner });
      const part = aPart(second, { steps: [aStep(1)] });
      const { finish } = await inFlight({ db, watcher }, one, store, part);
      const beat = await inTime(db.store().heartbeat(runner, leaseMs), "heartbeat");
      expect(beat).toMatchObject({ kind: "ok", owned: { length: 2 } });
      expect((await finish()).kind).toBe("ok");
    }),
  );
});

describe("a low-water mark on due times", () => {
  test.each(servers)("the store on %s: a ticket that appears below it is found soon", (kind) =>
    inScope(async (scope) => {
      const { db, store, one } = await scene(scope, kind);
      const runner = await aRunner(store);
      const late = anInstance();
      await create(store, late);
      await one.query(`UPDATE ${db.table("ticket")} SET state = 'paused', due_at = NULL`);
      // Claims that find nothing move the mark up to half a second before now.
      for (let looks = 0; looks < 20; looks++) expect(await claim(store, runner)).toEqual([]);
      const anHourAgo = (await store.now()) - 3_600_000;
      await one.query(
        `UPDATE ${db.table("ticket")} SET state = 'queued', due_at = ${anHourAgo} WHERE tid = '${late.iid}'`,
      );
      const claimed = await until(async () => {
        const runs = await claim(store, runner);
        if (runs.length > 0) return runs;
        // A dispatcher that sleeps until the next due time wakes up for it.
        expect(await dueIn(store, late)).not.toBeNull();
        return null;
      }, "claimed");
      expect(claimed.map(({ iid }) => iid)).toEqual([late.iid]);
    }),
  );
});

describe.each(only("postgres"))("progress locks the ticket and does not write it", (kind) => {
  const place = async (session: Session, table: string): Promise<unknown> =>
    (await session.query(`SELECT ctid::text AS place FROM ${table}`))[0]?.["place"];

  test("naive: every step leaves a dead row", () =>
    inScope(async (scope) => {
      const { db, one, run } = await scene(scope, kind);
      await run("CREATE TABLE naive_ticket (tid INT PRIMARY KEY, steps INT)");
      await run("INSERT INTO naive_ticket VALUES (1, 0)");
      const before = await place(one, `${db.name}.naive_ticket`);
      await run("UPDATE naive_ticket SET steps = steps + 1");
      expect(await place(one, `${db.name}.naive_ticket`)).not.toBe(before);
    }));

  test("the store: the row stays where it is", () =>
    inScope(async (scope) => {
      const { db, store, one } = await scene(scope, kind);
      const run = await leasedRun(store);
      const before = await place(one, db.table("ticket"));
      for (let n = 1; n <= 5; n++) {
        await commitOk(store, aPart(run, { partNumber: n, steps: [aStep(n)] }));
      }
      expect(await place(one, db.table("ticket"))).toBe(before);
    }));
});

describe.each(only("postgres"))("one statement touches a row once", (kind) => {
  test("naive: of an update and a delete of one ticket, one silently does not happen", () =>
    inScope(async (scope) => {
      const { db, one, run } = await scene(scope, kind);
      await run("CREATE TABLE naive_ticket (tid INT PRIMARY KEY, state text)");
      await run("INSERT INTO naive_ticket VALUES (1, 'leased')");
      const [row] = await one.query(
        `WITH parked AS (UPDATE ${db.name}.naive_ticket SET state = 'parked' RETURNING 1),
           deleted AS (DELETE FROM ${db.name}.naive_ticket RETURNING 1)
         SELECT (SELECT count(*) FROM parked)::int + (SELECT count(*) FROM deleted)::int AS done`,
      );
      expect(row).toEqual({ done: 1 });
    }));

  test("naive: a run that is twice in a batch is applied once", () =>
    inScope(async (scope) => {
      const { one, db, run } = await scene(scope, kind);
      await run("CREATE TABLE naive_ticket (tid INT PRIMARY KEY, steps INT)");
      await run("INSERT INTO naive_ticket VALUES (1, 0)");
      await run(
        "UPDATE naive_ticket AS t SET steps = steps + p.n FROM (VALUES (1, 1), (1, 1)) AS p(tid, n) WHERE p.tid = t.tid",
      );
      expect(await one.query(`SELECT steps FROM ${db.name}.naive_ticket`)).toEqual([{ steps: 1 }]);
    }));

  test("the store: a first part after a takeover that also finishes leaves no ticket", () =>
    inScope(async (scope) => {
      const { db, store, one } = await scene(scope, kind);
      const run = await leasedRun(store);
      await store.retire(run.runner);
      const taken = await claimOne(store, run);
      const part = aPart(taken, { takeovers: 1, steps: [aStep(1)], next: complete() });
      expect((await commitOk(store, part)).state).toBe("finished");
      expect(await currentStatus(store, run)).toBe("complete");
      expect(await one.query(`SELECT tid FROM ${db.table("ticket")}`)).toEqual([]);
    }));

  test("the store: two parts of a run in one batch are refused, and neither is written", () =>
    inScope(async (scope) => {
      const { store } = await scene(scope, kind);
      const run = await leasedRun(store);
      const parts = [1, 2].map((n) => aPart(run, { partNumber: n, steps: [aStep(n)] }));
      await expect(store.commit(parts)).rejects.toThrow("one part per run");
      expect(await recordedSteps(store, run)).toEqual([]);
    }));
});

describe("READ COMMITTED, said explicitly", () => {
  test.each(mysqlFamily)(
    "naive on %s: at REPEATABLE READ, reading and then inserting deadlocks",
    (kind) =>
      inScope(async (scope) => {
        const { db, one, two, watcher, run } = await scene(scope, kind);
        await run("CREATE TABLE naive_ticket (tid INT PRIMARY KEY, due INT, KEY (due))");
        const outcomes: unknown[] = [];
        for (const level of ["READ COMMITTED", "REPEATABLE READ"]) {
          for (const session of [one, two]) {
            await begin(session, level);
            await session.query(
              "SELECT tid FROM naive_ticket WHERE due <= 9 FOR UPDATE SKIP LOCKED",
            );
          }
          const first = codeOf(one.query("INSERT INTO naive_ticket VALUES (1, 1)"));
          if (level === "REPEATABLE READ") await untilBlocked(db, watcher, one);
          const second = codeOf(two.query("INSERT INTO naive_ticket VALUES (2, 2)"));
          const codes = await Promise.all([first, second]);
          outcomes.push(codes.includes(1213) ? "deadlock" : codes);
          for (const session of [one, two]) await session.query("ROLLBACK");
        }
        expect(outcomes).toEqual([["no error", "no error"], "deadlock"]);
      }),
  );

  test.each(mysqlFamily)("the store on %s: many that claim and create never deadlock", (kind) =>
    inScope(async (scope) => {
      const { db } = await scene(scope, kind);
      let deadlocks = 0;
      const counting = (): Store => {
        const pool = watchMysqlErrors(mysqlPool(scope, db.url, db.name), (errno) => {
          if (errno === 1213) deadlocks += 1;
        });
        const store = mysqlStore(pool);
        scope.defer(() => store.close());
        return store;
      };
      const stores = Array.from({ length: 4 }, counting);
      await Promise.all(
        stores.map(async (store) => {
          const runner = await aRunner(store);
          for (let round = 0; round < 10; round++) {
            await store.create(someInstances(2));
            const runs = await claim(store, runner, { limit: 3 });
            const parts = runs.map((run) =>
              aPart(run, {
                steps: [aStep(1)],
                next: round % 2 === 0 ? complete() : release(),
              }),
            );
            await store.commit(parts);
          }
        }),
      );
      expect(deadlocks).toBe(0);
    }),
  );

  test.each(mysqlFamily)("naive on %s: INSERT … SELECT does not lock what it reads", (kind) =>
    inScope(async (scope) => {
      const { one, two, run } = await scene(scope, kind);
      await run("CREATE TABLE naive_ticket (tid INT PRIMARY KEY, claim INT)");
      await run("CREATE TABLE naive_step (tid INT, claim INT)");
      await run("INSERT INTO naive_ticket VALUES (1, 1)");
      await begin(one, "READ COMMITTED");
      await one.query("INSERT INTO naive_step SELECT tid, claim FROM naive_ticket WHERE claim = 1");
      await two.query("UPDATE naive_ticket SET claim = 2"); // does not wait
      await one.query("COMMIT");
      const [row] = await two.query(
        "SELECT t.claim AS fence, s.claim AS written FROM naive_ticket AS t, naive_step AS s",
      );
      expect(row).toEqual({ fence: 2, written: 1 }); // after the fence had moved
    }),
  );

  test.each(servers)("the store on %s: the fence cannot move while a part is written", (kind) =>
    inScope(async (scope) => {
      const { db, store, one, two, watcher } = await scene(scope, kind);
      const run = await leasedRun(store);
      const part = aPart(run, { steps: [aStep(1)] });
      const { finish } = await inFlight({ db, watcher }, one, store, part);
      const moving = two.query(`UPDATE ${db.table("ticket")} SET claim_no = claim_no + 1`);
      await untilBlocked(db, watcher, two);
      // The part is written, whether the fence moves before the store looks again or after.
      expect(["ok", "lost"]).toContain((await finish()).kind);
      await moving;
      expect((await recordedSteps(store, run)).map(({ ord }) => ord)).toEqual([1]);
      const next = aPart(run, { partNumber: 2, steps: [aStep(2)] });
      expect(await commit(store, next)).toEqual({ kind: "lost" });
      expect((await recordedSteps(store, run)).length).toBe(1);
    }),
  );

  test.each(mysqlFamily)("naive on %s: a lock wait that ends in 1205 leaves half a write", (kind) =>
    inScope(async (scope) => {
      const { one, two, run } = await scene(scope, kind);
      await run("CREATE TABLE naive_ticket (tid INT PRIMARY KEY, n INT)");
      await run("CREATE TABLE naive_step (tid INT)");
      await run("INSERT INTO naive_ticket VALUES (1, 0)");
      await begin(two);
      await two.query("SELECT tid FROM naive_ticket FOR UPDATE");
      await one.query("SET SESSION innodb_lock_wait_timeout = 1");
      await begin(one);
      await one.query("INSERT INTO naive_step VALUES (1)");
      expect(await codeOf(one.query("UPDATE naive_ticket SET n = 1"))).toBe(1205);
      await begin(one); // the connection's next transaction commits the last one
      await two.query("COMMIT");
      expect(await two.query("SELECT tid FROM naive_step")).toEqual([{ tid: 1 }]);
    }),
  );

  test.each(mysqlFamily)("the store on %s: after 1205 nothing of the write is left", (kind) =>
    inScope(async (scope) => {
      const { db, store, one } = await scene(scope, kind);
      const run = await leasedRun(store);
      const fault = new Fault((sql) => sql.includes("INSERT INTO") && sql.includes("outbox"));
      const pool = faultyMysqlPool(mysqlPool(scope, db.url, db.name), fault);
      const dialect = mysqlDialect("pawl_");
      const failing = sqlStore({
        dialect,
        driver: mysqlDriver(pool, 1, () => false),
        runtime: {
          ...webRuntime,
          scheduler: { ...webRuntime.scheduler, sleep: async () => {} },
        },
      });
      scope.defer(() => failing.close());
      fault.fail(Infinity, databaseError({ errno: 1205 }));
      await store.registerHooks(["onInstanceFinished"]);
      const part = aPart(run, { steps: [aStep(1)], next: complete() });
      expect(await failing.commit([part])).toEqual([{ kind: "busy" }]);
      await failing.now(); // the connection's next statement
      expect(await recordedSteps(store, run)).toEqual([]);
      await one.query(`SELECT tid FROM ${db.table("ticket")} FOR UPDATE NOWAIT`);
    }),
  );
});

describe.each(only("postgres"))("a plan made while a table was empty", (kind) => {
  const seqScans = async (session: Session, schema: string, table: string): Promise<number> => {
    const [row] = await session.query(
      "SELECT seq_scan::int AS n FROM pg_stat_user_tables WHERE schemaname = $1 AND relname = $2",
      [schema, table],
    );
    return Number(row?.["n"]);
  };

  test("naive: it reads the whole table ever after", () =>
    inScope(async (scope) => {
      const { one, run } = await scene(scope, kind);
      // Autovacuum would renew the plan at some point.
      await run(
        "CREATE TABLE naive_ticket (tid text PRIMARY KEY, state text) WITH (autovacuum_enabled = false)",
      );
      await run("VACUUM ANALYZE naive_ticket");
      await one.query("SET plan_cache_mode = force_generic_plan");
      await run("PREPARE fence AS SELECT tid FROM naive_ticket WHERE tid = ANY($1::text[])");
      await one.query("EXECUTE fence ('{x}')");
      await run(
        "INSERT INTO naive_ticket SELECT 'id' || n, 'x' FROM generate_series(1, 20000) AS n",
      );
      const plan = await one.query("EXPLAIN EXECUTE fence ('{x}')");
      expect(JSON.stringify(plan)).toContain("Seq Scan");
    }));

  test("the store: it never scans a table that grows", () =>
    inScope(async (scope) => {
      const { db, store: maker, one } = await scene(scope, kind);
      const tables = ["ticket", "instance", "step", "event"].map((name) => db.table(name));
      await one.query(`VACUUM ANALYZE ${tables.join(", ")}`);
      const store = db.store();
      const turn = async (): Promise<void> => {
        const run = await leasedRun(store);
        await sendTo(store, run);
        await commitOk(store, aPart(run, { seenEvents: 1, steps: [aStep(1)] }));
        const parked = aPart(run, { seenEvents: 1, partNumber: 2, next: parkFor(["paid"]) });
        await commitOk(store, parked);
        await sendTo(store, run);
        const again = await claimOne(store, run);
        await loadOne(store, again);
        await commitOk(store, aPart(again, { steps: [aStep(2)], next: complete() }));
      };
      await turn(); // plans everything on empty tables
      await maker.close();
      await one.query(
        `INSERT INTO ${db.table("ticket")} (tid, queue, handler, class, due_at, state, run_no, claim_no)
         SELECT 'id' || n, 'default', 'later', 1, 9e12::bigint + n, 'queued', 1, 0 FROM generate_series(1, 20000) AS n`,
      );
      const before = await seqScans(one, db.name, "ticket");
      await turn();
      await store.close(); // a connection that ends reports its statistics
      const idle = `SELECT 1 FROM pg_stat_activity WHERE strpos(query, '${db.name}') > 0 AND pid <> pg_backend_pid()`;
      await until(async () => (await one.query(idle)).length === 0, "ended");
      expect(await seqScans(one, db.name, "ticket")).toBe(before);
    }));
});

describe("SQLite, a write on the user's handle inside the user's transaction", () => {
  const file = (scope: Scope): string => path.join(temporaryFolder(scope), "test.db");

  test("naive: it is acknowledged and then rolled back", () =>
    inScope(async (scope) => {
      const handle = new DatabaseSync(file(scope));
      scope.defer(() => handle.close());
      handle.exec("CREATE TABLE naive_event (n INT)");
      handle.exec("BEGIN");
      expect(handle.prepare("INSERT INTO naive_event VALUES (1)").run().changes).toBe(1);
      handle.exec("ROLLBACK");
      expect(handle.prepare("SELECT * FROM naive_event").all()).toEqual([]);
    }));

  test.each([":memory:", "a file"])("the store on %s: an acknowledged write stays", (place) =>
    inScope(async (scope) => {
      const handle = new DatabaseSync(place === ":memory:" ? place : file(scope));
      scope.defer(() => handle.close());
      const store = sqliteStore(handle);
      scope.defer(() => store.close());
      await store.migrate();
      handle.exec("CREATE TABLE of_the_user (n INT)");
      handle.exec("BEGIN");
      handle.exec("INSERT INTO of_the_user VALUES (1)");
      const instance = anInstance();
      const creating = store.create([instance]);
      creating.catch(() => {}); // reported below
      handle.exec("ROLLBACK");
      expect((await inTime(creating, "create"))[0]?.kind).toBe("created");
      expect(await currentStatus(store, instance)).toBe("queued");
      expect(handle.prepare("SELECT * FROM of_the_user").all()).toEqual([]);
    }),
  );
});

describe("a user's transaction only inserts", () => {
  test.each(servers)("naive on %s: a transaction that locks a ticket delays a batch", (kind) =>
    inScope(async (scope) => {
      const { db, one, two, watcher, run } = await scene(scope, kind);
      await run("CREATE TABLE naive_ticket (tid INT PRIMARY KEY, events INT, steps INT)");
      await run("INSERT INTO naive_ticket VALUES (1, 0, 0), (2, 0, 0), (3, 0, 0)");
      await begin(one);
      await one.query(`UPDATE ${db.name}.naive_ticket SET events = events + 1 WHERE tid = 2`);
      const committing = two.query(`UPDATE ${db.name}.naive_ticket SET steps = steps + 1`);
      await untilBlocked(db, watcher, two);
      const seen = await watcher.query(`SELECT SUM(steps) AS n FROM ${db.name}.naive_ticket`);
      expect(Number(seen[0]?.["n"])).toBe(0);
      await one.query("COMMIT");
      await committing;
    }),
  );

  test.each(servers)("the store on %s: the run of an open sendEvent commits at once", (kind) =>
    inScope(async (scope) => {
      const { db, store } = await scene(scope, kind);
      const runs: Leased[] = [];
      for (let n = 0; n < 3; n++) runs.push(await leasedRun(store));
      const tx = await transaction(scope, db);
      await store.sendEvent(targetOf(runs[1]!), anEvent(), { tx: tx.tx });
      const parts = runs.map((run) => aPart(run, { steps: [aStep(1)], next: complete() }));
      const answers = await inTime(store.commit(parts), "commit");
      expect(answers.map(({ kind: answer }) => answer)).toEqual(["ok", "ok", "ok"]);
      await tx.commit();
    }),
  );

  test.each(servers)(
    "the store on %s: a part for a locked ticket is busy, and the others are applied",
    (kind) =>
      inScope(async (scope) => {
        const { db, store, one } = await scene(scope, kind);
        const runs: Leased[] = [];
        for (let n = 0; n < 3; n++) runs.push(await leasedRun(store));
        await begin(one);
        await one.query(
          `SELECT tid FROM ${db.table("ticket")} WHERE tid = '${runs[1]!.iid}' FOR UPDATE`,
        );
        const parts = runs.map((run) => aPart(run, { steps: [aStep(1)] }));
        const answers = await inTime(store.commit(parts), "commit");
        expect(answers.map(({ kind: answer }) => answer)).toEqual(["ok", "busy", "ok"]);
        await one.query("COMMIT");
        expect((await commitOk(store, parts[1]!)).state).toBe("leased");
      }),
  );

  test.each(servers)(
    "the store on %s: a reopen passes over a ticket that someone has locked",
    (kind) =>
      inScope(async (scope) => {
        const { db, store, one } = await scene(scope, kind);
        const runner = await aRunner(store);
        const runs = [await waiting(store, { runner }), await waiting(store, { runner })];
        const lock = `SELECT tid FROM ${db.table("ticket")} WHERE tid = '${runs[0]!.iid}' FOR UPDATE`;
        await begin(one);
        await one.query(lock);
        const reopened = await inTime(store.reopen(runner, runs), "reopen");
        expect(reopened.map(({ iid }) => iid)).toEqual([runs[1]!.iid]);
        await one.query("COMMIT");
        expect(await store.reopen(runner, runs)).toMatchObject([{ iid: runs[0]!.iid }]);
      }),
  );

  test.each(servers)("the store on %s: a part for a locked instance is busy, too", (kind) =>
    inScope(async (scope) => {
      const { db, store, one } = await scene(scope, kind);
      const runs: Leased[] = [];
      for (let n = 0; n < 2; n++) runs.push(await leasedRun(store));
      await begin(one);
      await one.query(
        `SELECT iid FROM ${db.table("instance")} WHERE iid = '${runs[1]!.iid}' FOR UPDATE`,
      );
      const parts = runs.map((run) => aPart(run, { steps: [aStep(1)], next: complete() }));
      const answers = await inTime(store.commit(parts), "commit");
      expect(answers.map(({ kind: answer }) => answer)).toEqual(["ok", "busy"]);
      await one.query("COMMIT");
      expect((await commitOk(store, parts[1]!)).state).toBe("finished");
    }),
  );
});

async function transaction(scope: Scope, db: Database) {
  if (db.kind === "postgres") {
    const client = new pg.Client({ connectionString: db.url });
    await client.connect();
    scope.defer(() => client.end());
    await client.query("BEGIN");
    return { tx: client, commit: () => client.query("COMMIT") };
  }
  const connection = await mysqlPool(scope, db.url, db.name).getConnection();
  scope.defer(() => connection.release());
  await connection.beginTransaction();
  return { tx: connection, commit: () => connection.commit() };
}

describe("lock first, then take the time", () => {
  const HELD_MS = 300;
  const clock = (kind: Kind, function_ = "clock_timestamp"): string =>
    kind === "postgres"
      ? `floor(extract(epoch FROM ${function_}()) * 1000)::bigint`
      : "(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(3)) DIV 1000)";
  const nowIn = async (session: Session, kind: Kind): Promise<number> =>
    Number((await session.query(`SELECT ${clock(kind)} AS t`))[0]?.["t"]);

  /** Holds a row that the other session waits for, and returns the time at which it let go. */
  async function holdAndLetGo(db: Database, holder: Session, watcher: Session): Promise<number> {
    await untilBlocked(db, watcher);
    const since = await nowIn(holder, db.kind);
    await until(async () => (await nowIn(holder, db.kind)) >= since + HELD_MS, "held long enough");
    const released = await nowIn(holder, db.kind);
    await holder.query("COMMIT");
    return released;
  }

  test.each(servers)("naive on %s: the time is as old as the wait was long", (kind) =>
    inScope(async (scope) => {
      const { db, one, two, watcher, run } = await scene(scope, kind);
      await run("CREATE TABLE naive_ticket (tid INT PRIMARY KEY)");
      await run("CREATE TABLE naive_event (at BIGINT)");
      await run("INSERT INTO naive_ticket VALUES (1)");
      await begin(one);
      await one.query(`SELECT tid FROM ${db.name}.naive_ticket FOR UPDATE`);
      const sending = two.query(
        `INSERT INTO ${db.name}.naive_event
         SELECT ${clock(kind, "now")} FROM ${db.name}.naive_ticket WHERE tid = 1 FOR UPDATE`,
      );
      const released = await holdAndLetGo(db, one, watcher);
      await sending;
      const [row] = await two.query(`SELECT at FROM ${db.name}.naive_event`);
      expect(Number(row?.["at"])).toBeLessThanOrEqual(released - HELD_MS);
    }),
  );

  test.each(servers)("the store on %s: an event is as new as its lock", (kind) =>
    inScope(async (scope) => {
      const { db, store, one, watcher } = await scene(scope, kind);
      const run = await leasedRun(store);
      await begin(one);
      await one.query(`SELECT tid FROM ${db.table("ticket")} FOR UPDATE`);
      const sending = store.sendEvent(targetOf(run), anEvent());
      sending.catch(() => {}); // reported below
      const released = await holdAndLetGo(db, one, watcher);
      expect((await inTime(sending, "sendEvent")).kind).toBe("accepted");
      const [event] = await recordedEvents(store, run);
      expect(event!.createdAt).toBeGreaterThanOrEqual(released);
    }),
  );
});

describe("what decides a race lives on the ticket", () => {
  test.each(servers)("naive on %s: a sender that looks for waiting steps loses a wake-up", (kind) =>
    inScope(async (scope) => {
      const { db, one, two, run } = await scene(scope, kind);
      const level = kind === "postgres" ? undefined : "READ COMMITTED";
      const [ticket, step, event] = ["ticket", "step", "event"].map((n) => `${db.name}.naive_${n}`);
      await run("CREATE TABLE naive_ticket (tid INT PRIMARY KEY, due INT)");
      await run("CREATE TABLE naive_step (tid INT, waits VARCHAR(9))");
      await run("CREATE TABLE naive_event (tid INT, type VARCHAR(9))");
      await run("INSERT INTO naive_ticket VALUES (1, NULL)");
      // The run looks for events, finds none, and parks.
      await begin(one, level);
      expect(await one.query(`SELECT * FROM ${event}`)).toEqual([]);
      await one.query(`INSERT INTO ${step} VALUES (1, 'paid')`);
      // Meanwhile the sender looks for a step that waits, finds none, and wakes nobody.
      await begin(two, level);
      await two.query(`INSERT INTO ${event} VALUES (1, 'paid')`);
      const woken = await two.query(`SELECT tid FROM ${step} WHERE waits = 'paid'`);
      if (woken.length > 0) await two.query(`UPDATE ${ticket} SET due = 0`);
      await two.query("COMMIT");
      await one.query("COMMIT");
      expect(
        await one.query(
          `SELECT s.waits, e.type, t.due FROM ${step} AS s, ${event} AS e, ${ticket} AS t`,
        ),
      ).toEqual([{ waits: "paid", type: "paid", due: null }]);
    }),
  );

  test.each(servers)("the store on %s: an event that meets a park wakes the run", (kind) =>
    inScope(async (scope) => {
      const { db, store, one, watcher } = await scene(scope, kind);
      const run = await leasedRun(store);
      const part = aPart(run, { steps: [aStep(1)], next: parkFor(["paid"], { inMs: 600_000 }) });
      const { finish } = await inFlight({ db, watcher }, one, store, part);
      const sending = sendTo(db.store(), run);
      sending.catch(() => {}); // reported below
      await until(async () => (await waiters(db, watcher)).length > 1, "the sender waits too");
      const parked = await finish();
      const sent = await inTime(sending, "sendEvent");
      expect(parked).toMatchObject({ kind: "ok" });
      // Whichever came second has seen the first.
      const wentOn = parked.kind === "ok" && parked.state === "leased";
      expect(wentOn ? parked.events.length === 1 : sent.woken).toBe(true);
      if (!wentOn) expect(await dueIn(store, run)).toBe(0);
    }),
  );

  test.each(servers)("the store on %s: a park that meets an event goes on with it", (kind) =>
    inScope(async (scope) => {
      const { db, store, one, watcher } = await scene(scope, kind);
      const run = await leasedRun(store);
      await begin(one);
      await one.query(
        `INSERT INTO ${db.table("event")} (iid, run_no, number, event_id, kind, type, created_at)
         VALUES ('${run.iid}', 1, 1, 'x', 'event', 'x', 0)`,
      );
      const sending = sendTo(db.store(), run);
      sending.catch(() => {}); // reported below
      await untilBlocked(db, watcher);
      const part = aPart(run, { next: parkFor(["paid"], { inMs: 600_000 }) });
      expect(await store.commit([part])).toEqual([{ kind: "busy" }]);
      await one.query("ROLLBACK");
      await inTime(sending, "sendEvent");
      const answer = await untilNotBusy(async () => (await store.commit([part]))[0]!);
      expect(answer).toMatchObject({ kind: "ok", state: "leased", events: [{ type: "paid" }] });
    }),
  );
});

describe("keys are compared byte by byte", () => {
  test.each(mysqlFamily)("naive on %s: utf8mb4_bin says 'a' = 'a '", (kind) =>
    inScope(async (scope) => {
      const { run, one } = await scene(scope, kind);
      await run(
        "CREATE TABLE naive_instance (id VARCHAR(9) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin PRIMARY KEY)",
      );
      await run("INSERT INTO naive_instance VALUES ('a')");
      expect(await codeOf(one.query("INSERT INTO naive_instance VALUES ('a ')"))).toBe(1062);
    }),
  );

  test.each(servers)("the store on %s: these are different ids", (kind) =>
    inScope(async (scope) => {
      const { store } = await scene(scope, kind);
      for (const id of ["a", "a ", "A", "á", "a\u0301"]) await create(store, { id });
      expect((await store.get({ workflow: "order", id: "a " }))?.id).toBe("a ");
    }),
  );
});

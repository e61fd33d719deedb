import { randomBytes } from "node:crypto";
import { DatabaseSync } from "@photostructure/sqlite";
import mysql from "mysql2/promise";
import pg from "pg";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { mysqlStore } from "pawl/mysql";
import { sqliteStore } from "pawl/sqlite";
import { hookNames } from "../src/model/hooks.js";
import type { Dialect } from "../src/sql/dialect.js";
import { mysqlDialect } from "../src/sql/dialects/mysql.js";
import { postgresDialect } from "../src/sql/dialects/postgres.js";
import { sqliteDialect } from "../src/sql/dialects/sqlite.js";
import { webRuntime } from "../src/runtime.js";
import { postgresDriver, startupOptions } from "../src/sql/drivers/postgres.js";
import { Sql } from "../src/sql/sql.js";
import type { Statement } from "../src/sql/statement.js";
import { sqlStore } from "../src/sql/store.js";
import { everything } from "../src/sql/verbs/claim.js";
import { sqlVerbs } from "../src/sql/verbs/index.js";
import type { Store } from "../src/store/store.js";
import { sharedServer, stores } from "./support/servers.js";
import { until } from "./support/until.js";

/** Enough rows that reading all of a table shows, in a plan and on the clock. */
const PARKED = 50_000;

/** Tables that grow. `runner` and `meta` stay small, and the inbox is read from its start, up to a limit. */
const growing = ["instance", "past_run", "ticket", "step", "attempt", "event", "outbox"];
/** The tables that the tests fill. */
const filled = ["instance", "ticket", "step", "event", "outbox"];
/** The tables whose rows all go away again. */
const emptied = ["ticket", "outbox"];

/** Returns every statement that runs often, as the store would write it. */
function statementsOf(dialect: Dialect): Statement[] {
  const sql = new Sql(dialect, undefined);
  const verbs = sqlVerbs(sql, () => "");
  // The text of a claim depends on the number of lanes, so it is written when first needed.
  const lanes = ["a", "b"].map((handler) => ({ queue: "default", handler }));
  const claim = verbs.claim.script(
    { runner: "r", lanes, limit: 10, reservedForNew: 1 },
    everything,
  );
  claim.next();
  claim.next([{ id: "r", dead: 0, now: 1 }]);
  const nextDue = verbs.nextDue.script(lanes, everything);
  nextDue.next();
  nextDue.next([]);
  const all = sql.statements.filter(({ name }) => name !== null);
  return [...new Map(all.map((statement) => [statement.name, statement])).values()];
}

const unique = (): string => `plans_${randomBytes(4).toString("hex")}`;

describe.runIf(stores.includes("sqlite"))("on SQLite", () => {
  const handle = new DatabaseSync(":memory:");
  const dialect = sqliteDialect("pawl_");
  beforeAll(() => sqliteStore(handle).migrate());
  afterAll(() => handle.close());

  for (const statement of statementsOf(dialect)) {
    test(`${statement.name} scans no table that grows`, () => {
      const plan = handle.prepare(`EXPLAIN QUERY PLAN ${statement.text}`).all() as {
        detail: string;
      }[];
      const aliases = aliasesOf(statement.text, "pawl_");
      const scans = plan
        .map(({ detail }) => detail.split(" "))
        .filter(([how, what]) => how === "SCAN" && aliases.has(what ?? ""));
      expect(scans).toEqual([]);
    });
  }

  test("unknown.next goes from lane to lane, not from ticket to ticket", () => {
    const [next] = statementsOf(dialect).filter(({ name }) => name === "unknown.next");
    const plan = handle.prepare(`EXPLAIN QUERY PLAN ${next?.text}`).all() as { detail: string }[];
    expect(plan.map(({ detail }) => detail).join()).toContain(
      "pawl_ticket_due (queue=? AND handler>?)",
    );
  });
});

describe.runIf(stores.includes("postgres"))(`on PostgreSQL, with ${PARKED} parked runs`, () => {
  const schema = unique();
  const dialect = postgresDialect(schema);
  let now = 1_000;
  let pool: pg.Pool;
  let store: Store;
  let engine: pg.Client;
  const whileEmpty = new Map<string, number>();

  beforeAll(async () => {
    pool = new pg.Pool({ connectionString: sharedServer("postgres"), max: 2 });
    store = sqlStore({
      dialect,
      driver: postgresDriver(pool, 1, dialect, { now: () => now }),
      runtime: webRuntime,
    });
    await store.migrate();
    // This is the trap: statistics that say "empty", and plans made by them.
    for (const table of growing) await pool.query(`ANALYZE ${schema}.${table}`);
    for (const [name, act] of Object.entries(hot)) whileEmpty.set(name, await quickest(act));
    await parkOnPostgres(pool, schema);
    engine = new pg.Client({ connectionString: sharedServer("postgres"), options: startupOptions });
    await engine.connect();
  });
  afterAll(async () => {
    await engine.end();
    await store.close();
    await pool.query(`DROP SCHEMA ${schema} CASCADE`);
    await pool.end();
  });

  /** The calls that the engine makes all the time, for a run that does not exist, so that only the search costs. */
  const hot: Record<string, () => Promise<unknown>> = {
    get: () => store.get({ workflow: "a", id: "none" }),
    getMany: () => Promise.all(["none", "no"].map((id) => store.get({ workflow: "a", id }))),
    sendEvent: () =>
      store.sendEvent({ workflow: "a", id: "none" }, { eventId: "e", type: "t", payload: null }),
    poll: () => store.poll([{ iid: "none", runNumber: 1, claimNumber: 1, seenEvents: 0 }]),
    load: () => store.load([{ iid: "none", runNumber: 1, historyBytes: 0, takenOver: false }]),
    heartbeat: () => store.heartbeat("none", 1_000),
    claim: () =>
      store.claim({
        runner: "none",
        lanes: [{ queue: "default", handler: "a" }],
        limit: 10,
        reservedForNew: 1,
      }),
    nextDueInMs: () => store.nextDueInMs([{ queue: "default", handler: "a" }], hookNames),
    claimHooks: () =>
      store.claimHooks({ hooks: hookNames, limit: 10, leaseMs: 1_000, maxAttempts: 3 }),
    unknownLanes: () => store.unknownLanes([{ queue: "default", handler: "none" }]),
  };

  for (const name of Object.keys(hot)) {
    test(`${name} is as quick as it was when the tables were empty`, async () => {
      now += 2_000; // the driver looks at table sizes once a second
      const act = hot[name] as () => Promise<unknown>;
      await act();
      const ratio = (await quickest(act)) / (whileEmpty.get(name) ?? 0);
      // Reading all of a table is more than a hundred times slower. A busy machine is not.
      expect(ratio).toBeLessThan(20);
    });
  }

  /** A store that records what it sends: the names of prepared statements and the texts of others. */
  function telling(ownSchema: string) {
    const sent: string[] = [];
    class Client extends pg.Client {
      override query: pg.Client["query"] = ((query: { name?: string; text: string }) => {
        sent.push(query.name ?? query.text);
        return super.query(query);
      }) as pg.Client["query"];
    }
    const ownDialect = postgresDialect(ownSchema);
    const ownPool = new pg.Pool({ connectionString: sharedServer("postgres"), Client });
    const driver = postgresDriver(ownPool, 1, ownDialect, { now: () => now });
    const ownStore = sqlStore({ dialect: ownDialect, driver, runtime: webRuntime });
    return { sent, ownPool, ownStore };
  }

  test("an idle connection plans a load and a commit, once", async () => {
    const { sent, ownPool, ownStore } = telling(schema);
    const lanes = [{ queue: "default", handler: "a" }];
    for (let n = 0; n < 2; n++) await ownStore.nextDueInMs(lanes);
    await ownStore.load([{ iid: "none", runNumber: 1, historyBytes: 0, takenOver: false }]);
    await ownStore.close();
    await ownPool.end();
    expect(sent.filter((name) => /load|commit/.test(name))).toEqual([
      "pawl.load",
      "pawl.commit.events",
      "pawl.load",
    ]);
  });

  test("a plan that cannot be made yet because of a lock is made by the statement that needs it", async () => {
    const { sent, ownPool, ownStore } = telling(schema);
    const session = await pool.connect();
    await session.query("BEGIN");
    await session.query(`LOCK TABLE ${schema}.step IN ACCESS EXCLUSIVE MODE`);
    try {
      await ownStore.nextDueInMs([{ queue: "default", handler: "a" }]);
      const run = { iid: "none", runNumber: 1, historyBytes: 0, takenOver: false };
      const loaded = ownStore.load([run]);
      // These are the rehearsal, the statement that trusts in it, and the same statement on another connection.
      const loads = (): number => sent.filter((name) => name === "pawl.load").length;
      await expect.poll(loads, { timeout: 20_000 }).toBe(3);
      await session.query("ROLLBACK");
      expect(await loaded).toHaveLength(1);
    } finally {
      session.release(true);
      await ownStore.close();
      await ownPool.end();
    }
  });

  test("plans are discarded when a table has grown, and not before", async () => {
    const own = unique();
    const { sent, ownPool, ownStore } = telling(own);
    const forgets = async (): Promise<boolean> => {
      now += 2_000;
      sent.length = 0;
      // The first heartbeat looks at the sizes, and the second acts on what was found.
      for (let n = 0; n < 2; n++) await ownStore.heartbeat("none", 1_000);
      return sent.includes("DISCARD PLANS");
    };
    try {
      await ownStore.migrate();
      await forgets();
      expect(await forgets()).toBe(false);
      await parkOnPostgres(pool, own);
      await expect.poll(forgets, { timeout: 20_000 }).toBe(true);
      expect(await forgets()).toBe(false);
    } finally {
      await ownStore.close();
      await pool.query(`DROP SCHEMA ${own} CASCADE`);
      await ownPool.end();
    }
  });

  test("a locked table holds up nothing that does not need it", async () => {
    const session = await pool.connect();
    await session.query("BEGIN");
    try {
      await session.query(`LOCK TABLE ${schema}.attempt IN ACCESS EXCLUSIVE MODE`);
      for (let n = 0; n < 3; n++) {
        now += 2_000;
        await expect(store.heartbeat("none", 1_000)).resolves.toEqual({ kind: "dead" });
      }
    } finally {
      await session.query("ROLLBACK");
      session.release();
    }
  });

  for (const statement of statementsOf(dialect)) {
    test(`${statement.name} scans no table that grows`, async () => {
      expect(readsAll(await generalPlan(engine, statement))).toEqual([]);
    });
  }

  describe("and in tables that were analysed when all their rows had been deleted", () => {
    const churned = unique();
    const churnedDialect = postgresDialect(churned);
    beforeAll(async () => {
      const other = sqlStore({
        dialect: churnedDialect,
        driver: postgresDriver(pool, 1, churnedDialect, { now: () => now }),
        runtime: webRuntime,
      });
      await other.migrate();
      await other.close();
      await parkOnPostgres(pool, churned);
      for (const table of emptied) {
        await pool.query(`DELETE FROM ${churned}.${table}`);
        await pool.query(`ANALYZE ${churned}.${table}`);
      }
    });
    afterAll(() => pool.query(`DROP SCHEMA ${churned} CASCADE`));

    for (const statement of statementsOf(churnedDialect)) {
      test(`${statement.name} scans no table that grows`, async () => {
        const all = readsAll(await generalPlan(engine, statement));
        // That index holds only leased tickets, which are few.
        expect(all.filter((line) => !line.includes("using ticket_owner"))).toEqual([]);
      });
    }
  });

  /** Returns the plan for any parameters, as a prepared statement keeps it. */
  async function generalPlan(client: pg.Client, statement: Statement): Promise<string[]> {
    const name = unique();
    const params = new Set(statement.text.match(/\$\d+/g)).size;
    await client.query(`PREPARE ${name} AS ${statement.text}`);
    const nulls =
      params === 0 ? "" : `(${Array.from({ length: params }, () => "NULL").join(", ")})`;
    const { rows } = await client.query<{ "QUERY PLAN": string }>(
      `EXPLAIN EXECUTE ${name}${nulls}`,
    );
    return rows.map((row) => row["QUERY PLAN"]);
  }

  /** Returns the sequential scans, and the index scans without a condition on the first column. */
  function readsAll(plan: readonly string[]): string[] {
    const reads = new RegExp(`(Seq|Index|Index Only) Scan\\b.* on (${filled.join("|")})\\b`);
    return plan.filter((line, n) => {
      if (!reads.test(line)) return false;
      const condition = /Index Cond: (.*)/.exec(plan[n + 1] ?? "")?.[1];
      if (line.includes("Seq Scan") || condition === undefined) return true;
      return line.includes("using instance_list") && !condition.includes("workflow ");
    });
  }
});

async function quickest(act: () => Promise<unknown>): Promise<number> {
  let best = Infinity;
  for (let i = 0; i < 20; i++) {
    const start = performance.now();
    await act();
    best = Math.min(best, performance.now() - start);
  }
  return best;
}

async function parkOnPostgres(pool: pg.Pool, schema: string): Promise<void> {
  const numbers = `generate_series(1, ${PARKED}) AS n`;
  await pool.query(
    `INSERT INTO ${schema}.instance (iid, workflow, id, queue, run_no, status, created_at)
     SELECT 'p' || n, 'a', 'p' || n, 'default', 1, 'live', n FROM ${numbers}`,
  );
  await pool.query(
    `INSERT INTO ${schema}.ticket (tid, queue, handler, class, due_at, state, run_no, claim_no)
     SELECT 'p' || n, 'default', 'a', 0, 9000000000000 + n, 'waiting', 1, 1 FROM ${numbers}`,
  );
  await pool.query(
    `INSERT INTO ${schema}.step (iid, run_no, ord, called_after, claim_no, part_no, name, count, type, status, attempts, started_at)
     SELECT 'p' || n, 1, 1, 0, 1, 1, 'step', 1, 'do', 'completed', 1, n FROM ${numbers}`,
  );
  await pool.query(
    `INSERT INTO ${schema}.event (iid, run_no, number, event_id, kind, type, created_at)
     SELECT 'p' || n, 1, 1, 'e', 'event', 'paid', n FROM ${numbers}`,
  );
  await pool.query(
    `INSERT INTO ${schema}.outbox (id, hook, workflow, instance_id, run_no, reason, created_at, due_at)
     SELECT 'p' || n, 'onInstanceFinished', 'a', 'p' || n, 1, 'complete', n, 9000000000000 + n FROM ${numbers}`,
  );
  // A session reports its row counts within a second while it works, and within ten when it rests.
  await until(async () => {
    await pool.query("SELECT pg_stat_force_next_flush()");
    const { rows } = await pool.query<{ counted: boolean }>(
      "SELECT bool_and(pg_stat_get_live_tuples(to_regclass(name)) > 0) AS counted FROM unnest($1::text[]) AS name",
      [filled.map((table) => `${schema}.${table}`)],
    );
    return rows[0]?.counted;
  }, "counted");
}

for (const server of ["mariadb", "mysql"] as const) {
  describe.runIf(stores.includes(server))(`on ${server}, with ${PARKED} parked runs`, () => {
    const tablePrefix = `${unique()}_`;
    const dialect = mysqlDialect(tablePrefix);
    let pool: mysql.Pool;
    beforeAll(async () => {
      pool = mysql.createPool({ uri: sharedServer(server), connectionLimit: 4 });
      const store = mysqlStore(pool, { tablePrefix });
      await store.migrate();
      await store.close();
      await park(pool, tablePrefix);
    }, 120_000);
    afterAll(async () => {
      const [tables] = await pool.query<mysql.RowDataPacket[]>(
        `SHOW TABLES LIKE '${tablePrefix}%'`,
      );
      for (const row of tables) await pool.query(`DROP TABLE \`${String(Object.values(row)[0])}\``);
      await pool.end();
    });

    for (const statement of statementsOf(dialect)) {
      test(`${statement.name} scans no table that grows`, async () => {
        const values = argumentsOf(statement.text);
        const explain = server === "mysql" ? "EXPLAIN FORMAT=TRADITIONAL" : "EXPLAIN";
        const [plan] = await pool.query<mysql.RowDataPacket[]>(
          `${explain} ${statement.text}`,
          values,
        );
        const aliases = aliasesOf(statement.text, tablePrefix);
        const scans = plan.filter(
          ({ table, type, select_type: kind }) =>
            kind !== "INSERT" &&
            ["ALL", "index"].includes(String(type)) &&
            aliases.has(String(table)),
        );
        expect(scans.map(({ table, type, key }) => ({ table, type, key }))).toEqual([]);
      });
    }

    test("looking ahead reads a few entries of the index, not those of all tickets", async () => {
      const only = mysql.createPool({ uri: sharedServer(server), connectionLimit: 2 });
      const store = mysqlStore(only, { tablePrefix, connections: 1 });
      const known = [{ queue: "default", handler: "a" }];
      const looks = {
        unknownLanes: () => store.unknownLanes(known),
        nextDueInMs: () => store.nextDueInMs([...known, { queue: "default", handler: "n" }]),
      };
      const read = async (): Promise<number> => {
        const [rows] = await pool.query<mysql.RowDataPacket[]>(
          "SHOW GLOBAL STATUS WHERE Variable_name IN ('Handler_read_next', 'Handler_icp_attempts')",
        );
        return rows.reduce((sum, row) => sum + Number(row["Value"]), 0);
      };
      for (const [name, look] of Object.entries(looks)) {
        await look();
        // These counters are of the whole server, on which others work too, so the least of a few is ours.
        let least = Infinity;
        for (let n = 0; n < 10; n++) {
          const before = await read();
          await look();
          least = Math.min(least, (await read()) - before);
        }
        expect(least, name).toBeLessThan(1_000);
      }
      await store.close();
      await only.end();
    });
  });
}

/** The names under which a statement's plan shows the tables that grow. */
function aliasesOf(text: string, tablePrefix: string): Set<string> {
  const found = new Set<string>();
  for (const table of filled) {
    const name = `${tablePrefix}${table}`;
    for (const match of text.matchAll(new RegExp(`\\b${name}\\b\`?(?: AS (\\w+))?`, "g"))) {
      found.add(match[1] ?? name);
    }
  }
  return found;
}

/**
 * Returns a document for each row set, a number for a limit, and elsewhere a text that is both a key and a
 * number.
 */
function argumentsOf(text: string): unknown[] {
  const pieces = text.split("?").slice(0, -1);
  return pieces.map((before) => {
    if (before.endsWith("JSON_TABLE(")) return '[["x"]]';
    return before.endsWith("LIMIT ") ? 1 : "1";
  });
}

async function park(pool: mysql.Pool, tablePrefix: string): Promise<void> {
  const connection = await pool.getConnection();
  const digits =
    "(SELECT 0 d UNION ALL SELECT 1 UNION ALL SELECT 2 UNION ALL SELECT 3 UNION ALL SELECT 4 UNION ALL SELECT 5 UNION ALL SELECT 6 UNION ALL SELECT 7 UNION ALL SELECT 8 UNION ALL SELECT 9)";
  const numbers = `(SELECT a.d + 10 * b.d + 100 * c.d + 1000 * e.d + 10000 * f.d AS n
    FROM ${digits} a, ${digits} b, ${digits} c, ${digits} e, ${digits} f) AS numbers WHERE n < ${PARKED}`;
  await connection.query(
    `INSERT INTO \`${tablePrefix}instance\` (iid, workflow, id, queue, run_no, status, created_at)
     SELECT CONCAT('p', n), 'a', CONCAT('p', n), 'default', 1, 'live', n FROM ${numbers}`,
  );
  await connection.query(
    `INSERT INTO \`${tablePrefix}ticket\` (tid, queue, handler, class, due_at, state, run_no, claim_no)
     SELECT CONCAT('p', n), 'default', 'a', 0, 9000000000000 + n, 'waiting', 1, 1 FROM ${numbers}`,
  );
  await connection.query(
    `INSERT INTO \`${tablePrefix}ticket\` (tid, queue, handler, class, due_at, state, run_no, claim_no)
     SELECT CONCAT('n', n), 'default', 'n', 0, NULL, 'paused', 1, 1 FROM ${numbers}`,
  );
  await connection.query(
    `INSERT INTO \`${tablePrefix}step\` (iid, run_no, ord, called_after, claim_no, part_no, name, count, type, status, attempts, started_at)
     SELECT CONCAT('p', n), 1, 1, 0, 1, 1, 'step', 1, 'do', 'completed', 1, n FROM ${numbers}`,
  );
  await connection.query(
    `INSERT INTO \`${tablePrefix}event\` (iid, run_no, number, event_id, kind, type, created_at)
     SELECT CONCAT('p', n), 1, 1, 'e', 'event', 'paid', n FROM ${numbers}`,
  );
  await connection.query(
    `INSERT INTO \`${tablePrefix}outbox\` (id, hook, workflow, instance_id, run_no, reason, created_at, due_at)
     SELECT CONCAT('p', n), 'onInstanceFinished', 'a', CONCAT('p', n), 1, 'complete', n, 9000000000000 + n
     FROM ${numbers}`,
  );
  for (const table of growing) await connection.query(`ANALYZE TABLE \`${tablePrefix}${table}\``);
  connection.release();
}

// @ts-check
// The four databases, each reached in two ways: through the store, and raw through the same driver.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { DatabaseSync } from "@photostructure/sqlite";
import mysql from "mysql2/promise";
import { mysqlStore } from "pawl/mysql";
import { postgresStore } from "pawl/postgres";
import { sqliteStore } from "pawl/sqlite";
import pg from "pg";

/**
 * @typedef {import("pawl").Store} Store
 *
 * @typedef {(string | number | null)[]} RawRow in the order of STEP_COLUMNS
 *
 * A way to insert step rows with nothing around it. Binding is not part of the measured time.
 * @typedef {object} RawInsert
 * @property {string} name
 * @property {(rows: readonly RawRow[]) => () => Promise<unknown>} bind
 *
 * One set of Pawl's tables, new and empty.
 * @typedef {object} World
 * @property {Store} store
 * @property {() => Promise<RawInsert[]>} rawInserts each into a table of its own, made like `step`
 * @property {(count: number) => Promise<void>} park loads instances that no claim here may take
 * @property {() => Promise<() => Promise<void>>} holdSnapshot answers how to let it go
 * @property {() => Promise<void>} close
 *
 * @typedef {object} Database
 * @property {string} title
 * @property {string} version
 * @property {string} settings
 * @property {() => Promise<World>} world
 * @property {() => Promise<void>} close
 */

const STEP_COLUMNS =
  "iid, run_no, ord, seq, called_after, claim_no, part_no, name, count, type, status, attempts, started_at, ended_at, wake_at, wait_key, result, error";
const WIDTH = STEP_COLUMNS.split(", ").length;

let made = 0;
const freshName = () => `bench${process.pid}_${(made += 1)}`;

/** @param {number} count */
const valuesList = (count) =>
  Array.from({ length: count }, () => `(${Array(WIDTH).fill("?").join(", ")})`).join(", ");

/**
 * Of 1,000 rows 850 wait for a later time, 50 are paused, 50 are due on another queue and 50 for a workflow
 * that nobody here runs. Their ids are older than all that are made, like those of instances created before.
 * @param {{
 *   count: number,
 *   table: (name: string) => string,
 *   number: string,
 *   iid: string,
 *   concat: (...parts: string[]) => string,
 *   now: string,
 * }} dialect number: a table `n(n)` from 0
 */
function parkedRows({ count, table, number, iid, concat, now }) {
  const kind = `CASE WHEN n % 20 < 17 THEN 'waiting' WHEN n % 20 = 17 THEN 'paused' ELSE 'queued' END`;
  const queue = `CASE WHEN n % 20 = 18 THEN 'elsewhere' ELSE 'default' END`;
  const workflow = `CASE WHEN n % 20 = 19 THEN 'unknown' ELSE 'bench' END`;
  const due = `CASE WHEN n % 20 < 17 THEN ${now} + 3600000 + (n * 7919) % 2500000000 WHEN n % 20 = 17 THEN NULL ELSE ${now} - n % 1000 END`;
  const from = `FROM (${number}) AS numbers WHERE n < ${count}`;
  return [
    `INSERT INTO ${table("instance")} (iid, workflow, id, queue, run_no, status, params, created_at)
     SELECT ${iid}, ${workflow}, ${concat("'parked-'", "n")}, ${queue}, 1, 'live', ${concat(`'{"customer":'`, "n", "'}'")}, ${now} - ${count} + n ${from}`,
    `INSERT INTO ${table("ticket")} (tid, queue, handler, class, state, run_no, claim_no, due_at, wait_mask, seen_at, started_at, history_bytes)
     SELECT ${iid}, ${queue}, ${workflow}, CASE WHEN n % 20 < 18 THEN 0 ELSE 1 END, ${kind}, 1, 1, ${due}, 4, ${now} - n, ${now} - n, 300 ${from}`,
  ];
}

/** Counts by joined digits, which every database can do. */
const DIGITS = `SELECT a.d + 10 * b.d + 100 * c.d + 1000 * e.d + 10000 * f.d + 100000 * g.d AS n
  FROM ${["a", "b", "c", "e", "f", "g"]
    .map(
      (alias) =>
        `(SELECT 0 AS d ${[1, 2, 3, 4, 5, 6, 7, 8, 9].map((d) => `UNION ALL SELECT ${d}`).join(" ")}) AS ${alias}`,
    )
    .join(" CROSS JOIN ")}`;

// SQLite ----------------------------------------------------------------------------------------------------------

/** @returns {Promise<Database>} */
export async function sqlite() {
  const folder = mkdtempSync(path.join(tmpdir(), "pawl-bench-"));
  const probe = new DatabaseSync(":memory:");
  const { v } = /** @type {{ v: string }} */ (probe.prepare("SELECT sqlite_version() AS v").get());
  probe.close();
  return {
    title: "SQLite",
    version: `SQLite ${v}, @photostructure/sqlite`,
    settings: "file, WAL, synchronous=FULL",
    close: async () => rmSync(folder, { recursive: true, force: true }),
    world: async () => sqliteWorld(path.join(folder, `${freshName()}.db`)),
  };
}

/** @param {string} file */
async function sqliteWorld(file) {
  const handle = new DatabaseSync(file);
  const store = /** @type {Store} */ (sqliteStore(handle));
  await store.migrate();
  handle.exec("PRAGMA busy_timeout = 5000");
  handle.exec("PRAGMA synchronous = FULL");
  /** @param {string} name */
  const like = (name) => {
    const { sql } = /** @type {{ sql: string }} */ (
      handle.prepare("SELECT sql FROM sqlite_master WHERE name = 'pawl_step'").get()
    );
    handle.exec(sql.replace("pawl_step", name));
  };
  return {
    store,
    rawInserts: async () => {
      like("raw_single");
      like("raw_values");
      const single = handle.prepare(
        `INSERT INTO raw_single (${STEP_COLUMNS}) VALUES ${valuesList(1)}`,
      );
      /** @type {Map<number, import("@photostructure/sqlite").StatementSyncInstance>} */
      const multi = new Map();
      /** @param {number} count */
      const multiFor = (count) => {
        const known =
          multi.get(count) ??
          handle.prepare(`INSERT INTO raw_values (${STEP_COLUMNS}) VALUES ${valuesList(count)}`);
        multi.set(count, known);
        return known;
      };
      return [
        {
          name: "prepared single rows",
          bind: (/** @type {readonly RawRow[]} */ rows) => async () => {
            handle.exec("BEGIN IMMEDIATE");
            for (const row of rows) single.run(...row);
            handle.exec("COMMIT");
          },
        },
        {
          name: "multi-row VALUES",
          bind: (/** @type {readonly RawRow[]} */ rows) => {
            const statement = multiFor(rows.length);
            const values = rows.flat();
            return async () => statement.run(...values);
          },
        },
      ];
    },
    park: async (/** @type {number} */ count) => parkOnSqlite(handle, count),
    holdSnapshot: async () => {
      const reader = new DatabaseSync(file);
      reader.exec("BEGIN");
      reader.prepare("SELECT count(*) FROM pawl_runner").get();
      return async () => {
        reader.exec("ROLLBACK");
        reader.close();
      };
    },
    close: async () => {
      await store.close();
      handle.close();
    },
  };
}

/**
 * @param {Pick<import("@photostructure/sqlite").DatabaseSyncInstance, "exec">} handle
 * @param {number} count
 */
export function parkOnSqlite(handle, count) {
  handle.exec("BEGIN IMMEDIATE");
  for (const text of parkedRows({
    count,
    table: (name) => `pawl_${name}`,
    number: DIGITS,
    iid: "'-0' || printf('%020x', n)",
    concat: (...parts) => parts.join(" || "),
    now: "CAST(unixepoch('now', 'subsec') * 1000 AS INTEGER)",
  })) {
    handle.exec(text);
  }
  handle.exec("COMMIT");
}

// PostgreSQL ------------------------------------------------------------------------------------------------------

/**
 * @param {string} url
 * @returns {Promise<Database>}
 */
export async function postgres(url) {
  const pool = new pg.Pool({ connectionString: url, max: 3 });
  /** @param {string} setting */
  const show = async (setting) => (await pool.query(`SHOW ${setting}`)).rows[0]?.[setting];
  return {
    title: "PostgreSQL",
    version: `PostgreSQL ${await show("server_version")}, pg`,
    settings: `fsync=${await show("fsync")}, synchronous_commit=${await show("synchronous_commit")}, shared_buffers=${await show("shared_buffers")}`,
    close: () => pool.end(),
    world: () => postgresWorld(pool, url),
  };
}

/**
 * @param {Pick<pg.Pool, "query">} client
 * @param {string} schema
 * @param {number} count
 */
export async function parkOnPostgres(client, schema, count) {
  for (const text of parkedRows({
    count,
    table: (name) => `${schema}.${name}`,
    number: `SELECT generate_series(0, ${count - 1}) AS n`,
    iid: "'-0' || lpad(to_hex(n), 20, '0')",
    concat: (...parts) => parts.join(" || "),
    now: "floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint",
  })) {
    await client.query(text.replaceAll("n * 7919", "n::bigint * 7919"));
  }
  // Autovacuum would do this within a minute.
  for (const table of ["instance", "ticket"])
    await client.query(`VACUUM (ANALYZE) ${schema}.${table}`);
}

/** One array per column. */
const UNNEST = `unnest($1::text[], $2::integer[], $3::integer[], $4::integer[], $5::integer[], $6::bigint[], $7::integer[], $8::text[],
  $9::integer[], $10::text[], $11::text[], $12::integer[], $13::bigint[], $14::bigint[], $15::bigint[], $16::text[], $17::text[], $18::text[])`;

/**
 * @param {pg.Pool} pool
 * @param {string} url
 */
async function postgresWorld(pool, url) {
  const schema = freshName();
  const store = /** @type {Store} */ (postgresStore(pool, { schema }));
  await store.migrate();
  const client = new pg.Client({ connectionString: url, pipeline: true });
  await client.connect();
  return {
    store,
    rawInserts: async () => {
      for (const table of ["raw_unnest", "raw_values"]) {
        await client.query(`CREATE TABLE ${schema}.${table} (LIKE ${schema}.step INCLUDING ALL)`);
      }
      return [
        {
          name: "unnest of arrays",
          bind: (/** @type {readonly RawRow[]} */ rows) => {
            const query = {
              name: "raw_unnest",
              text: `INSERT INTO ${schema}.raw_unnest (${STEP_COLUMNS}) SELECT * FROM ${UNNEST}`,
              values: Array.from({ length: WIDTH }, (_, n) => rows.map((row) => row[n])),
            };
            return () => client.query(query);
          },
        },
        {
          name: "multi-row VALUES",
          bind: (/** @type {readonly RawRow[]} */ rows) => {
            let n = 0;
            const query = {
              name: `raw_values_${rows.length}`,
              text: `INSERT INTO ${schema}.raw_values (${STEP_COLUMNS}) VALUES ${valuesList(rows.length).replaceAll("?", () => `$${(n += 1)}`)}`,
              values: rows.flat(),
            };
            return () => client.query(query);
          },
        },
      ];
    },
    park: (/** @type {number} */ count) => parkOnPostgres(client, schema, count),
    holdSnapshot: async () => {
      const reader = new pg.Client({ connectionString: url });
      await reader.connect();
      await reader.query("BEGIN ISOLATION LEVEL REPEATABLE READ");
      await reader.query(`SELECT count(*) FROM ${schema}.runner`);
      return async () => {
        await reader.query("ROLLBACK");
        await reader.end();
      };
    },
    close: async () => {
      await store.close();
      await client.query(`DROP SCHEMA ${schema} CASCADE`);
      await client.end();
    },
  };
}

// MariaDB, MySQL --------------------------------------------------------------------------------------------------

/**
 * @param {string} url
 * @returns {Promise<Database>}
 */
export async function mysqlFamily(url) {
  const pool = mysql.createPool({ uri: url, connectionLimit: 32 });
  const [rows] = await pool.query(
    "SELECT version() AS version, @@innodb_flush_log_at_trx_commit AS flush, @@innodb_buffer_pool_size DIV 1048576 AS buffers, @@log_bin AS log_bin",
  );
  const [row] =
    /** @type {{ version: string, flush: number, buffers: number, log_bin: number }[]} */ (rows);
  if (row === undefined) throw new Error("no version");
  const title = row.version.includes("MariaDB") ? "MariaDB" : "MySQL";
  return {
    title,
    version: `${title} ${row.version}, mysql2`,
    settings: `innodb_flush_log_at_trx_commit=${row.flush}, innodb_buffer_pool_size=${row.buffers}MB, log_bin=${row.log_bin}`,
    close: () => pool.end(),
    world: () => mysqlWorld(pool),
  };
}

const JSON_STEP = `JSON_TABLE(?, '$[*]' COLUMNS (iid VARCHAR(1024) PATH '$[0]', run_no INT PATH '$[1]', ord INT PATH '$[2]', seq INT PATH '$[3]',
  called_after INT PATH '$[4]', claim_no BIGINT PATH '$[5]', part_no INT PATH '$[6]', name VARCHAR(1024) PATH '$[7]', count INT PATH '$[8]',
  type VARCHAR(32) PATH '$[9]', status VARCHAR(32) PATH '$[10]', attempts INT PATH '$[11]', started_at BIGINT PATH '$[12]', ended_at BIGINT PATH '$[13]',
  wake_at BIGINT PATH '$[14]', wait_key VARCHAR(1024) PATH '$[15]', result LONGTEXT PATH '$[16]', error LONGTEXT PATH '$[17]')) AS r`;

/** @param {mysql.Pool} pool */
async function mysqlWorld(pool) {
  const prefix = `${freshName()}_`;
  const store = /** @type {Store} */ (mysqlStore(pool, { tablePrefix: prefix }));
  await store.migrate();
  const connection = await pool.getConnection();
  return {
    store,
    rawInserts: async () => {
      const names = ["json", "execute", "query"];
      for (const name of names) {
        await connection.query(`CREATE TABLE ${prefix}raw_${name} LIKE ${prefix}step`);
      }
      /** @param {string} name */
      const into = (name) => `INSERT INTO ${prefix}raw_${name} (${STEP_COLUMNS})`;
      return [
        {
          name: "JSON_TABLE, prepared",
          bind: (/** @type {readonly RawRow[]} */ rows) => {
            const sql = `${into("json")} SELECT ${STEP_COLUMNS} FROM ${JSON_STEP}`;
            const values = [JSON.stringify(rows)];
            return () => connection.execute({ sql, values });
          },
        },
        {
          name: "multi-row VALUES, prepared",
          bind: (/** @type {readonly RawRow[]} */ rows) => {
            const sql = `${into("execute")} VALUES ${valuesList(rows.length)}`;
            const values = rows.flat();
            return () => connection.execute({ sql, values });
          },
        },
        {
          name: "multi-row VALUES, text",
          bind: (/** @type {readonly RawRow[]} */ rows) => {
            const sql = `${into("query")} VALUES ?`;
            return () => connection.query({ sql, values: [rows] });
          },
        },
      ];
    },
    park: async (/** @type {number} */ count) => {
      for (const text of parkedRows({
        count,
        table: (name) => prefix + name,
        number: DIGITS,
        iid: "CONCAT('-0', LPAD(HEX(n), 20, '0'))",
        concat: (...parts) => `CONCAT(${parts.join(", ")})`,
        now: "(TIMESTAMPDIFF(MICROSECOND, '1970-01-01 00:00:00', UTC_TIMESTAMP(3)) DIV 1000)",
      })) {
        await connection.query(text);
      }
      await connection.query(`ANALYZE TABLE ${prefix}instance, ${prefix}ticket`);
    },
    holdSnapshot: async () => {
      const reader = await pool.getConnection();
      await reader.query("SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ");
      await reader.query("START TRANSACTION WITH CONSISTENT SNAPSHOT");
      return async () => {
        await reader.query("ROLLBACK");
        reader.release();
      };
    },
    close: async () => {
      await store.close();
      const [tables] = await connection.query(
        `SHOW TABLES LIKE '${prefix.replaceAll("_", "\\_")}%'`,
      );
      for (const row of /** @type {object[]} */ (tables)) {
        await connection.query(`DROP TABLE ${Object.values(row)[0]}`);
      }
      connection.release();
    },
  };
}

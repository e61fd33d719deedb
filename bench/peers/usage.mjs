// @ts-check
// Measures what a piece of work cost: CPU of this process and of its server, and what the database counted.
import { readdirSync, readFileSync, statSync } from "node:fs";
import pg from "pg";

/**
 * @typedef {object} Usage
 * @property {number} nodeMs CPU time of this process
 * @property {number} [serverMs] CPU time of the server, all its processes
 * @property {number} [commits] that wrote something
 * @property {number} [statements]
 * @property {number} [walBytes]
 *
 * @typedef {() => Promise<Usage>} Meter of what was used since it was made
 */

/**
 * @param {import("./engine.mjs").Adapter["store"]} store
 * @param {Pick<import("./engine.mjs").Place, "url" | "restate" | "cloudflare">} place
 * @returns {Promise<{ start: () => Promise<Meter>, close: () => Promise<void> }>}
 */
export async function openMeters(store, { url, restate, cloudflare }) {
  if (store === "postgres") return postgresMeters(url);
  const server = restate ?? cloudflare;
  const read = async () => ({
    nodeMs: nodeMs(),
    ...(server === undefined ? {} : { serverMs: cpuMs([server.pid]) }),
  });
  return { start: () => meter(read), close: async () => {} };
}

/**
 * @param {Pick<import("./engine.mjs").Place, "url" | "file">} place
 * @returns {Promise<number>}
 */
export async function databaseBytes({ url, file }) {
  if (url === "") return statSync(file).size;
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  const { rows } = await client.query(
    "SELECT pg_database_size(current_database())::float8 AS bytes",
  );
  await client.end();
  return rows[0]?.bytes ?? Number.NaN;
}

/**
 * @param {() => Promise<Usage>} read
 * @returns {Promise<Meter>}
 */
async function meter(read) {
  const before = await read();
  return async () => {
    const after = await read();
    const used = Object.entries(after).map(([name, value]) => [
      name,
      value - (before[/** @type {keyof Usage} */ (name)] ?? 0),
    ]);
    return /** @type {Usage} */ (Object.fromEntries(used));
  };
}

/** @param {string} url */
async function postgresMeters(url) {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  const ask = async (/** @type {string} */ sql) => (await client.query(sql)).rows[0] ?? {};
  const { pid } = await ask("SELECT pg_backend_pid() AS pid");
  const isHere = stat(pid)?.name === "postgres";
  const { has } = await ask(
    "SELECT count(*)::int AS has FROM pg_available_extensions WHERE name = 'pg_stat_statements' AND current_setting('shared_preload_libraries') LIKE '%pg_stat_statements%'",
  );
  if (has > 0) await client.query("CREATE EXTENSION IF NOT EXISTS pg_stat_statements");
  const calls =
    has > 0
      ? "(SELECT coalesce(sum(calls), 0)::float8 FROM pg_stat_statements s WHERE s.dbid = (SELECT oid FROM pg_database WHERE datname = current_database()))"
      : "NULL::float8";
  const read = async () => {
    // A snapshot takes no transaction id of its own.
    const { commits, wal_bytes, statements } = await ask(
      `SELECT pg_snapshot_xmax(pg_current_snapshot())::text::float8 AS commits,
         pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::float8 AS wal_bytes, ${calls} AS statements`,
    );
    return {
      nodeMs: nodeMs(),
      ...(isHere ? { serverMs: serverMs(pid) } : {}),
      commits,
      walBytes: wal_bytes,
      ...(statements === null ? {} : { statements }),
    };
  };
  return { start: () => meter(read), close: () => client.end() };
}

function nodeMs() {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
}

/** @param {number} backend one of its processes */
function serverMs(backend) {
  const main = stat(backend)?.parent ?? backend;
  return cpuMs([main, ...childrenOf(main)]);
}

/** @param {number} parent */
const childrenOf = (parent) =>
  readdirSync("/proc")
    .map(Number)
    .filter((pid) => pid > 0 && stat(pid)?.parent === parent);

/**
 * Finds a child of this process by its name, because the code that started it does not tell its pid.
 * @param {string} name
 */
export function childNamed(name) {
  const child = childrenOf(process.pid).find((pid) => stat(pid)?.name === name);
  if (child === undefined) throw new Error(`no ${name} runs`);
  return child;
}

/**
 * Returns the CPU time of these processes, and of their children that ended.
 * @param {readonly number[]} pids
 */
const cpuMs = (pids) => pids.reduce((total, pid) => total + (stat(pid)?.cpuMs ?? 0), 0);

const TICKS_PER_SECOND = 100;

/** @param {number} pid */
function stat(pid) {
  let text = "";
  try {
    text = readFileSync(`/proc/${pid}/stat`, "utf8");
  } catch {
    return undefined;
  }
  const name = text.slice(text.indexOf("(") + 1, text.lastIndexOf(")"));
  // After the name come state, ppid, … and from the 12th on utime, stime, cutime, cstime.
  const fields = text
    .slice(text.lastIndexOf(")") + 2)
    .split(" ")
    .map(Number);
  const ticks = fields.slice(11, 15).reduce((total, value) => total + value, 0);
  return { name, parent: fields[1] ?? 0, cpuMs: (ticks * 1000) / TICKS_PER_SECOND };
}

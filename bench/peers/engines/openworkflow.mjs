// @ts-check
import { setTimeout as pause } from "node:timers/promises";
import pg from "pg";
import { eachOf, load } from "../engine.mjs";

/**
 * The part of openworkflow that is used here.
 * @typedef {object} Step
 * @property {<T>(config: { name: string }, body: () => T) => Promise<T>} run
 * @property {(options: { signal: string, timeout: string }) => Promise<unknown>} waitForSignal
 * @typedef {{ kind: string, steps: number, signal: string }} Input
 * @typedef {{ result(options?: { timeoutMs: number }): Promise<unknown>, workflowRun: { id: string } }} Handle
 * @typedef {{ stop(): Promise<void> }} Backend
 * @typedef {object} Client
 * @property {(spec: { name: string }, workflow: (given: { input: Input, step: Step }) => Promise<unknown>) => { run(input: Input, options?: { idempotencyKey: string }): Promise<Handle> }} defineWorkflow
 * @property {(options: { concurrency: number }) => { start(): Promise<void>, stop(): Promise<void> }} newWorker
 * @property {(options: { signal: string }) => Promise<unknown>} sendSignal
 * @typedef {new (options: { backend: Backend }) => Client} ClientClass
 *
 * The tables, for questions that no call answers.
 * @typedef {object} Tables
 * @property {() => Promise<number>} completed runs
 * @property {(signal: string) => Promise<boolean>} isAwaited
 * @property {() => Promise<void>} close
 */

const SHARED = { packages: ["openworkflow"], maxSteps: 990 };

/** @type {import("../engine.mjs").Adapter} */
export const onPostgres = {
  ...SHARED,
  title: "openworkflow, PostgreSQL",
  settings: "worker concurrency 20 in W1, 100 in W2; pool of 10, the default of postgres.js",
  store: "postgres",
  inFlight: { W1: 20, W2: 100 },
  open: async (place, inFlight) => {
    const { BackendPostgres } = await load("openworkflow/postgres");
    return open(place, inFlight, await BackendPostgres.connect(place.url), tablesOf(place.url));
  },
};

/** @type {import("../engine.mjs").Adapter} */
export const onSqlite = {
  ...SHARED,
  title: "openworkflow, SQLite",
  settings: "worker concurrency 20 in W1, 100 in W2; WAL, synchronous=FULL (both its defaults)",
  store: "sqlite",
  needsNode22: true,
  inFlight: { W1: 20, W2: 100 },
  open: async (place, inFlight) => {
    const { BackendSqlite } = await load("openworkflow/sqlite");
    return open(place, inFlight, BackendSqlite.connect(place.file), await tablesIn(place.file));
  },
};

/**
 * @param {import("../engine.mjs").Place} place
 * @param {number} concurrency
 * @param {Backend} backend
 * @param {Tables} tables
 * @returns {Promise<import("../engine.mjs").Engine>}
 */
async function open({ body, now }, concurrency, backend, tables) {
  const { OpenWorkflow } = /** @type {{ OpenWorkflow: ClientClass }} */ (
    await load("openworkflow")
  );
  const client = new OpenWorkflow({ backend });
  const returns = { count: 0 };
  const workflow = client.defineWorkflow({ name: "bench" }, async ({ input, step }) => {
    const { kind, steps, signal } = input;
    const one = (/** @type {number} */ n) => step.run({ name: `step ${n}` }, () => body(n));
    if (kind === "parallel") {
      await Promise.all(Array.from({ length: steps }, (_, n) => one(n)));
    } else {
      for (let n = 0; n < steps; n++) await one(n);
    }
    /** @type {number | null} */
    let output = null;
    if (kind === "wait") {
      await step.waitForSignal({ signal, timeout: "1h" });
      output = await step.run({ name: "go on" }, now);
    }
    returns.count += 1;
    return output;
  });
  const worker = client.newWorker({ concurrency });
  await worker.start();
  /** @type {Map<string, Handle>} */
  const handles = new Map();
  /** @type {import("../engine.mjs").Engine} */
  const engine = {
    start: async ({ id, kind, steps }) => {
      // A key costs one more transaction with four statements, and a later process finds the run by it.
      const options = kind === "wait" ? { idempotencyKey: id } : undefined;
      handles.set(id, await workflow.run({ kind, steps, signal: id }, options));
    },
    result: async (id) => {
      // For a run of an earlier process, the same key answers its handle.
      const handle =
        handles.get(id) ??
        (await workflow.run({ kind: "wait", steps: 0, signal: id }, { idempotencyKey: id }));
      return handle.result();
    },
    // Results are polled every second, so the tables tell the end. They are asked only when all code has
    // returned.
    runAll: async (works, inFlight) => {
      const before = await tables.completed();
      const goal = returns.count + works.length;
      await eachOf(works, inFlight, (work) => engine.start(work));
      while (returns.count < goal) await pause(2);
      while ((await tables.completed()) < before + works.length) await pause(2);
    },
    waiting: async (id) => {
      while (!(await tables.isAwaited(id))) await pause(5);
    },
    send: async (id) => void (await client.sendSignal({ signal: id })),
    close: async () => {
      await worker.stop();
      await backend.stop();
      await tables.close();
    },
  };
  return engine;
}

const COMPLETED =
  "SELECT count(*) AS n FROM workflow_runs WHERE status IN ('completed', 'succeeded')";
// A signal that is sent before its wait is written is lost. The run is given back after that write.
const AWAITED = `SELECT count(*) AS n FROM step_attempts s JOIN workflow_runs r ON r.id = s.workflow_run_id
  WHERE s.kind = 'signal-wait' AND s.status = 'running' AND r.worker_id IS NULL`;

/**
 * @param {string} url
 * @returns {Tables}
 */
function tablesOf(url) {
  const options = "-c search_path=openworkflow";
  const pool = new pg.Pool({ connectionString: url, max: 1, options });
  const count = async (/** @type {string} */ sql, /** @type {string[]} */ values = []) =>
    Number((await pool.query(sql, values)).rows[0]?.n);
  return {
    completed: () => count(COMPLETED),
    isAwaited: async (signal) =>
      (await count(`${AWAITED} AND s.context->>'signal' = $1`, [signal])) > 0,
    close: () => pool.end(),
  };
}

/**
 * @param {string} file
 * @returns {Promise<Tables>}
 */
async function tablesIn(file) {
  const { DatabaseSync } = await load("node:sqlite");
  const handle = new DatabaseSync(file, { readOnly: true });
  const count = (/** @type {string} */ sql, /** @type {string[]} */ ...values) =>
    Number(handle.prepare(sql).get(...values).n);
  return {
    completed: async () => count(COMPLETED),
    isAwaited: async (signal) => count(`${AWAITED} AND s.context->>'signal' = ?`, signal) > 0,
    close: async () => handle.close(),
  };
}

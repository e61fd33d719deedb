// @ts-check
import { setTimeout as pause } from "node:timers/promises";
import pg from "pg";
import { eachOf, load } from "../engine.mjs";

/**
 * The part of absurd-sdk that is used here.
 * @typedef {{ kind: string, steps: number, event: string }} Params
 * @typedef {object} Context
 * @property {<T>(name: string, body: () => Promise<T>) => Promise<T>} step
 * @property {(event: string, options: { timeout: number }) => Promise<unknown>} awaitEvent
 * @typedef {{ state: string, result?: unknown, failure?: unknown }} Snapshot
 * @typedef {object} Client
 * @property {() => Promise<void>} createQueue
 * @property {(options: { name: string }, task: (params: Params, context: Context) => Promise<unknown>) => void} registerTask
 * @property {(task: string, params: Params, options?: { idempotencyKey: string }) => Promise<{ taskID: string }>} spawn
 * @property {(taskID: string) => Promise<Snapshot | null>} fetchTaskResult
 * @property {(taskID: string) => Promise<Snapshot>} awaitTaskResult
 * @property {(event: string) => Promise<void>} emitEvent
 * @property {(options: { concurrency: number, pollInterval: number }) => Promise<unknown>} startWorker
 * @property {() => Promise<void>} close
 * @typedef {{ wrapTaskExecution(context: Context, execute: () => Promise<unknown>): Promise<void> }} Hooks
 * @typedef {new (options: { db: pg.Pool, hooks: Hooks }) => Client} ClientClass
 */

const TASK = "bench";
const POLL_SECONDS = 0.01;

/** @type {import("../engine.mjs").Adapter} */
export const absurd = {
  title: "Absurd",
  packages: ["absurd-sdk"],
  settings: `worker concurrency 20 in W2, 100 elsewhere, as many a claim (its default); poll of ${POLL_SECONDS * 1000} ms when idle (default 250), as nothing wakes it; pool of 20`,
  store: "postgres",
  needsSchema: true,
  inFlight: { W1: 100, W2: 20 },
  open,
};

/**
 * @param {import("../engine.mjs").Place} place
 * @param {number} concurrency
 * @returns {Promise<import("../engine.mjs").Engine>}
 */
async function open({ url, body, now }, concurrency) {
  const { Absurd } = /** @type {{ Absurd: ClientClass }} */ (await load("absurd-sdk"));
  const pool = new pg.Pool({ connectionString: url, max: 20 });
  const completed = { count: 0 };
  const client = new Absurd({
    db: pool,
    hooks: {
      // An execution ends with the commit of the completion. A task that is put to sleep throws.
      wrapTaskExecution: async (_, execute) => {
        await execute();
        completed.count += 1;
      },
    },
  });
  await client.createQueue();
  client.registerTask({ name: TASK }, async ({ kind, steps, event }, context) => {
    const one = (/** @type {number} */ n) => context.step(`step ${n}`, async () => body(n));
    if (kind === "parallel") {
      await Promise.all(Array.from({ length: steps }, (_, n) => one(n)));
      return null;
    }
    for (let n = 0; n < steps; n++) await one(n);
    if (kind !== "wait") return null;
    await context.awaitEvent(event, { timeout: 3600 });
    return context.step("go on", async () => now());
  });
  await client.startWorker({ concurrency, pollInterval: POLL_SECONDS });
  /** @type {Map<string, string>} */
  const tasks = new Map();
  /** @param {import("../engine.mjs").Work} work */
  const start = async ({ id, kind, steps }) => {
    // A key costs one statement more, and a later process finds the task by it.
    const options = kind === "wait" ? { idempotencyKey: id } : undefined;
    const { taskID } = await client.spawn(TASK, { kind, steps, event: id }, options);
    tasks.set(id, taskID);
    return taskID;
  };
  // For a task of an earlier process, the same key answers its id.
  const taskOf = async (/** @type {string} */ id) =>
    tasks.get(id) ?? (await start({ id, kind: "wait", steps: 0 }));
  return {
    start: async (work) => void (await start(work)),
    result: async (id) => {
      const { state, result, failure } = await client.awaitTaskResult(await taskOf(id));
      if (state !== "completed") throw new Error(`${id}: ${state} ${JSON.stringify(failure)}`);
      return result;
    },
    // Results are polled, after 50 ms at the earliest, so the worker's hook tells the end.
    runAll: async (works, inFlight) => {
      const goal = completed.count + works.length;
      await eachOf(works, inFlight, async (work) => void (await start(work)));
      while (completed.count < goal) await pause(2);
    },
    waiting: async (id) => {
      const task = await taskOf(id);
      while ((await client.fetchTaskResult(task))?.state !== "sleeping") await pause(2);
    },
    send: (id) => client.emitEvent(id),
    close: async () => {
      await client.close();
      await pool.end();
    },
  };
}

// @ts-check
// Job queues are a reference for W1: a job is one step, and nothing is kept of it but that it is done.
import { setTimeout as pause } from "node:timers/promises";
import { eachOf, load } from "../engine.mjs";

/**
 * The part of pg-boss that is used here.
 * @typedef {object} Boss
 * @property {() => Promise<unknown>} start
 * @property {(options: { graceful: boolean }) => Promise<void>} stop
 * @property {(queue: string) => Promise<void>} createQueue
 * @property {(queue: string, job: object) => Promise<unknown>} send
 * @property {(queue: string, options: object, work: (jobs: readonly { data: { n: number } }[]) => Promise<void>) => Promise<unknown>} work
 * @property {(queue: string, options: { before: string }) => Promise<number>} getQueueSize
 */

const QUEUE = "bench";
const BOSS_WORKERS = 4;

/** @type {import("../engine.mjs").Adapter} */
export const boss = {
  title: "pg-boss, a job queue",
  packages: ["pg-boss"],
  settings: `${BOSS_WORKERS} workers, 500 jobs a fetch, poll of 0.5 s (its minimum), pool of 20`,
  store: "postgres",
  inFlight: { W1: 50 },
  workloads: ["W1"],
  open: async ({ url, body }) => {
    const { default: PgBoss } = await load("pg-boss");
    /** @type {Boss} */
    const queue = new PgBoss({ connectionString: url, max: 20 });
    await queue.start();
    await queue.createQueue(QUEUE);
    for (let n = 0; n < BOSS_WORKERS; n++) {
      const options = { batchSize: 500, pollingIntervalSeconds: 0.5 };
      await queue.work(QUEUE, options, async (jobs) => jobs.forEach(({ data }) => body(data.n)));
    }
    return jobQueue({
      add: (n) => queue.send(QUEUE, { n }),
      // Without a state, running jobs are not counted.
      left: () => queue.getQueueSize(QUEUE, { before: "completed" }),
      close: () => queue.stop({ graceful: true }),
    });
  },
};

const GRAPHILE_CONCURRENCY = 24;

/** @type {import("../engine.mjs").Adapter} */
export const graphile = {
  title: "graphile-worker, a job queue",
  packages: ["graphile-worker"],
  settings: `concurrency ${GRAPHILE_CONCURRENCY}, pool of 20, LISTEN/NOTIFY`,
  store: "postgres",
  inFlight: { W1: 50 },
  workloads: ["W1"],
  open: async ({ url, body }) => {
    const { run, Logger } = await load("graphile-worker");
    const pg = await load("pg");
    const pool = new pg.default.Pool({ connectionString: url, max: 20 });
    const runner = await run({
      pgPool: pool,
      concurrency: GRAPHILE_CONCURRENCY,
      noHandleSignals: true,
      logger: new Logger(() => () => {}),
      taskList: { [QUEUE]: async (/** @type {{ n: number }} */ { n }) => void body(n) },
    });
    return jobQueue({
      add: (n) => runner.addJob(QUEUE, { n }),
      // A job is removed when it is done.
      left: async () =>
        Number((await pool.query("SELECT count(*) AS n FROM graphile_worker.jobs")).rows[0]?.n),
      close: async () => {
        await runner.stop();
        await pool.end();
      },
    });
  },
};

/**
 * @param {object} queue
 * @param {(n: number) => Promise<unknown>} queue.add
 * @param {() => Promise<number>} queue.left
 * @param {() => Promise<void>} queue.close
 * @returns {import("../engine.mjs").Engine}
 */
function jobQueue({ add, left, close }) {
  const none = async () => {
    throw new Error("a queue has no workflows");
  };
  return {
    start: none,
    result: none,
    waiting: none,
    send: none,
    runAll: async (works, inFlight) => {
      await eachOf(works.keys(), inFlight, async (n) => void (await add(n)));
      while ((await left()) > 0) await pause(5);
    },
    close,
  };
}

// @ts-check
// This is one process of one workload on one engine. It answers its figures and what they cost.
import { once } from "node:events";
import { performance } from "node:perf_hooks";
import { engines } from "./engines/index.mjs";
import { onServer } from "./places.mjs";
import { startProcesses } from "./runners.mjs";
import { databaseBytes, openMeters } from "./usage.mjs";
import { workloads } from "./workloads.mjs";

/**
 * @typedef {object} Job
 * @property {string} engine
 * @property {string} workload
 * @property {number} part of its processes
 * @property {import("./engine.mjs").Role} role
 * @property {boolean} [isServed] it measures nothing, and does what it is told
 * @property {number} share of the work
 * @property {string} url
 * @property {string} file
 * @property {import("./engine.mjs").Place["restate"]} restate
 * @property {import("./engine.mjs").Place["cloudflare"]} cloudflare
 *
 * The order that a served process is given. It answers how many bodies it ran.
 * @typedef {"bodies" | "end" | { works: readonly import("./engine.mjs").Work[], inFlight: number }} Order
 *
 * @typedef {object} Answer
 * @property {import("./workloads.mjs").Figures} figures
 * @property {import("./usage.mjs").Usage | undefined} usage
 */

const job = /** @type {Job} */ (JSON.parse(process.argv[2] ?? "{}"));
const adapter = engines[job.engine];
const run = workloads[job.workload]?.processes[job.part];
if (adapter === undefined || run === undefined) throw new Error(`unknown work: ${process.argv[2]}`);

let bodies = 0;
/** @type {import("./engine.mjs").Place} */
const place = {
  url: job.url,
  file: job.file,
  restate: job.restate,
  cloudflare: job.cloudflare,
  body: (n) => {
    bodies += 1;
    return { ok: true, i: n };
  },
  now: () => performance.timeOrigin + performance.now(),
};
const inFlight = adapter.inFlight[job.workload] ?? 100;
const engine = await adapter.open(place, inFlight, job.role);
if (job.isServed) await serve();
else await measure(adapter, run);
await engine.close();
process.disconnect?.();

async function serve() {
  for (;;) {
    process.send?.({ bodies });
    const [order] = /** @type {[Order]} */ (await once(process, "message"));
    if (order === "end") return;
    if (order !== "bodies") await engine.runAll(order.works, order.inFlight);
  }
}

/**
 * @param {import("./engine.mjs").Adapter} of
 * @param {(bench: import("./workloads.mjs").Bench) => Promise<import("./workloads.mjs").Figures>} workload
 */
async function measure(
  { store, maxSteps = Number.MAX_SAFE_INTEGER, maxRuns = Number.MAX_SAFE_INTEGER },
  workload,
) {
  const meters = await openMeters(store, place);
  /** @type {import("./usage.mjs").Usage | undefined} */
  let usage;
  /** @type {import("./runners.mjs").Processes | undefined} */
  let others;
  const figures = await workload({
    engine,
    place,
    inFlight,
    maxSteps,
    maxRuns,
    share: job.share,
    bodies: async () => bodies + ((await engine.bodies?.()) ?? 0) + ((await others?.bodies()) ?? 0),
    databaseBytes: () => databaseBytes(place),
    settle: async () => {
      if (place.url === "") return;
      for (const sql of ["VACUUM (ANALYZE)", "CHECKPOINT"]) await onServer(place.url, sql);
    },
    beside: async (count, role, work) => {
      others = await startProcesses(job, count, role);
      try {
        return await work(others);
      } finally {
        await others.end();
        others = undefined;
      }
    },
    metered: async (work) => {
      const used = await meters.start();
      const answer = await work();
      usage = await used();
      return answer;
    },
  });
  process.send?.({ figures, usage });
  await meters.close();
}

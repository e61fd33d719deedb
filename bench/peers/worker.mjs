// @ts-check
// One process of one workload on one engine; it answers its figures and what they cost.
import { once } from "node:events";
import { performance } from "node:perf_hooks";
import { engines } from "./engines/index.mjs";
import { startRunners } from "./runners.mjs";
import { databaseBytes, openMeters } from "./usage.mjs";
import { workloads } from "./workloads.mjs";

/**
 * @typedef {object} Job
 * @property {string} engine
 * @property {string} workload
 * @property {number} part of its processes
 * @property {import("./engine.mjs").Role} role
 * @property {number} share of the work
 * @property {string} url
 * @property {string} file
 * @property {import("./engine.mjs").Place["restate"]} restate
 * @property {import("./engine.mjs").Place["cloudflare"]} cloudflare
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
if (job.role === "runner") await serveRunner();
else await measure(adapter, run);
await engine.close();
process.disconnect?.();

/** Works until it is told to end; tells how often it worked. */
async function serveRunner() {
  process.send?.({ bodies });
  for (;;) {
    const [message] = await once(process, "message");
    if (message === "end") return;
    process.send?.({ bodies });
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
  /** @type {import("./runners.mjs").Runners | undefined} */
  let runners;
  const figures = await workload({
    engine,
    place,
    inFlight,
    maxSteps,
    maxRuns,
    share: job.share,
    bodies: async () =>
      bodies + ((await engine.bodies?.()) ?? 0) + ((await runners?.bodies()) ?? 0),
    databaseBytes: () => databaseBytes(place),
    withRunners: async (count, work) => {
      runners = await startRunners(job, count);
      try {
        return await work();
      } finally {
        await runners.end();
        runners = undefined;
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

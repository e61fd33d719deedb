// @ts-check
// One process of one workload on one engine; it answers its figures and what they cost.
import { performance } from "node:perf_hooks";
import { engines } from "./engines/index.mjs";
import { openMeters } from "./usage.mjs";
import { workloads } from "./workloads.mjs";

/**
 * @typedef {object} Job
 * @property {string} engine
 * @property {string} workload
 * @property {number} part of its processes
 * @property {number} share of the work
 * @property {string} url
 * @property {string} file
 * @property {import("./engine.mjs").Place["restate"]} restate
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
  body: (n) => {
    bodies += 1;
    return { ok: true, i: n };
  },
  now: () => performance.timeOrigin + performance.now(),
};
const inFlight = adapter.inFlight[job.workload] ?? 100;
const meters = await openMeters(adapter.store, place);
const engine = await adapter.open(place, inFlight);
/** @type {import("./usage.mjs").Usage | undefined} */
let usage;
const figures = await run({
  engine,
  place,
  inFlight,
  maxSteps: adapter.maxSteps ?? Number.MAX_SAFE_INTEGER,
  share: job.share,
  bodies: () => bodies,
  metered: async (work) => {
    const used = await meters.start();
    const answer = await work();
    usage = await used();
    return answer;
  },
});
process.send?.({ figures, usage });
await engine.close();
await meters.close();
process.disconnect?.();

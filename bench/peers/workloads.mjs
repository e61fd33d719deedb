// @ts-check
// What is done with an engine, and what comes out as figures. Each part of a workload is a process of its own.
import { performance } from "node:perf_hooks";

/**
 * @typedef {object} Bench
 * @property {import("./engine.mjs").Engine} engine
 * @property {import("./engine.mjs").Place} place
 * @property {number} inFlight
 * @property {number} maxSteps
 * @property {number} share of the work
 * @property {() => number} bodies that ran so far
 * @property {<T>(work: () => Promise<T>) => Promise<T>} metered what is measured; once per process
 *
 * @typedef {Record<string, number>} Figures
 *
 * @typedef {object} Workload
 * @property {string} title
 * @property {readonly ((bench: Bench) => Promise<Figures>)[]} processes one after another, on the same database
 * @property {Record<string, string>} figures what each is, as the report says it
 * @property {boolean} [isOfNoEngine]
 * @property {"workflow" | "step"} [unit] that costs are divided by
 */

/** A latency stops here, however many were asked for: some engines take a second each. */
const LATENCY_MAX_MS = 20_000;

/** @type {Record<string, Workload>} */
export const workloads = {
  W1: {
    title: "2,000 one-step workflows",
    figures: { perSecond: "workflows/s" },
    unit: "workflow",
    processes: [(bench) => burst(bench, 2_000, 1)],
  },
  W2: {
    title: "200 workflows of 50 steps",
    figures: { perSecond: "steps/s" },
    unit: "step",
    processes: [(bench) => burst(bench, 200, 50)],
  },
  W3: {
    title: "start of a 3-step workflow to its result, one at a time",
    figures: { p50: "p50 ms", p99: "p99 ms", samples: "samples" },
    processes: [
      (bench) =>
        latency(bench, 200, async (id) => {
          const start = performance.now();
          await bench.engine.start({ id, kind: "steps", steps: 3 });
          await bench.engine.result(id);
          return { "": performance.now() - start };
        }),
    ],
  },
  W4: {
    title: "event to a waiting workflow, one at a time",
    figures: {
      p50: "to the result in the sender, p50 ms",
      p99: "p99 ms",
      stepP50: "to the step that follows, p50 ms",
      stepP99: "p99 ms ",
      samples: "samples",
    },
    processes: [(bench) => latency(bench, 100, (id) => resume(bench, id, 0))],
  },
  W5: {
    title: "one workflow with 500 parallel steps",
    figures: { seconds: "s" },
    unit: "step",
    processes: [
      async (bench) => {
        await timeOf(bench, { id: "warm", kind: "parallel", steps: sized(bench, 50) });
        const steps = sized(bench, 500);
        const work = /** @type {const} */ ({ id: "one", kind: "parallel", steps });
        return { seconds: (await bench.metered(() => timeOf(bench, work))) / 1000, units: steps };
      },
    ],
  },
  W6: {
    title: "one workflow with 2,000 sequential steps, and its resume after 1,000",
    figures: {
      stepMs: "ms per step",
      ratio: "against a step of 100",
      liveMs: "event to step after 1,000 steps, ms",
      restartMs: "the same in a new process, ms",
    },
    unit: "step",
    processes: [
      async (bench) => {
        const few = sized(bench, 100);
        await timeOf(bench, { id: "warm", kind: "steps", steps: few });
        const shortMs = await timeOf(bench, { id: "short", kind: "steps", steps: few });
        const steps = Math.min(sized(bench, 2_000), bench.maxSteps);
        const work = /** @type {const} */ ({ id: "long", kind: "steps", steps });
        const longMs = await bench.metered(() => timeOf(bench, work));
        const history = historyOf(bench);
        const { step } = await resume(bench, "live", history);
        await bench.engine.start({ id: "restarted", kind: "wait", steps: history });
        await bench.engine.waiting("restarted");
        const stepMs = longMs / steps;
        return { stepMs, ratio: stepMs / (shortMs / few), liveMs: step, units: steps };
      },
      async ({ engine, place }) => {
        const sentAt = place.now();
        await engine.send("restarted");
        return { restartMs: Number(await engine.result("restarted")) - sentAt };
      },
    ],
  },
  limits: {
    title: "inserts of step rows with no engine around them",
    isOfNoEngine: true,
    figures: {
      single: "commits/s, one row each",
      single10: "the same on 10 connections",
      batched: "rows/s, 200 a commit",
    },
    processes: [
      async (bench) => {
        const perSecond = async (
          /** @type {number} */ connections,
          /** @type {number} */ perCommit,
        ) => {
          const ms = Math.max(100, 2_000 * bench.share);
          const rows = await bench.engine.insertRows?.({ connections, perCommit, ms });
          return ((rows ?? Number.NaN) * 1000) / ms;
        };
        await perSecond(1, 20);
        return {
          single: await perSecond(1, 1),
          // SQLite has one writer at a time.
          ...(bench.place.url === "" ? {} : { single10: await perSecond(10, 1) }),
          batched: await perSecond(1, 200),
        };
      },
    ],
  },
};

/**
 * @param {string} name
 * @param {import("./engine.mjs").Adapter | undefined} adapter
 */
export function isDoneBy(name, adapter) {
  return adapter?.workloads?.includes(name) ?? !workloads[name]?.isOfNoEngine;
}

/** @param {Bench} bench */
const historyOf = (bench) => Math.min(sized(bench, 1_000), bench.maxSteps);

/**
 * @param {Bench} bench
 * @param {number} count
 */
const sized = ({ share }, count) => Math.max(1, Math.round(count * share));

/**
 * @param {Bench} bench
 * @param {number} count
 * @param {number} steps
 * @returns {Promise<Figures>}
 */
async function burst(bench, count, steps) {
  const works = (/** @type {string} */ name, /** @type {number} */ length) =>
    Array.from({ length }, (_, n) => ({
      id: `${name}-${n}`,
      kind: /** @type {const} */ ("steps"),
      steps,
    }));
  const { engine, inFlight } = bench;
  // Compiles what is hot and opens connections.
  await engine.runAll(works("warm", sized(bench, count / 10)), inFlight);
  const measured = works("run", sized(bench, count));
  const bodies = bench.bodies();
  const start = performance.now();
  await bench.metered(() => engine.runAll(measured, inFlight));
  const seconds = (performance.now() - start) / 1000;
  const expected = measured.length * steps;
  const ran = bench.bodies() - bodies;
  if (ran !== expected) throw new Error(`${ran} steps ran instead of ${expected}`);
  const units = steps === 1 ? measured.length : expected;
  return { perSecond: units / seconds, units };
}

/**
 * @param {Bench} bench
 * @param {number} count
 * @param {(id: string) => Promise<Record<string, number>>} once ms by name, "" for the main one
 */
async function latency(bench, count, once) {
  for (let n = 0; n < sized(bench, 10); n++) await once(`warm-${n}`);
  /** @type {Record<string, number[]>} */
  const samples = {};
  let taken = 0;
  const until = performance.now() + LATENCY_MAX_MS * Math.max(bench.share, 0.2);
  while (taken < sized(bench, count) && performance.now() < until) {
    for (const [name, ms] of Object.entries(await once(`run-${taken}`)))
      (samples[name] ??= []).push(ms);
    taken += 1;
  }
  /** @type {Figures} */
  const figures = { samples: taken };
  for (const [name, list] of Object.entries(samples)) {
    figures[name === "" ? "p50" : `${name}P50`] = percentile(list, 0.5);
    figures[name === "" ? "p99" : `${name}P99`] = percentile(list, 0.99);
  }
  return figures;
}

/**
 * @param {Bench} bench
 * @param {string} id
 * @param {number} steps before the event
 */
async function resume({ engine, place }, id, steps) {
  await engine.start({ id, kind: "wait", steps });
  await engine.waiting(id);
  const sentAt = place.now();
  await engine.send(id);
  const wentOnAt = Number(await engine.result(id));
  return { "": place.now() - sentAt, step: wentOnAt - sentAt };
}

/**
 * @param {Bench} bench
 * @param {import("./engine.mjs").Work} work
 */
async function timeOf({ engine }, work) {
  const start = performance.now();
  await engine.runAll([work], 1);
  return performance.now() - start;
}

/**
 * @param {readonly number[]} list
 * @param {number} share
 */
function percentile(list, share) {
  const sorted = list.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
}

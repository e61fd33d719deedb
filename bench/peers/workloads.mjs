// @ts-check
// Defines what is done with an engine, and what comes out as figures. Each part of a workload is a process of its own.
import { performance } from "node:perf_hooks";
import { median } from "../measure.mjs";
import { eachOf } from "./engine.mjs";

/**
 * @typedef {object} Bench
 * @property {import("./engine.mjs").Engine} engine
 * @property {import("./engine.mjs").Place} place
 * @property {number} inFlight
 * @property {number} maxSteps
 * @property {number} maxRuns
 * @property {number} share of the work
 * @property {() => Promise<number>} bodies that ran so far, in all processes
 * @property {<T>(count: number, role: import("./engine.mjs").Role, work: (others: import("./runners.mjs").Processes) => Promise<T>) => Promise<T>} beside works beside so many other processes
 * @property {() => Promise<number>} databaseBytes
 * @property {() => Promise<void>} settle as if all had been there for long: nothing of it is still to be written or counted
 * @property {<T>(work: () => Promise<T>) => Promise<T>} metered what is measured; once per process
 *
 * @typedef {Record<string, number>} Figures
 *
 * @typedef {object} Workload
 * @property {string} title
 * @property {readonly ((bench: Bench) => Promise<Figures>)[]} processes one after another, on the same database; of a figure that several tell, the median counts
 * @property {Record<string, string>} figures what each is, as the report says it
 * @property {boolean} [isOfNoEngine]
 * @property {boolean} [isOfPawl] peers are not set up for it
 * @property {boolean} [hasRunnersElsewhere] the measuring process is a client
 * @property {number} [maxMs]
 * @property {"workflow" | "step"} [unit] that costs are divided by
 */

/** How many new processes go on with a run in each round. */
const RESTARTS = 5;

/** A latency measurement stops here, however many were asked for, because some engines take a second each. */
const LATENCY_MAX_MS = 20_000;

const eventFigures = {
  p50: "to the result in the sender, p50 ms",
  p99: "p99 ms",
  stepP50: "to the step that follows, p50 ms",
  stepP99: "p99 ms ",
  samples: "samples",
};

const scalingFigures = {
  workflows1: "workflows/s, one",
  workflows2: "two",
  workflows4: "four",
  workflowsRatio: "two against one",
  steps1: "steps/s, one",
  steps2: "two ",
  steps4: "four ",
  stepsRatio: "two against one ",
};

/** @type {Record<string, Workload>} */
export const workloads = {
  W1: {
    title: "2,000 one-step workflows",
    figures: { perSecond: "workflows/s" },
    unit: "workflow",
    processes: [(bench) => metered(bench, { count: 2_000, steps: 1, name: "run" })],
  },
  W2: {
    title: "200 workflows of 50 steps",
    figures: { perSecond: "steps/s" },
    unit: "step",
    processes: [(bench) => metered(bench, { count: 200, steps: 50, name: "run" })],
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
    figures: eventFigures,
    processes: [(bench) => latency(bench, 100, (id) => resume(bench, id, 0))],
  },
  W4b: {
    title: "the same, run by another process",
    figures: eventFigures,
    isOfPawl: true,
    hasRunnersElsewhere: true,
    processes: [
      (bench) => bench.beside(1, "runner", () => latency(bench, 100, (id) => resume(bench, id, 0))),
    ],
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
      claimedMs: "of that after the claim, ms",
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
        const live = [];
        for (let n = 0; n < 5; n++) live.push((await resume(bench, `live-${n}`, history)).step);
        await parkForRestart(bench, 0);
        const stepMs = longMs / steps;
        return {
          stepMs,
          ratio: stepMs / (shortMs / few),
          liveMs: median(live),
          units: steps,
        };
      },
      // One run is parked at a time, because some engines recover all that there are when they start.
      ...Array.from({ length: RESTARTS }, (_, n) => async (/** @type {Bench} */ bench) => {
        const figures = await restarted(bench, n);
        if (n + 1 < RESTARTS) await parkForRestart(bench, n + 1);
        return figures;
      }),
    ],
  },
  W7: {
    title: "W1 beside parked instances",
    figures: {
      parked: "parked",
      perSecond: "workflows/s",
      ratio: "against none parked, in the same process",
    },
    unit: "workflow",
    maxMs: 900_000,
    processes: [
      async (bench) => {
        const before = await steady(bench, { count: 2_000, steps: 1, name: "before" });
        const parked = await park(bench, sized(bench, 1_000_000));
        await bench.settle();
        const beside = await bench.metered(() =>
          steady(bench, { count: 2_000, steps: 1, name: "beside" }),
        );
        return { ...beside, parked, ratio: beside.perSecond / before.perSecond };
      },
    ],
  },
  W8: {
    title: "W1 and W2 by one, two and four processes, each of which starts and runs its share",
    figures: scalingFigures,
    isOfPawl: true,
    hasRunnersElsewhere: true,
    processes: [
      (bench) =>
        scaling((count, work) =>
          bench.beside(count, "whole", ({ runAll }) =>
            work({ ...bench, engine: { ...bench.engine, runAll } }),
          ),
        ),
    ],
  },
  W8b: {
    title: "the same by one, two and four runner processes, all of it started by another one",
    figures: scalingFigures,
    isOfPawl: true,
    hasRunnersElsewhere: true,
    processes: [
      (bench) => scaling((count, work) => bench.beside(count, "runner", () => work(bench))),
    ],
  },
  W9: {
    title: "10 minutes of mixed load",
    figures: {
      perSecond: "workflows/s in the last tenth",
      ratio: "against the second tenth",
      rssMb: "memory at the end, MB",
      rssRatio: "against the second tenth ",
      bytesPerWorkflow: "bytes of database per workflow",
    },
    unit: "workflow",
    isOfPawl: true,
    maxMs: 900_000,
    processes: [soak],
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
  const { isOfNoEngine, isOfPawl } = workloads[name] ?? {};
  if (adapter?.workloads !== undefined) return adapter.workloads.includes(name);
  return !isOfNoEngine && (!isOfPawl || adapter?.packages.length === 0);
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
 */
const runsOf = (bench, count) => Math.min(sized(bench, count), bench.maxRuns);

/** @typedef {{ count: number, steps: number, name: string, warmMs?: number }} Burst */

/**
 * @param {Bench} bench
 * @param {Burst} what
 */
async function metered(bench, what) {
  await warmUp(bench, what);
  return bench.metered(() => repeated(bench, what));
}

const WARM_MS = 3_000;

/**
 * Runs as much again, and again for some seconds, to compile hot code and open connections. After a tenth of it W1 of
 * Pawl came out at half, after once still at two thirds. Slower engines take longer than that once.
 * @param {Bench} bench
 * @param {Burst} what
 */
async function warmUp(bench, { count, steps, name, warmMs = WARM_MS }) {
  const until = performance.now() + warmMs * bench.share;
  for (let n = 0; n === 0 || performance.now() < until; n++) {
    const some = works(`${name}-warm-${n}`, runsOf(bench, count), steps);
    await bench.engine.runAll(some, bench.inFlight);
  }
}

/**
 * @param {Bench} bench
 * @param {Burst} what
 * @returns {Promise<{ perSecond: number, units: number }>}
 */
async function burst(bench, { count, steps, name }) {
  const measured = works(name, runsOf(bench, count), steps);
  const bodies = await bench.bodies();
  const start = performance.now();
  await bench.engine.runAll(measured, bench.inFlight);
  const seconds = (performance.now() - start) / 1000;
  const expected = measured.length * steps;
  const ran = (await bench.bodies()) - bodies;
  if (ran !== expected) throw new Error(`${ran} steps ran instead of ${expected}`);
  const units = steps === 1 ? measured.length : expected;
  return { perSecond: units / seconds, units };
}

const STEADY_MS = 5_000;

/**
 * @param {Bench} bench
 * @param {Burst} what
 */
async function steady(bench, what) {
  await warmUp(bench, what);
  return repeated(bench, what);
}

/**
 * Returns the median of as many bursts as fit into some seconds. One alone, of a third of a second, says little about a
 * machine whose speed changes from one second to the next.
 * @param {Bench} bench
 * @param {Burst} what
 * @returns {Promise<{ perSecond: number, units: number }>}
 */
async function repeated(bench, { name, ...what }) {
  const all = [];
  const until = performance.now() + STEADY_MS * bench.share;
  while (all.length === 0 || performance.now() < until) {
    all.push(await burst(bench, { name: `${name}-${all.length}`, ...what }));
  }
  const rates = all.map(({ perSecond }) => perSecond);
  return {
    perSecond: median(rates),
    units: all.reduce((total, { units }) => total + units, 0),
  };
}

/**
 * Measures W1 and W2 by so many processes.
 * @param {(count: number, work: (bench: Bench) => Promise<void>) => Promise<void>} withProcesses
 * @returns {Promise<Figures>}
 */
async function scaling(withProcesses) {
  /** @type {Record<string, number[]>} */
  const rates = {};
  // The counts go there and back, so that a machine that becomes faster or slower does so for all of them.
  for (const [n, count] of [1, 2, 4, 2, 1].entries()) {
    await withProcesses(count, async (bench) => {
      // Each process has to be warm.
      const what = { warmMs: WARM_MS * count };
      const w1 = await steady(bench, { count: 2_000, steps: 1, name: `short-${n}`, ...what });
      const w2 = await steady(bench, { count: 200, steps: 50, name: `long-${n}`, ...what });
      (rates[`workflows${count}`] ??= []).push(w1.perSecond);
      (rates[`steps${count}`] ??= []).push(w2.perSecond);
    });
  }
  const rate = (/** @type {string} */ name) => median(rates[name] ?? []);
  return {
    ...Object.fromEntries(Object.keys(rates).map((name) => [name, rate(name)])),
    workflowsRatio: rate("workflows2") / rate("workflows1"),
    stepsRatio: rate("steps2") / rate("steps1"),
  };
}

/**
 * @param {string} name
 * @param {number} length
 * @param {number} steps
 * @returns {import("./engine.mjs").Work[]}
 */
const works = (name, length, steps) =>
  Array.from({ length }, (_, n) => ({ id: `${name}-${n}`, kind: "steps", steps }));

const PARK_MAX_MS = 300_000;

/**
 * Returns how many wait. Runs that an engine cannot load in another way are started, for so long.
 * @param {Bench} bench
 * @param {number} count
 */
async function park({ engine, share }, count) {
  if (engine.park !== undefined) {
    await engine.park(count);
    return count;
  }
  const until = performance.now() + PARK_MAX_MS * share;
  let parked = 0;
  while (parked < count && performance.now() < until) {
    const ids = Array.from(
      { length: Math.min(500, count - parked) },
      (_, n) => `parked-${parked + n}`,
    );
    await eachOf(ids, 20, (id) => engine.start({ id, kind: "wait", steps: 0 }));
    // A started run waits to be run before it waits for its event. Then it would stand in front of what is
    // measured.
    await eachOf(ids, 20, (id) => engine.waiting(id));
    parked += ids.length;
  }
  return parked;
}

const SOAK_MS = 600_000;

/**
 * Runs short ones, long ones and ones that wait for an event, so many at a time. Ends are counted by tenths.
 * @param {Bench} bench
 * @returns {Promise<Figures>}
 */
async function soak(bench) {
  const { engine, inFlight, share } = bench;
  const tenthMs = (SOAK_MS * share) / 10;
  const from = performance.now();
  const tenth = () => Math.floor((performance.now() - from) / tenthMs);
  const ended = Array.from({ length: 10 }, () => 0);
  const rss = Array.from({ length: 10 }, () => 0);
  const bytes = await bench.databaseBytes();
  let started = 0;
  await bench.metered(async () => {
    const loop = async () => {
      while (tenth() < 10) {
        const n = (started += 1);
        const id = `soak-${n}`;
        if (n % 10 === 0) await resume(bench, id, 3);
        else await engine.runAll([{ id, kind: "steps", steps: n % 10 === 1 ? 50 : 3 }], 1);
        const now = Math.min(9, tenth());
        ended[now] = (ended[now] ?? 0) + 1;
        rss[now] = process.memoryUsage().rss / 1e6;
      }
    };
    await Promise.all(Array.from({ length: Math.min(inFlight, 100) }, loop));
  });
  const perSecond = (ended[9] ?? 0) / (tenthMs / 1000);
  return {
    perSecond,
    ratio: perSecond / ((ended[1] ?? 0) / (tenthMs / 1000)),
    rssMb: rss[9] ?? Number.NaN,
    rssRatio: (rss[9] ?? Number.NaN) / (rss[1] ?? Number.NaN),
    bytesPerWorkflow: ((await bench.databaseBytes()) - bytes) / started,
    units: started,
  };
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
 * @param {number} n
 */
async function parkForRestart(bench, n) {
  const id = `restarted-${n}`;
  await bench.engine.start({ id, kind: "wait", steps: historyOf(bench) });
  await bench.engine.waiting(id);
}

/**
 * @param {Bench} bench
 * @param {number} n
 */
async function restarted({ engine, place }, n) {
  const sentAt = place.now();
  await engine.send(`restarted-${n}`);
  const wentOnAt = Number(await engine.result(`restarted-${n}`));
  const claimedAt = engine.claimedAt?.();
  return {
    restartMs: wentOnAt - sentAt,
    ...(claimedAt === undefined ? {} : { claimedMs: wentOnAt - claimedAt }),
  };
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

import { expect, test } from "vitest";
import type { Fault } from "./faults.js";
import { randomPlan, scenarioOf } from "./scenarios.js";
import { simulate } from "./simulate.js";

// npm run sim -- --seed 1 --runs 500
const firstSeed = Number(process.env["PAWL_SIM_SEED"] ?? 1);
const runs = Number(process.env["PAWL_SIM_RUNS"] ?? 500);

/** Rare paths that 500 seeds must have taken. */
const sometimes = [
  "batch split",
  "body given back",
  "body kills its process",
  "busy commit",
  "claim adopted",
  "claim whose reply was lost",
  "code changed under a run",
  "event beats timeout by one tick",
  "event leases its run",
  "final commit whose reply was lost",
  "frozen",
  "hooks told",
  "hooks told again",
  "late result fenced",
  "outage",
  "park refused by an event",
  "parked run reopened",
  "pause acked",
  "race decided by a non-step await",
  "restart acked",
  "resume acked",
  "run.evicted",
  "run.paused",
  "step.missing",
  "takeover",
  "takeover during a body",
  "terminate acked",
];

test(`${runs} seeds from ${firstSeed} keep every promise, twice in the same way`, async () => {
  const tally = new Map(sometimes.map((what) => [what, 0]));
  const seeds = Array.from({ length: runs }, (_, n) => firstSeed + n);
  for (const seed of seeds) {
    const first = await attempt(seed);
    const second = await attempt(seed);
    expect(second.hash, `seed ${seed} went two ways`).toBe(first.hash);
    for (const [what, count] of first.sometimes) tally.set(what, (tally.get(what) ?? 0) + count);
  }
  const lines = [...tally].toSorted(([a], [b]) => (a < b ? -1 : 1));
  console.log(lines.map(([what, count]) => `${String(count).padStart(7)} ${what}`).join("\n"));
  if (runs < 500) return;
  const never = sometimes.filter((what) => tally.get(what) === 0);
  expect(never).toEqual([]);
}, 600_000);

async function attempt(seed: number): ReturnType<typeof simulate> {
  const plan = randomPlan(seed);
  const strikes: Record<string, Fault> = {};
  const scenario = scenarioOf(plan, (call, fault) => {
    strikes[call] = fault;
  });
  try {
    return await simulate(scenario);
  } catch (error) {
    const asPlan = JSON.stringify({ ...plan, faultRate: 0, strikes });
    const { message } = error as Error;
    throw new Error(`seed ${seed}: ${message}\n\n${asPlan}`, { cause: error });
  }
}

import { faults, type Fault } from "./faults.js";
import { eventTypes, randomProgram, type Node } from "./program.js";
import { Dice } from "./random.js";
import type { Client, Scenario } from "./simulate.js";

/** A scenario as data. A stored plan stays what it is when the dice below change. */
export type Plan = Omit<Scenario, "faultOf" | "client"> & {
  /** How likely a call meets one of these faults. */
  readonly faultRate: number;
  readonly faults: readonly Fault[];
  /** The calls that meet a given fault, whatever the dice say. */
  readonly strikes: Strikes;
  /** The acts of people, one after the other. */
  readonly acts: readonly Act[];
};

type Act = { readonly afterMs: number; readonly id: string } &
  /** `inRunner` asks a process that also runs. */
  (
    | { readonly act: "send"; readonly type: string; readonly inRunner?: boolean }
    | { readonly act: "sendAtDeadline"; readonly inRunner?: boolean }
    | { readonly act: "stopARunner" | "nothing" }
    | { readonly act: "pause" | "resume" | "restart" | "terminate" }
  );

/** Which calls meet which faults, by the names of the calls. */
export type Strikes = Readonly<Record<string, Fault>>;

/** Everything at once: random programs, several processes, faults, events and control operations. */
export function randomPlan(seed: number): Plan {
  const dice = new Dice(seed);
  const programs = Array.from({ length: dice.between(1, 4) }, () => randomProgram(dice));
  const healAtMs = dice.pick([3_000, 10_000, 20_000]);
  const faultRate = dice.pick([0, 0.01, 0.03, 0.08]);
  const chosen = faults.filter(() => dice.chance(0.6));
  const start = dice.between(0, healAtMs);
  return {
    seed,
    programs,
    processes: dice.between(1, 3),
    faultRate,
    faults: chosen,
    strikes: {},
    skewMs: dice.pick([0, 5_000, 3_600_000]),
    liveRuns: dice.pick([0, 1, 1_000]),
    changesCode: dice.chance(0.3),
    batchParts: dice.pick([1, 2, 500]),
    outages: dice.chance(0.2) ? [{ fromMs: start, toMs: start + dice.between(50, 4_000) }] : [],
    healAtMs,
    acts: Array.from({ length: dice.between(0, 12) }, () =>
      randomAct(dice, programs.length, healAtMs),
    ),
    hooks: dice.chance(0.1),
    // By the seed and not by the dice, so that the seeds of old reports stay what they were, but for the names.
    repeatedStepNames: (["cached", "counted", "error"] as const)[seed % 3],
  };
}

function randomAct(dice: Dice, programs: number, untilMs: number): Act {
  const when = { afterMs: dice.upTo(Math.ceil(untilMs / 8)), id: `p${dice.upTo(programs - 1)}` };
  const act = dice.upTo(9);
  if (act < 4) {
    return { ...when, act: "send", type: dice.pick(eventTypes), inRunner: dice.chance(0.5) };
  }
  if (act === 9) return { ...when, act: dice.chance(0.3) ? "terminate" : "nothing" };
  const others = ["sendAtDeadline", "pause", "resume", "stopARunner", "restart"] as const;
  const chosen = others[act - 4] as (typeof others)[number];
  return chosen === "sendAtDeadline"
    ? { ...when, act: chosen, inRunner: dice.chance(0.5) }
    : { ...when, act: chosen };
}

/**
 * Returns the scenario of a plan. `struck` is told of each fault: with its strikes instead of its dice, the
 * plan goes the same way.
 */
export function scenarioOf(
  plan: Plan,
  struck: (call: string, fault: Fault) => void = () => {},
): Scenario {
  // These are not the world's dice, whose choices would change with the faults.
  const dice = new Dice(plan.seed).fork();
  const roll = (): Fault | null =>
    plan.faults.length > 0 && dice.chance(plan.faultRate) ? dice.pick(plan.faults) : null;
  return {
    ...plan,
    faultOf: ({ name, process }) => {
      const fault = plan.strikes[name] ?? roll();
      const met = fault !== null && process === "client" ? harmless(fault) : fault;
      if (met !== null) struck(name, met);
      return met;
    },
    client: (client) => perform(client, plan.acts),
  };
}

/** People do not crash, but their requests get lost. */
function harmless(fault: Fault): Fault | null {
  return ["replyLost", "notApplied", "pause", "restart"].includes(fault) ? fault : null;
}

async function perform(client: Client, acts: readonly Act[]): Promise<void> {
  for (const each of acts) {
    await client.world.sleep(each.afterMs);
    switch (each.act) {
      case "send":
        await client.send(each.id, each.type, each.inRunner);
        break;
      case "sendAtDeadline":
        await client.sendAtDeadline(undefined, each.inRunner);
        break;
      case "stopARunner":
        client.stopARunner();
        break;
      case "nothing":
        break;
      default:
        await client.control(each.id, each.act);
    }
  }
}

/** One program, and faults at chosen calls. */
export function sweepScenario(
  program: Node,
  strikes: Strikes,
  { processes = 2, liveRuns = 1_000 } = {},
): Scenario {
  return {
    seed: 1,
    programs: [program],
    processes,
    faultOf: ({ name, process }) => {
      const fault = strikes[name] ?? null;
      return process !== "client" || fault === "replyLost" ? fault : null;
    },
    skewMs: 0,
    liveRuns,
    changesCode: false,
    batchParts: 500,
    outages: [],
    client: async (client) => {
      await client.world.sleep(100);
      for (const type of eventTypes) await client.send("p0", type, true);
      await client.sendAtDeadline("last");
    },
    healAtMs: 2_000,
  };
}

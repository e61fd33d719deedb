import { faults, type Fault } from "./faults.js";
import { eventTypes, randomProgram, type Node } from "./program.js";
import { Dice } from "./random.js";
import type { Client, Scenario } from "./simulate.js";

/** Everything at once: random programs, several processes, faults, events and control operations. */
export function randomScenario(seed: number): Scenario {
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
    faultOf: (world, verb, _index, process) => {
      if (!world.dice.chance(faultRate) || chosen.length === 0) return null;
      const fault = world.dice.pick(chosen);
      return process.name === "client" ? harmless(fault) : fault;
    },
    skewMs: dice.pick([0, 5_000, 3_600_000]),
    liveRuns: dice.pick([0, 1, 1_000]),
    changesCode: dice.chance(0.3),
    batchParts: dice.pick([1, 2, 500]),
    outages: dice.chance(0.2) ? [{ fromMs: start, toMs: start + dice.between(50, 4_000) }] : [],
    client: (client) => randomClient(client, dice, healAtMs),
    healAtMs,
  };
}

/** People do not crash; their requests get lost. */
function harmless(fault: Fault): Fault | null {
  return ["replyLost", "notApplied", "pause", "restart"].includes(fault) ? fault : null;
}

async function randomClient(client: Client, dice: Dice, untilMs: number): Promise<void> {
  const acts = dice.between(0, 12);
  for (let n = 0; n < acts; n++) {
    await client.world.sleep(dice.upTo(Math.ceil(untilMs / 8)));
    const id = dice.pick(client.ids);
    const act = dice.upTo(9);
    if (act < 4) await client.send(id, dice.pick(eventTypes));
    else if (act === 4) await client.sendAtDeadline();
    else if (act === 5) await client.control(id, "pause");
    else if (act === 6) await client.control(id, "resume");
    else if (act === 7) client.stopARunner();
    else if (act === 8) await client.control(id, "restart");
    else if (dice.chance(0.3)) await client.control(id, "terminate");
  }
}

/** One program, one process, one fault at one call. */
export function sweepScenario(
  program: Node,
  at: number,
  fault: Fault | null,
  processes = 2,
): Scenario {
  return {
    seed: 1,
    programs: [program],
    processes,
    faultOf: (_world, _verb, index, process) =>
      index === at && (process.name !== "client" || fault === "replyLost") ? fault : null,
    skewMs: 0,
    liveRuns: 1_000,
    changesCode: false,
    batchParts: 500,
    outages: [],
    client: async (client) => {
      await client.world.sleep(100);
      for (const type of eventTypes) await client.send("p0", type);
      await client.sendAtDeadline("last");
    },
    healAtMs: 2_000,
  };
}

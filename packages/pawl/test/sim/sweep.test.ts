import { describe, expect, test } from "vitest";
import { faults, type Fault } from "./faults.js";
import type { Node } from "./program.js";
import { alone, deadlyPrograms, longProgram, smallPrograms } from "./programs.js";
import { sweepScenario, type Strikes } from "./scenarios.js";
import { simulate, type Call, type Scenario } from "./simulate.js";

describe("bodies that end their processes", () => {
  for (const [name, { program, ending }] of Object.entries(deadlyPrograms)) {
    test(name, async () => {
      const { outcomes } = await simulate(sweepScenario(program, {}));
      expect(outcomes[0]).toMatch(ending);
    });
  }
});

describe("one fault at every call to the store", () => {
  for (const [name, program] of Object.entries(smallPrograms)) {
    test(
      name,
      async () => {
        const options = { processes: alone.has(name) ? 1 : 2 };
        const calls = await callsOf(sweepScenario(program, {}, options));
        expect(calls.length).toBeGreaterThan(5);
        for (const { name: call } of calls) {
          for (const fault of faults) await strike(program, { [call]: fault }, options);
        }
      },
      120_000,
    );
  }
});

/** A late answer may find that its run was restarted, or that its runner is dead. */
describe("a late answer, and a fault meanwhile", () => {
  for (const second of ["restart", "frozen"] as const) {
    for (const processes of [1, 2]) {
      test(`${second}, ${processes} processes`, async () => {
        const options = { processes, liveRuns: 0 };
        for (const { name, verb } of await callsOf(sweepScenario(longProgram, {}, options))) {
          if (verb !== "load" && verb !== "claim" && verb !== "commit") continue;
          const late = { [name]: "late" } as const;
          const calls = await callsOf(sweepScenario(longProgram, late, options));
          const at = calls.findIndex((call) => call.name === name);
          for (const then of calls.slice(at + 1, at + 9)) {
            await strike(longProgram, { ...late, [then.name]: second }, options);
          }
        }
      }, 120_000);
    }
  }
});

/** Returns all calls to the store, in their order. */
async function callsOf(scenario: Scenario): Promise<Call[]> {
  const calls: Call[] = [];
  const faultOf = (call: Call): Fault | null => {
    calls.push(call);
    return scenario.faultOf(call);
  };
  await simulate({ ...scenario, faultOf });
  return calls;
}

async function strike(
  program: Node,
  strikes: Strikes,
  options: { readonly processes: number },
): Promise<void> {
  try {
    await simulate(sweepScenario(program, strikes, options));
  } catch (error) {
    throw new Error(`${JSON.stringify(strikes)}: ${(error as Error).message}`, { cause: error });
  }
}

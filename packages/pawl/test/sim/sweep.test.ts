import { describe, expect, test } from "vitest";
import { faults, type Verb } from "./faults.js";
import type { Node } from "./program.js";
import { alone, deadlyPrograms, longProgram, smallPrograms } from "./programs.js";
import { sweepScenario, type Strikes } from "./scenarios.js";
import { simulate } from "./simulate.js";

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
        const { calls } = await simulate(sweepScenario(program, {}, options));
        expect(calls).toBeGreaterThan(5);
        for (let at = 1; at <= calls; at++) {
          for (const fault of faults) await strike(program, { [at]: fault }, options);
        }
      },
      120_000,
    );
  }
});

/** What an answer finds that is late: its run restarted, its runner dead. */
describe("a late answer, and a fault meanwhile", () => {
  for (const second of ["restart", "frozen"] as const) {
    for (const processes of [1, 2]) {
      test(`${second}, ${processes} processes`, async () => {
        const options = { processes, liveRuns: 0 };
        const verbs: Verb[] = [];
        const plain = sweepScenario(longProgram, {}, options);
        await simulate({
          ...plain,
          faultOf: (_world, verb) => {
            verbs.push(verb);
            return null;
          },
        });
        for (const [n, verb] of verbs.entries()) {
          if (verb !== "load" && verb !== "claim" && verb !== "commit") continue;
          const at = n + 1;
          for (let then = at + 1; then <= at + 8; then++) {
            await strike(longProgram, { [at]: "late", [then]: second }, options);
          }
        }
      }, 120_000);
    }
  }
});

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

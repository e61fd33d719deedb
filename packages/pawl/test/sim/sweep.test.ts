import { describe, expect, test } from "vitest";
import { faults } from "./faults.js";
import { alone, deadlyPrograms, smallPrograms } from "./programs.js";
import { sweepScenario } from "./scenarios.js";
import { simulate } from "./simulate.js";

describe("bodies that end their processes", () => {
  for (const [name, { program, ending }] of Object.entries(deadlyPrograms)) {
    test(name, async () => {
      const { outcomes } = await simulate(sweepScenario(program, 0, null));
      expect(outcomes[0]).toMatch(ending);
    });
  }
});

describe("one fault at every call to the store", () => {
  for (const [name, program] of Object.entries(smallPrograms)) {
    test(
      name,
      async () => {
        const processes = alone.has(name) ? 1 : 2;
        const { calls } = await simulate(sweepScenario(program, 0, null, processes));
        expect(calls).toBeGreaterThan(5);
        for (let at = 1; at <= calls; at++) {
          for (const fault of faults) {
            await simulate(sweepScenario(program, at, fault, processes)).catch((error: Error) => {
              throw new Error(`${fault} at call ${at}: ${error.message}`);
            });
          }
        }
      },
      120_000,
    );
  }
});

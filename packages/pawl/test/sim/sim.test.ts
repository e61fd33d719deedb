import { expect, test } from "vitest";
import { randomScenario } from "./scenarios.js";
import { simulate } from "./simulate.js";

const firstSeed = Number(process.env["PAWL_SIM_SEED"] ?? 1);
const seeds = Number(process.env["PAWL_SIM_RUNS"] ?? 500);

test("every seed keeps the promises, twice in the same way", async () => {
  const tally = new Map<string, number>();
  const failures: string[] = [];
  for (let seed = firstSeed; seed < firstSeed + seeds; seed++) {
    try {
      const first = await simulate(randomScenario(seed));
      const second = process.env["PAWL_SIM_ONCE"] ? first : await simulate(randomScenario(seed));
      expect(second.hash).toBe(first.hash);
      for (const [what, count] of first.sometimes) tally.set(what, (tally.get(what) ?? 0) + count);
    } catch (error) {
      failures.push(`seed ${seed}: ${(error as Error).message.slice(0, 600)}`);
      if (process.env["PAWL_SIM_VERBOSE"]) console.log((error as Error).stack, (error as Error).message);
      if (failures.length >= 10) break;
    }
  }
  console.log([...tally].toSorted().map(([what, count]) => `${count}\t${what}`).join("\n"));
  expect(failures).toEqual([]);
}, 600_000);

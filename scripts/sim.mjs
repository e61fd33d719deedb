// @ts-check
// npm run sim -- --seed 1 --runs 500: the simulator on seeds of your choice, and the tally of what happened.
import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";

const { values } = parseArgs({
  options: {
    seed: { type: "string", default: "1" },
    runs: { type: "string", default: "500" },
  },
});
for (const name of /** @type {const} */ (["seed", "runs"])) {
  if (!/^[1-9]\d*$/.test(values[name])) {
    console.error(`--${name} must be a whole number from 1, got ${values[name]}`);
    process.exit(2);
  }
}

const vitest = fileURLToPath(new URL("../node_modules/vitest/vitest.mjs", import.meta.url));
const { status } = spawnSync(
  process.execPath,
  [vitest, "run", "--project", "simulation", "sim.test"],
  {
    stdio: "inherit",
    env: { ...process.env, PAWL_SIM_SEED: values.seed, PAWL_SIM_RUNS: values.runs },
  },
);
process.exit(status ?? 1);

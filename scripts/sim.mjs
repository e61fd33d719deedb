// @ts-check
// npm run sim -- --seed 1 --runs 500: the simulator on seeds of your choice, and the tally of what happened.
import { parseArgs } from "node:util";
import { needWholeNumbers, runTests } from "./run-tests.mjs";

const { seed, runs } = parseArgs({
  options: {
    seed: { type: "string", default: "1" },
    runs: { type: "string", default: "500" },
  },
}).values;
needWholeNumbers({ seed, runs });
runTests("simulation", "sim.test", { PAWL_SIM_SEED: seed, PAWL_SIM_RUNS: runs });

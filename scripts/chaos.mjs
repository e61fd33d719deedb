// @ts-check
// npm run chaos -- --store postgres --seconds 60 --seed 7: real processes and servers, killed on a plan made by the seed.
import { parseArgs } from "node:util";
import { needWholeNumbers, runTests } from "./run-tests.mjs";

const { store, seconds, seed } = parseArgs({
  options: {
    store: { type: "string", default: "sqlite,postgres,mariadb,mysql" },
    seconds: { type: "string", default: "60" },
    seed: { type: "string", default: "1" },
  },
}).values;
needWholeNumbers({ seconds, seed });
runTests("stores", "chaos.test", {
  PAWL_TEST_STORES: store,
  PAWL_CHAOS_SECONDS: seconds,
  PAWL_CHAOS_SEED: seed,
});

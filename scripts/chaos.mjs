// @ts-check
// npm run chaos -- --store postgres --seconds 60 --seed 7: real processes and servers, killed on a plan made by the seed.
import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";

const { values } = parseArgs({
  options: {
    store: { type: "string", default: "sqlite,postgres,mariadb,mysql" },
    seconds: { type: "string", default: "60" },
    seed: { type: "string", default: "1" },
  },
});
for (const name of /** @type {const} */ (["seconds", "seed"])) {
  if (!/^[1-9]\d*$/.test(values[name])) {
    console.error(`--${name} must be a whole number from 1, got ${values[name]}`);
    process.exit(2);
  }
}

const vitest = fileURLToPath(new URL("../node_modules/vitest/vitest.mjs", import.meta.url));
const { status } = spawnSync(
  process.execPath,
  [vitest, "run", "--project", "stores", "chaos.test"],
  {
    stdio: "inherit",
    env: {
      ...process.env,
      PAWL_TEST_STORES: values.store,
      PAWL_CHAOS_SECONDS: values.seconds,
      PAWL_CHAOS_SEED: values.seed,
    },
  },
);
process.exit(status ?? 1);

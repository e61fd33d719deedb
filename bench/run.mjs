// @ts-check
// npm run bench -- [suite] [options]; without a suite, it runs peers
import { benchAgainst } from "./against/index.mjs";
import { benchDurableObject } from "./durable-object/index.mjs";
import { benchEngine } from "./engine/index.mjs";
import { benchLatency } from "./latency/index.mjs";
import { benchPeers } from "./peers/index.mjs";
import { benchStore } from "./store/index.mjs";

/** @type {Record<string, (args: string[]) => Promise<void>>} */
const suites = {
  against: benchAgainst,
  "durable-object": benchDurableObject,
  engine: benchEngine,
  latency: benchLatency,
  peers: benchPeers,
  store: benchStore,
};

const given = process.argv.slice(2);
const [name = "", ...args] = given[0]?.startsWith("--") ? ["peers", ...given] : given;
const suite = Object.hasOwn(suites, name) ? suites[name] : undefined;
if (suite === undefined) {
  console.error(`npm run bench -- [${Object.keys(suites).join("|")}] [options]`);
  process.exit(2);
}
await suite(args);

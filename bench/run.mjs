// @ts-check
// npm run bench -- <suite> [options]
import { benchEngine } from "./engine/index.mjs";
import { benchLatency } from "./latency/index.mjs";
import { benchStore } from "./store/index.mjs";

/** @type {Record<string, (args: string[]) => Promise<void>>} */
const suites = { engine: benchEngine, latency: benchLatency, store: benchStore };

const [name = "", ...args] = process.argv.slice(2);
const suite = Object.hasOwn(suites, name) ? suites[name] : undefined;
if (suite === undefined) {
  console.error(`npm run bench -- <${Object.keys(suites).join("|")}> [options]`);
  process.exit(2);
}
await suite(args);

// @ts-check
// npm run bench -- against 10b103a [--store postgres,sqlite] [--workloads W1,W2,W3,W4,W6] [--pairs 9] [--quick]
import { mkdirSync, writeFileSync } from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { startServers } from "../../scripts/servers/index.mjs";
import { chosen, figure, short, table } from "../measure.mjs";
import { measure } from "../peers/process.mjs";
import { workloads } from "../peers/workloads.mjs";
import { buildOf } from "./build.mjs";

const RESULTS = fileURLToPath(new URL("../results/", import.meta.url));
const STORES = ["postgres", "sqlite"];
const WORKLOADS = ["W1", "W2", "W3", "W4", "W5", "W6"];
/** The figures that are compared. Of the others there are too few samples in one process, or they are ratios already. */
const COMPARED = ["perSecond", "seconds", "p50", "stepP50", "stepMs", "liveMs", "claimedMs"];
/** Of these more is better; of all others, which are times, less is. */
const RATES = ["perSecond"];

/** This commit's and the other's. @type {("here" | "there")[]} */
const BUILDS = ["here", "there"];

/** @typedef {{ store: string, workload: string, figure: string, here: number[], there: number[] }} Row */

/** @param {string[]} args */
export async function benchAgainst(args) {
  const { values, positionals } = parseArgs({
    args,
    allowPositionals: true,
    options: {
      store: { type: "string", default: STORES.join(",") },
      workloads: { type: "string", default: "W1,W2,W3,W4,W6" },
      pairs: { type: "string", default: "9" },
      quick: { type: "boolean", default: false },
    },
  });
  const [commit, ...more] = positionals;
  if (commit === undefined || more.length > 0) throw new Error("against takes one commit");
  const stores = chosen("--store", values.store, STORES);
  const names = chosen("--workloads", values.workloads, WORKLOADS);
  const pairs = values.quick ? 1 : Number(values.pairs);
  if (!Number.isInteger(pairs) || pairs < 1) throw new Error("--pairs is a whole number from 1");
  const share = values.quick ? 0.05 : 1;

  const there = buildOf(commit);
  const servers = await startServers({
    stores,
    settings: { shared_preload_libraries: "pg_stat_statements", max_wal_size: "4GB" },
  });
  /** @type {Map<string, Row>} */
  const rows = new Map();
  try {
    const url = servers.urls.postgres ?? "";
    for (let pair = 1; pair <= pairs; pair++) {
      for (const workload of names) {
        for (const store of stores) {
          console.error(`pair ${pair} of ${pairs}: ${workload}, ${store}`);
          const work = { engine: `pawl-${store}`, workload, share };
          // Each build begins as often as it comes second, so that what one leaves behind hits both alike.
          for (const build of pair % 2 === 1 ? BUILDS : BUILDS.toReversed()) {
            const worker = build === "there" ? { worker: there.worker } : {};
            const { figures } = await measure(work, { url, ...worker });
            for (const name of COMPARED)
              add(rows, { store, workload, figure: name }, build, figures);
          }
        }
      }
      console.log(`${reportOf(rows, there.commit, pair)}\n`);
    }
  } finally {
    await servers.stop();
  }
  mkdirSync(RESULTS, { recursive: true });
  const file = path.join(RESULTS, `against-${there.commit}.json`);
  writeFileSync(file, JSON.stringify([...rows.values()], null, 1));
  console.error(`Written to ${path.relative(process.cwd(), file)}`);
}

/**
 * @param {Map<string, Row>} rows
 * @param {Pick<Row, "store" | "workload" | "figure">} of
 * @param {"here" | "there"} build
 * @param {Record<string, number>} figures
 */
function add(rows, of, build, figures) {
  const value = figures[of.figure];
  if (value === undefined) return;
  const key = `${of.workload} ${of.store} ${of.figure}`;
  const row = rows.get(key) ?? { ...of, here: [], there: [] };
  row[build].push(value);
  rows.set(key, row);
}

/**
 * @param {ReadonlyMap<string, Row>} rows
 * @param {string} commit
 * @param {number} pairs
 */
function reportOf(rows, commit, pairs) {
  const lines = Array.from(rows.values(), ({ store, workload, figure: name, here, there }) => {
    const ratios = here.map((value, n) => {
      const other = there[n] ?? Number.NaN;
      return RATES.includes(name) ? value / other : other / value;
    });
    const [low, high] = interval(ratios);
    const title = workloads[workload]?.figures[name]?.trim() ?? name;
    const ratio = `${figure(ratios).median.toFixed(3)} [${low.toFixed(2)}..${high.toFixed(2)}]`;
    const medians = [there, here].map((samples) => short(figure(samples).median));
    return [workload, store, title, ...medians, ratio];
  });
  const head = ["", "", "", commit, "here", "how many times as good [interval of the median]"];
  return `${pairs} pairs\n${table(head, lines)}`;
}

/**
 * Where the median lies with a confidence of some 95 %, by order statistics. Below six samples that is their whole range.
 * @param {readonly number[]} samples
 * @returns {[number, number]}
 */
function interval(samples) {
  const sorted = samples.toSorted((a, b) => a - b);
  const half = 0.98 * Math.sqrt(sorted.length);
  const low = Math.max(0, Math.floor(sorted.length / 2 - half));
  const high = Math.min(sorted.length - 1, Math.ceil(sorted.length / 2 + half) - 1);
  return [sorted[low] ?? Number.NaN, sorted[high] ?? Number.NaN];
}

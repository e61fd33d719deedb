// @ts-check
// npm run bench -- store [--store sqlite,postgres,mariadb,mysql] [--only commit,claim,verbs] [--batch 200] [--quick]
import { mkdirSync, writeFileSync } from "node:fs";
import { availableParallelism, loadavg, totalmem } from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { startServers, STORES } from "../../scripts/servers/index.mjs";
import { chosen, short, spread, table } from "../measure.mjs";
import { benchClaim } from "./claim.mjs";
import { benchCommit } from "./commit.mjs";
import { mysqlFamily, postgres, sqlite } from "./databases.mjs";
import { benchVerbs } from "./verbs.mjs";

/**
 * @typedef {object} Options
 * @property {number} rounds
 * @property {number} share of the work
 * @property {readonly number[]} batches sizes to commit; all if none is given
 * @property {(line: string) => void} progress
 *
 * @typedef {object} Result
 * @property {string} title
 * @property {string} version
 * @property {string} settings
 * @property {Awaited<ReturnType<typeof benchCommit>>} [commit]
 * @property {Awaited<ReturnType<typeof benchClaim>>} [claim]
 * @property {Awaited<ReturnType<typeof benchVerbs>>} [verbs]
 */

const PARTS = ["commit", "claim", "verbs"];
const RESULTS = fileURLToPath(new URL("../results/", import.meta.url));

/** @param {string[]} args */
export async function benchStore(args) {
  const { values } = parseArgs({
    args,
    options: {
      store: { type: "string", default: STORES.join(",") },
      only: { type: "string", default: PARTS.join(",") },
      batch: { type: "string", default: "" },
      quick: { type: "boolean", default: false },
    },
  });
  const stores = chosen("--store", values.store, STORES);
  const parts = chosen("--only", values.only, PARTS);
  const size = values.quick ? { rounds: 3, share: 0.1 } : { rounds: 5, share: 1 };

  const batches = values.batch.split(",").filter(Boolean).map(Number);

  const loadBefore = loadavg()[0] ?? 0;
  const servers = await startServers({ stores });
  /** @type {Result[]} */
  const results = [];
  try {
    for (const store of stores) {
      const database = await open(store, servers.urls);
      const progress = (/** @type {string} */ line) => console.error(`${database.title}: ${line}`);
      const options = { ...size, batches, progress };
      try {
        const { title, version, settings } = database;
        /** @type {Result} */
        const result = { title, version, settings };
        if (parts.includes("commit")) result.commit = await benchCommit(database, options);
        if (parts.includes("claim")) result.claim = await benchClaim(database, options);
        if (parts.includes("verbs")) result.verbs = await benchVerbs(database, options);
        results.push(result);
      } finally {
        await database.close();
      }
    }
  } finally {
    await servers.stop();
  }

  const machine = {
    date: new Date().toISOString().slice(0, 16),
    cores: availableParallelism(),
    memoryGb: Math.round(totalmem() / 2 ** 30),
    node: process.version,
    loadBefore,
  };
  const text = report(results, machine, size);
  mkdirSync(RESULTS, { recursive: true });
  const file = path.join(RESULTS, `store-${machine.date.replaceAll(":", "")}`);
  writeFileSync(`${file}.md`, text);
  writeFileSync(`${file}.json`, JSON.stringify({ machine, size, results }, null, 1));
  console.log(text);
  console.error(`Written to ${path.relative(process.cwd(), file)}.md and .json`);
}

/**
 * @param {string} store
 * @param {Partial<Record<string, string>>} urls
 */
function open(store, urls) {
  const url = urls[store] ?? "";
  if (store === "sqlite") return sqlite();
  return store === "postgres" ? postgres(url) : mysqlFamily(url);
}

/**
 * @param {readonly Result[]} results
 * @param {{ date: string, cores: number, memoryGb: number, node: string, loadBefore: number }} machine
 * @param {{ rounds: number, share: number }} size
 */
function report(results, machine, size) {
  const { date, cores, memoryGb, node, loadBefore } = machine;
  const sections = [
    `${date} UTC; ${cores} cores, ${memoryGb} GB; Node ${node}; load before ${loadBefore.toFixed(1)}; median [min..max] of ${size.rounds} rounds` +
      (size.share === 1 ? "" : ` (quick: ${size.share} of the work)`),
    results.map(({ version, settings }) => `- ${version}: ${settings}`).join("\n"),
  ];
  const commits = results.flatMap(({ title, commit = [] }) =>
    commit.map(({ batch, store, raw, bestRaw, ratio }) => [
      title,
      String(batch),
      spread(store),
      short((1000 * batch) / store.median),
      bestRaw,
      spread(raw[bestRaw]),
      spread(ratio),
    ]),
  );
  if (commits.length > 0) {
    const head = ["", "batch", "store, rows/s", "ms", "best raw insert", "raw, rows/s", "ratio"];
    sections.push(`Fenced commit of step rows\n\n${table(head, commits)}`);
  }
  const claims = results.flatMap(({ title, claim }) => {
    if (claim === undefined) return [];
    const { empty, besideParked, underSnapshot, parked, churned } = claim;
    const row = (/** @type {string} */ what, /** @type {typeof empty} */ { ms, mean, ratio }) => [
      title,
      what,
      spread(ms),
      short(mean),
      ratio.toFixed(2),
    ];
    return [
      row("nothing else in the tables", empty),
      row(`beside ${parked.toLocaleString("en-US")} parked`, besideParked),
      row(`old snapshot, ${churned.toLocaleString("en-US")} claims under it`, underSnapshot),
    ];
  });
  if (claims.length > 0) {
    sections.push(`Claim of 100 tickets\n\n${table(["", "", "ms", "mean ms", "ratio"], claims)}`);
  }
  const names = [...new Set(results.flatMap(({ verbs = {} }) => Object.keys(verbs)))];
  if (names.length > 0) {
    const rows = names.map((name) => [name, ...results.map(({ verbs }) => spread(verbs?.[name]))]);
    sections.push(`One call, ms\n\n${table(["", ...results.map(({ title }) => title)], rows)}`);
  }
  return `${sections.join("\n\n")}\n`;
}

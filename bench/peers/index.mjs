// @ts-check
// npm run bench -- --store postgres --peers dbos,openworkflow,restate [--absurd-sql FILE] [--workloads W1,W2] [--rounds 3] [--quick]
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { availableParallelism, cpus, loadavg, totalmem } from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import pg from "pg";
import { startServers } from "../../scripts/servers/index.mjs";
import { chosen } from "../measure.mjs";
import { contestants, engines, PEERS } from "./engines/index.mjs";
import { installPeers, node22, versionOf } from "./install.mjs";
import { measure } from "./process.mjs";
import { report } from "./report.mjs";
import { isDoneBy, workloads } from "./workloads.mjs";

const RESULTS = fileURLToPath(new URL("../results/", import.meta.url));
const STORES = ["postgres", "sqlite"];

/** @param {string[]} args */
export async function benchPeers(args) {
  const { values } = parseArgs({
    args,
    options: {
      store: { type: "string", default: "postgres" },
      peers: { type: "string", default: "" },
      "absurd-sql": { type: "string" },
      workloads: { type: "string", default: Object.keys(workloads).join(",") },
      rounds: { type: "string", default: "3" },
      quick: { type: "boolean", default: false },
    },
  });
  const stores = chosen("--store", values.store, STORES);
  const peers = chosen("--peers", values.peers, PEERS);
  const names = chosen("--workloads", values.workloads, Object.keys(workloads));
  const size = values.quick
    ? { rounds: 1, share: 0.05 }
    : { rounds: Number(values.rounds), share: 1 };
  if (!Number.isInteger(size.rounds) || size.rounds < 1) {
    throw new Error(`--rounds: ${values.rounds} is no whole number from 1`);
  }
  const schema = peers.includes("absurd") ? absurdSchema(values["absurd-sql"]) : "";
  if (peers.length > 0) installPeers();
  const list = contestants(stores, peers);
  const newerNode = list.some((name) => engines[name]?.needsNode22)
    ? await node22()
    : process.execPath;

  const servers = await startServers({
    stores,
    settings: {
      shared_preload_libraries: "pg_stat_statements",
      max_wal_size: "4GB",
      // This leaves room for the million instances of W7, as on a machine that is a database's own.
      shared_buffers: "2GB",
    },
  });
  /** @type {import("./report.mjs").Sample[]} */
  const samples = [];
  const url = servers.urls.postgres ?? "";
  try {
    const machine = await describe(list, url);
    const jobs = names.flatMap((workload) =>
      list
        .filter((name) => isDoneBy(workload, engines[name]))
        .map((engine) => ({ engine, workload })),
    );
    const total = size.rounds * jobs.length;
    for (let round = 1; round <= size.rounds; round++) {
      // Each begins as often as it comes later, so that what one leaves behind hits all alike.
      for (const { engine, workload } of round % 2 === 1 ? jobs : jobs.toReversed()) {
        console.error(`${samples.length + 1} of ${total}: round ${round}, ${workload}, ${engine}`);
        const load = loadavg()[0] ?? 0;
        const work = { engine, workload, share: size.share };
        const outcome = await measure(work, { url, schema, newerNode }).catch(failed);
        if ("failure" in outcome) console.error(`  failed: ${outcome.failure}`);
        samples.push({ round, engine, workload, load, ...outcome });
      }
      // Results are written after every round, so that a run that is cut short leaves what it has.
      write(samples, machine, { ...size, rounds: round });
    }
    console.log(report(samples, machine, size));
  } finally {
    await servers.stop();
  }
  if (samples.some(({ failure }) => failure !== undefined)) process.exitCode = 1;
}

/** @param {string | undefined} file */
function absurdSchema(file) {
  if (file === undefined) {
    throw new Error(
      "--peers absurd needs --absurd-sql FILE: sql/absurd.sql of its repository, at the version of absurd-sdk in bench/package.json (it is not in the npm package)",
    );
  }
  return readFileSync(file, "utf8");
}

/** @param {Error} error */
const failed = ({ message }) => ({ failure: message.split("\n").slice(0, 3).join(" ") });

/**
 * @param {readonly string[]} list
 * @param {string} url
 * @returns {Promise<import("./report.mjs").Machine>}
 */
async function describe(list, url) {
  const versions = list.map((name) => {
    const { packages = [], needsNode22 } = engines[name] ?? {};
    const installed = packages.map(versionOf);
    return [name, [...installed, needsNode22 ? "Node 22" : `Node ${process.version}`].join(", ")];
  });
  return {
    date: new Date().toISOString().slice(0, 16),
    cores: availableParallelism(),
    processor: cpus()[0]?.model.trim() ?? "",
    memoryGb: Math.round(totalmem() / 2 ** 30),
    node: process.version,
    versions: Object.fromEntries(versions),
    servers: url === "" ? [] : [await postgresSettings(url)],
  };
}

/** @param {string} url */
async function postgresSettings(url) {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  const settings = [];
  for (const name of [
    "server_version",
    "fsync",
    "synchronous_commit",
    "shared_buffers",
    "max_wal_size",
    "shared_preload_libraries",
  ]) {
    settings.push(`${name}=${(await client.query(`SHOW ${name}`)).rows[0]?.[name]}`);
  }
  await client.end();
  return `PostgreSQL: ${settings.join(", ")}`;
}

/**
 * @param {readonly import("./report.mjs").Sample[]} samples
 * @param {import("./report.mjs").Machine} machine
 * @param {{ rounds: number, share: number }} size
 */
function write(samples, machine, size) {
  mkdirSync(RESULTS, { recursive: true });
  const file = path.join(RESULTS, `peers-${machine.date.replaceAll(":", "")}`);
  writeFileSync(`${file}.md`, report(samples, machine, size));
  writeFileSync(`${file}.json`, JSON.stringify({ machine, size, samples }, null, 1));
  console.error(`Written to ${path.relative(process.cwd(), file)}.md and .json`);
}

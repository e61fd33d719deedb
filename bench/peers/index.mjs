// @ts-check
// npm run bench -- --store postgres --peers dbos,openworkflow,restate [--absurd-sql FILE] [--workloads W1,W2] [--rounds 3] [--quick]
import { fork } from "node:child_process";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { availableParallelism, cpus, loadavg, totalmem } from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import pg from "pg";
import { startServers } from "../../scripts/servers/index.mjs";
import { chosen, median } from "../measure.mjs";
import { contestants, engines, PEERS } from "./engines/index.mjs";
import { installPeers, node22, versionOf } from "./install.mjs";
import { makePlace, onServer } from "./places.mjs";
import { report } from "./report.mjs";
import { isDoneBy, workloads } from "./workloads.mjs";

const RESULTS = fileURLToPath(new URL("../results/", import.meta.url));
const WORKER = fileURLToPath(new URL("worker.mjs", import.meta.url));
const STORES = ["postgres", "sqlite"];
const PROCESS_MAX_MS = 300_000;

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
        const outcome = await measure(work, { url, schema }, newerNode).catch(failed);
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
 * @param {{ engine: string, workload: string, share: number }} work
 * @param {{ url: string, schema: string }} server
 * @param {string} newerNode
 */
async function measure({ engine, workload, share }, server, newerNode) {
  const adapter = engines[engine];
  if (adapter === undefined) throw new Error(`${engine} is unknown`);
  const place = await makePlace(adapter.store, server.url);
  try {
    if (adapter.needsSchema) await onServer(place.where.url, server.schema);
    /** @type {import("./worker.mjs").Answer[]} */
    const answers = [];
    const { processes = [], hasRunnersElsewhere } = workloads[workload] ?? {};
    /** @type {import("./engine.mjs").Role} */
    const role = hasRunnersElsewhere ? "client" : "whole";
    for (const part of processes.keys()) {
      const job = { engine, workload, part, role, share, ...place.where };
      answers.push(await inProcess(job, adapter.needsNode22 ? newerNode : process.execPath));
    }
    const usage = answers.find((answer) => answer.usage !== undefined)?.usage;
    const figures = mediansOf(answers.map((answer) => answer.figures));
    return { figures, ...(usage === undefined ? {} : { usage }) };
  } finally {
    await place.remove();
  }
}

/** @param {readonly import("./workloads.mjs").Figures[]} all */
function mediansOf(all) {
  const names = new Set(all.flatMap((figures) => Object.keys(figures)));
  return Object.fromEntries(
    [...names].map((name) => [name, median(all.flatMap((figures) => figures[name] ?? []))]),
  );
}

/**
 * @param {import("./worker.mjs").Job} job
 * @param {string} execPath
 * @returns {Promise<import("./worker.mjs").Answer>}
 */
async function inProcess(job, execPath) {
  const child = fork(WORKER, [JSON.stringify(job)], {
    execPath,
    stdio: ["ignore", "pipe", "pipe", "ipc"],
    timeout: workloads[job.workload]?.maxMs ?? PROCESS_MAX_MS,
    killSignal: "SIGKILL",
  });
  let output = "";
  child.stdout?.on("data", (chunk) => (output += chunk));
  child.stderr?.on("data", (chunk) => (output += chunk));
  /** @type {import("./worker.mjs").Answer | undefined} */
  let answer;
  child.on("message", (message) => {
    answer = /** @type {import("./worker.mjs").Answer} */ (message);
  });
  const how = await new Promise((resolve) => {
    child.once("close", (code, signal) => resolve(signal ?? `code ${code}`));
  });
  if (answer === undefined) throw new Error(`${how}: ${output.slice(-2000)}`);
  return answer;
}

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

// @ts-check
import { fork } from "node:child_process";
import { fileURLToPath } from "node:url";
import { median } from "../measure.mjs";
import { engines } from "./engines/index.mjs";
import { makePlace, onServer } from "./places.mjs";
import { workloads } from "./workloads.mjs";

const WORKER = fileURLToPath(new URL("worker.mjs", import.meta.url));
const PROCESS_MAX_MS = 300_000;

/**
 * @typedef {object} Setting
 * @property {string} url of the PostgreSQL server
 * @property {string} [schema] for engines that need one loaded
 * @property {string} [newerNode] for engines that need Node 22
 * @property {string} [worker] of another build than this one
 */

/**
 * Does one workload on one engine, in new processes and a new database.
 * @param {{ engine: string, workload: string, share: number }} work
 * @param {Setting} setting
 */
export async function measure(
  { engine, workload, share },
  { url, schema = "", newerNode = process.execPath, worker = WORKER },
) {
  const adapter = engines[engine];
  if (adapter === undefined) throw new Error(`${engine} is unknown`);
  const place = await makePlace(adapter.store, url);
  try {
    if (adapter.needsSchema) await onServer(place.where.url, schema);
    /** @type {import("./worker.mjs").Answer[]} */
    const answers = [];
    const { processes = [], hasRunnersElsewhere } = workloads[workload] ?? {};
    /** @type {import("./engine.mjs").Role} */
    const role = hasRunnersElsewhere ? "client" : "whole";
    for (const part of processes.keys()) {
      const job = { engine, workload, part, role, share, ...place.where };
      const execPath = adapter.needsNode22 ? newerNode : process.execPath;
      answers.push(await inProcess(job, execPath, worker));
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
 * @param {string} worker
 * @returns {Promise<import("./worker.mjs").Answer>}
 */
async function inProcess(job, execPath, worker) {
  const child = fork(worker, [JSON.stringify(job)], {
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

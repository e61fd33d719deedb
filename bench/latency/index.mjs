// @ts-check
// npm run bench -- latency: from an event sent by one process to the step that another one runs for it, on PostgreSQL.
import { fork } from "node:child_process";
import { once } from "node:events";
import { availableParallelism, loadavg, totalmem } from "node:os";
import { setTimeout as pause } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { startRunner } from "@pawl/dispatcher-node";
import { startServers } from "../../scripts/servers/index.mjs";
import { short, table } from "../measure.mjs";
import { now, open } from "./workflow.mjs";

const EVENTS = 150;
const POLLED = 20;
const WARM_UP = 20;

export async function benchLatency() {
  const { urls, stop } = await startServers({ stores: ["postgres"] });
  try {
    const heard = await measure(urls.postgres ?? "", "listen", EVENTS);
    const alone = await measure(urls.postgres ?? "", "alone", EVENTS);
    const polled = await measure(urls.postgres ?? "", "poll", POLLED);
    console.log(
      `${new Date().toISOString().slice(0, 16)} UTC; ${availableParallelism()} cores, ` +
        `${Math.round(totalmem() / 2 ** 30)} GB; Node ${process.version}; load ${(loadavg()[0] ?? 0).toFixed(1)}; ` +
        "one event at a time, ms\n",
    );
    console.log(
      table(
        ["from sendEvent to", "events", "p50", "p90", "p99", "max"],
        [
          ["the step in another process, with LISTEN/NOTIFY", ...row(heard.step)],
          ["its result in the sender, with LISTEN/NOTIFY", ...row(heard.result)],
          ["the step in the same process, without hints", ...row(alone.step)],
          ["the step in another process, by the poll alone", ...row(polled.step)],
        ],
      ),
    );
  } finally {
    await stop();
  }
}

/** @param {number[]} samples */
function row(samples) {
  const sorted = samples.toSorted((a, b) => a - b);
  const at = (/** @type {number} */ share) =>
    short(sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN);
  return [String(samples.length), at(0.5), at(0.9), at(0.99), at(1)];
}

/**
 * @param {string} url
 * @param {"listen" | "alone" | "poll"} how
 * @param {number} events
 */
async function measure(url, how, events) {
  const schema = `latency_${how}`;
  const { pawl, pool, end } = open(url, schema);
  await pool.query(`DROP SCHEMA IF EXISTS ${schema} CASCADE`);
  await pawl.migrate();
  const stopRunner = how === "alone" ? startHere(pawl) : await startElsewhere([url, schema, how]);
  /** @type {{ step: number[], result: number[] }} */
  const samples = { step: [], result: [] };
  for (let n = -WARM_UP; n < events; n++) {
    if (n % 50 === 0) console.error(`latency: ${how}, ${n} of ${events}`);
    if (n < 0 && how === "poll") continue;
    const instance = await pawl.workflows.Wait.create();
    while ((await instance.status()).status !== "waiting") await pause(5);
    const result = instance.result();
    // The sender has asked to be told by then, as anyone does who waits for a while.
    await pause(250);
    const sentAt = now();
    await instance.sendEvent({ type: "go" });
    const wentOnAt = await result;
    if (n < 0) continue;
    samples.step.push(wentOnAt - sentAt);
    samples.result.push(now() - sentAt);
  }
  await stopRunner();
  await pool.query(`DROP SCHEMA ${schema} CASCADE`);
  await end();
  return samples;
}

/** @param {ReturnType<typeof open>["pawl"]} pawl */
function startHere(pawl) {
  const runner = startRunner(pawl, { listen: false });
  return () => runner.stop({ timeoutMs: 0 });
}

/** @param {string[]} args */
async function startElsewhere(args) {
  const runner = fork(fileURLToPath(new URL("runner.mjs", import.meta.url)), args);
  await once(runner, "message");
  return async () => {
    const exited = once(runner, "exit");
    runner.disconnect();
    await exited;
  };
}

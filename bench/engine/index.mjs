// @ts-check
// npm run bench -- engine: what a step costs in a long run, live and in replay, on SQLite in one process.
import { mkdtempSync, rmSync } from "node:fs";
import { availableParallelism, loadavg, tmpdir, totalmem } from "node:os";
import path from "node:path";
import { openSqlite } from "@pawl/dispatcher-node";
import { createWorkflows, defineWorkflow } from "pawl";
import { sqliteStore } from "pawl/sqlite";
import { figure, short, spread, table, timed } from "../measure.mjs";

const ROUNDS = 5;
const SHORT = 100;
const LONG = 10_000;

const Steps = defineWorkflow({
  name: "steps",
  /**
   * @param {import("pawl").WorkflowEvent<{ steps: number }>} event
   * @param {import("pawl").WorkflowStep} step
   */
  async run({ payload: { steps } }, step) {
    for (let n = 1; n <= steps; n++) {
      await step.do(`step ${n}`, () => ({ n, ok: true, text: "a small result" }));
    }
    await step.waitForEvent("end", { type: "end", timeout: "1 hour" });
  },
});

export async function benchEngine() {
  const folder = mkdtempSync(path.join(tmpdir(), "pawl-bench-"));
  const file = path.join(folder, "pawl.db");
  /** @type {Record<"short" | "long" | "wake" | "replay", number[]>} */
  const samples = { short: [], long: [], wake: [], replay: [] };
  try {
    for (let round = 0; round <= ROUNDS; round++) {
      console.error(round === 0 ? "engine: warming up" : `engine: round ${round} of ${ROUNDS}`);
      const sample = await measure(file, round);
      if (round === 0) continue;
      for (const [name, ms] of Object.entries(sample)) {
        samples[/** @type {keyof typeof samples} */ (name)].push(ms);
      }
    }
  } finally {
    rmSync(folder, { recursive: true });
  }
  const figures = {
    short: figure(samples.short),
    long: figure(samples.long),
    wake: figure(samples.wake),
    replay: figure(samples.replay),
  };
  const perStep = { short: figures.short.median / SHORT, long: figures.long.median / LONG };
  console.log(
    `${new Date().toISOString().slice(0, 16)} UTC; ${availableParallelism()} cores, ` +
      `${Math.round(totalmem() / 2 ** 30)} GB; Node ${process.version}; load ${(loadavg()[0] ?? 0).toFixed(1)}; ` +
      `SQLite file, WAL, synchronous=FULL; median [min..max] of ${ROUNDS} rounds, ms\n`,
  );
  console.log(
    table(
      ["", "ms", "per step, ms", "ratio"],
      [
        [`run of ${SHORT} steps`, spread(figures.short), short(perStep.short), "1.00"],
        [
          `run of ${LONG.toLocaleString("en-US")} steps`,
          spread(figures.long),
          short(perStep.long),
          (perStep.long / perStep.short).toFixed(2),
        ],
        ["its wake from memory", spread(figures.wake), "", ""],
        ["its wake in a new process: load and replay", spread(figures.replay), "", ""],
      ],
    ),
  );
}

/**
 * @param {string} file
 * @param {number} round
 */
async function measure(file, round) {
  const first = await open(file);
  const shortMs = await timed(() => first.untilParked(`short-${round}`, SHORT));
  const longMs = await timed(() => first.untilParked(`long-${round}`, LONG));
  const wakeMs = await timed(() => first.end(`long-${round}`));
  await first.untilParked(`again-${round}`, LONG);
  await first.close();
  const second = await open(file);
  const replayMs = await timed(() => second.end(`again-${round}`));
  await second.close();
  return { short: shortMs, long: longMs, wake: wakeMs, replay: replayMs };
}

/** @param {string} file */
async function open(file) {
  const handle = openSqlite(file);
  const limits = { maxStepsPerRun: LONG };
  const pawl = createWorkflows({ workflows: { Steps }, store: sqliteStore(handle), limits });
  await pawl.migrate();
  return {
    /**
     * @param {string} id
     * @param {number} steps
     */
    async untilParked(id, steps) {
      await pawl.workflows.Steps.create({ id, params: { steps } });
      await pawl.tick();
    },
    /** @param {string} id */
    async end(id) {
      const instance = await pawl.workflows.Steps.get(id);
      await instance.sendEvent({ type: "end" });
      await pawl.tick();
      const { status } = await instance.status();
      if (status !== "complete") throw new Error(`${id} is ${status}`);
    },
    async close() {
      await pawl.close();
      handle.close();
    },
  };
}

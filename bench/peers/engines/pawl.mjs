// @ts-check
import { setTimeout as pause } from "node:timers/promises";
import { openSqlite, startRunner } from "@pawl/dispatcher-node";
import { createWorkflows, defineWorkflow } from "pawl";
import { postgresStore } from "pawl/postgres";
import { sqliteStore } from "pawl/sqlite";
import pg from "pg";
import { parkOnPostgres, parkOnSqlite } from "../../store/databases.mjs";
import { closedLoop } from "../engine.mjs";

/** @typedef {{ kind: import("../engine.mjs").Kind, steps: number }} Params */

const SHARED = {
  packages: [],
  inFlight: { W1: 200, W2: 200, W7: 200, W8: 200, W8b: 200, W9: 100 },
};

/** @type {import("../engine.mjs").Adapter} */
export const onPostgres = {
  ...SHARED,
  title: "Pawl, PostgreSQL",
  settings: "runner concurrency twice what is in flight, pool of 10",
  store: "postgres",
  open: async (place, inFlight, role) => {
    const pool = new pg.Pool({ connectionString: place.url, max: 10 });
    const engine = await open(place, inFlight, role, postgresStore(pool));
    return {
      ...engine,
      park: (count) => parkOnPostgres(pool, "pawl", count),
      close: () => engine.close().then(() => pool.end()),
    };
  },
};

/** @type {import("../engine.mjs").Adapter} */
export const onSqlite = {
  ...SHARED,
  title: "Pawl, SQLite",
  settings: "runner concurrency twice what is in flight; WAL, synchronous=FULL",
  store: "sqlite",
  open: async (place, inFlight, role) => {
    const handle = openSqlite(place.file);
    const engine = await open(place, inFlight, role, sqliteStore(handle));
    return {
      ...engine,
      park: async (count) => parkOnSqlite(handle, count),
      close: () => engine.close().then(() => void handle.close()),
    };
  },
};

/**
 * @template Tx
 * @param {import("../engine.mjs").Place} place
 * @param {number} concurrency
 * @param {import("../engine.mjs").Role} role
 * @param {import("pawl").Store<Tx>} store
 * @returns {Promise<import("../engine.mjs").Engine>}
 */
async function open({ body, now }, concurrency, role, store) {
  const Bench = defineWorkflow({
    name: "bench",
    /**
     * @param {import("pawl").WorkflowEvent<Params>} event
     * @param {import("pawl").WorkflowStep} step
     */
    async run({ payload: { kind, steps } }, step) {
      const one = (/** @type {number} */ n) => step.do(`step ${n}`, () => body(n));
      if (kind === "parallel") {
        await Promise.all(Array.from({ length: steps }, (_, n) => one(n)));
        return null;
      }
      for (let n = 0; n < steps; n++) await one(n);
      if (kind !== "wait") return null;
      await step.waitForEvent("go", { type: "go", timeout: "1 hour" });
      return step.do("go on", () => now());
    },
  });
  const limits = { maxStepsPerRun: 10_000 };
  let claimedAt = Number.NaN;
  /** @type {import("pawl").Store<Tx>} */
  const watched = {
    ...store,
    claim: async (request) => {
      const answer = await store.claim(request);
      if (answer.kind === "ok" && answer.claimed.length > 0) claimedAt = now();
      return answer;
    },
  };
  const pawl = createWorkflows({ workflows: { Bench }, store: watched, limits });
  await pawl.migrate();
  const runner = role === "client" ? null : startRunner(pawl, { concurrency: 2 * concurrency });
  /** @type {Map<string, Awaited<ReturnType<typeof pawl.workflows.Bench.create>>>} */
  const started = new Map();
  const instanceOf = async (/** @type {string} */ id) =>
    started.get(id) ?? (await pawl.workflows.Bench.get(id));
  /** @type {import("../engine.mjs").Engine} */
  const engine = {
    start: async ({ id, kind, steps }) => {
      started.set(id, await pawl.workflows.Bench.create({ id, params: { kind, steps } }));
    },
    result: async (id) => {
      const instance = await instanceOf(id);
      started.delete(id);
      return instance.result();
    },
    runAll: (works, inFlight) => closedLoop(engine, works, inFlight),
    waiting: async (id) => {
      const instance = await instanceOf(id);
      while ((await instance.status()).status !== "waiting") await pause(2);
    },
    claimedAt: () => claimedAt,
    send: async (id) => (await instanceOf(id)).sendEvent({ type: "go" }),
    close: async () => {
      await runner?.stop();
      await pawl.close();
    },
  };
  return engine;
}

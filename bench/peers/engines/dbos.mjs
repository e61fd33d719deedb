// @ts-check
import { arrival, closedLoop, load } from "../engine.mjs";

/**
 * The part of @dbos-inc/dbos-sdk that is used here.
 * @typedef {{ getResult(): Promise<unknown> }} Handle
 * @typedef {(kind: string, steps: number) => Promise<number | null>} Workflow
 * @typedef {object} Dbos
 * @property {(config: object) => void} setConfig
 * @property {(workflow: Workflow, config: { name: string }) => Workflow} registerWorkflow
 * @property {<T>(body: () => Promise<T>, config: { name: string }) => Promise<T>} runStep
 * @property {(topic: string, timeoutSeconds: number) => Promise<unknown>} recv
 * @property {(id: string, message: unknown, topic: string) => Promise<void>} send
 * @property {(workflow: Workflow, options: { workflowID: string }) => (kind: string, steps: number) => Promise<Handle>} startWorkflow
 * @property {(id: string) => Handle} retrieveWorkflow
 * @property {string} workflowID
 * @property {() => Promise<void>} launch
 * @property {() => Promise<void>} shutdown
 */

/** @type {import("../engine.mjs").Adapter} */
export const dbos = {
  title: "DBOS",
  packages: ["@dbos-inc/dbos-sdk"],
  settings: "started directly, not through a queue; pool of 20",
  store: "postgres",
  inFlight: { W1: 100, W2: 100 },
  open,
};

/**
 * @param {import("../engine.mjs").Place} place
 * @returns {Promise<import("../engine.mjs").Engine>}
 */
async function open({ url, body, now }) {
  const { DBOS } = /** @type {{ DBOS: Dbos }} */ (await load("@dbos-inc/dbos-sdk"));
  DBOS.setConfig({
    name: "bench",
    systemDatabaseUrl: url,
    systemDatabasePoolSize: 20,
    applicationVersion: "1",
    logLevel: "error",
  });
  const one = (/** @type {number} */ n) => DBOS.runStep(async () => body(n), { name: `step ${n}` });
  /** @type {Set<string>} */
  const arrived = new Set();
  const workflow = DBOS.registerWorkflow(
    async (kind, steps) => {
      if (kind === "parallel") {
        await Promise.all(Array.from({ length: steps }, (_, n) => one(n)));
        return null;
      }
      for (let n = 0; n < steps; n++) await one(n);
      if (kind !== "wait") return null;
      arrived.add(DBOS.workflowID);
      await DBOS.recv("go", 3600);
      return DBOS.runStep(async () => now(), { name: "go on" });
    },
    { name: "bench" },
  );
  await DBOS.launch();
  /** @type {Map<string, Handle>} */
  const handles = new Map();
  /** @type {import("../engine.mjs").Engine} */
  const engine = {
    start: async ({ id, kind, steps }) => {
      handles.set(id, await DBOS.startWorkflow(workflow, { workflowID: id })(kind, steps));
    },
    result: async (id) => (handles.get(id) ?? DBOS.retrieveWorkflow(id)).getResult(),
    runAll: (works, inFlight) => closedLoop(engine, works, inFlight),
    waiting: (id) => arrival(() => arrived.has(id)),
    send: (id) => DBOS.send(id, {}, "go"),
    close: () => DBOS.shutdown(),
  };
  return engine;
}

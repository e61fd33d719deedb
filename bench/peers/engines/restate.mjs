// @ts-check
import { createServer } from "node:http2";
import { ask } from "../../ask.mjs";
import { arrival, closedLoop, load } from "../engine.mjs";

/**
 * The part of @restatedev/restate-sdk that is used here.
 * @typedef {object} Context
 * @property {string} key
 * @property {<T>(name: string, body: () => T) => Promise<T>} run
 * @property {(name: string) => PromiseLike<unknown> & { resolve(value: unknown): Promise<void> }} promise
 * @typedef {object} Restate
 * @property {(definition: object) => object} workflow
 * @property {(options: { services: object[] }) => () => void} createEndpointHandler
 * @property {{ all(promises: Promise<unknown>[]): Promise<unknown[]> }} RestatePromise
 */

/** @type {import("../engine.mjs").Adapter} */
export const restate = {
  title: "Restate",
  packages: ["@restatedev/restate-sdk", "@restatedev/restate-server"],
  settings: "as workflows, over HTTP; one server, its log synced (its default)",
  store: "restate",
  needsNode22: true,
  inFlight: { W1: 100, W2: 200 },
  open,
};

/**
 * @param {import("../engine.mjs").Place} place
 * @returns {Promise<import("../engine.mjs").Engine>}
 */
async function open({ restate: server, body, now }) {
  if (server === undefined) throw new Error("no Restate server");
  const { ingress, admin, port } = server;
  const sdk = /** @type {Restate} */ (await load("@restatedev/restate-sdk"));
  /** @type {Set<string>} */
  const arrived = new Set();
  const bench = sdk.workflow({
    name: "bench",
    handlers: {
      run: async (
        /** @type {Context} */ context,
        /** @type {{ kind: string, steps: number }} */ { kind, steps },
      ) => {
        const one = (/** @type {number} */ n) => context.run(`step ${n}`, () => body(n));
        if (kind === "parallel") {
          await sdk.RestatePromise.all(Array.from({ length: steps }, (_, n) => one(n)));
          return null;
        }
        for (let n = 0; n < steps; n++) await one(n);
        if (kind !== "wait") return null;
        arrived.add(context.key);
        await context.promise("go");
        return context.run("go on", now);
      },
      go: async (/** @type {Context} */ context) => {
        await context.promise("go").resolve(true);
      },
    },
  });
  const endpoint = createServer(sdk.createEndpointHandler({ services: [bench] }));
  /** @type {Set<import("node:http2").ServerHttp2Session>} */
  const sessions = new Set();
  endpoint.on("session", (session) => sessions.add(session));
  await new Promise((resolve) => endpoint.listen(port, "127.0.0.1", () => resolve(undefined)));
  await ask(`${admin}/deployments`, { uri: `http://127.0.0.1:${port}`, force: true });
  /** @type {import("../engine.mjs").Engine} */
  const engine = {
    start: async ({ id, kind, steps }) =>
      void (await ask(`${ingress}/bench/${id}/run/send`, { kind, steps })),
    result: (id) => ask(`${ingress}/restate/workflow/bench/${id}/attach`),
    // One call starts a run and answers its result.
    runAll: (works, inFlight) =>
      closedLoop(
        {
          start: async ({ id, kind, steps }) =>
            void (await ask(`${ingress}/bench/${id}/run`, { kind, steps })),
          result: async () => null,
        },
        works,
        inFlight,
      ),
    waiting: (id) => arrival(() => arrived.has(id)),
    send: async (id) => void (await ask(`${ingress}/bench/${id}/go`, null)),
    close: async () => {
      for (const session of sessions) session.destroy();
      await new Promise((resolve) => endpoint.close(resolve));
    },
  };
  return engine;
}

// @ts-check
import { createServer } from "node:http";
import { ask, askLong } from "../../ask.mjs";
import { arrival } from "../engine.mjs";

/** Miniflare evicts no instance, and each has a SQLite database of its own: after 2,600 of them workerd has SQLITE_NOMEM. */
const MAX_RUNS = 1000;

/** @type {import("../engine.mjs").Adapter} */
export const cloudflare = {
  title: "Cloudflare Workflows, local",
  packages: ["miniflare", "workerd"],
  settings:
    "in a workerd of its own, which counts as the database, with the Worker that starts, sends and asks; called over HTTP. " +
    "Results by status() every 5 ms, in W1 and W2 after the code has ended; create() answers before anything is stored. " +
    `W4's step tells its time by a request to the sender, which counts. W1 is ${MAX_RUNS} workflows: workerd has memory for 2,600 in all, warm-up included`,
  store: "cloudflare",
  // From 5 to 200 in W1 no difference beyond noise was seen.
  inFlight: { W1: 50, W2: 20 },
  maxRuns: MAX_RUNS,
  workloads: ["W1", "W2", "W3", "W4"],
  open,
};

/**
 * @param {import("../engine.mjs").Place} place
 * @returns {Promise<import("../engine.mjs").Engine>}
 */
async function open({ cloudflare: server, now }) {
  if (server === undefined) throw new Error("no workerd");
  const { url } = server;
  const clock = createServer((_, response) => void response.end(String(now())));
  await new Promise((resolve) => clock.listen(0, "127.0.0.1", () => resolve(undefined)));
  const address = clock.address();
  const port = typeof address === "object" ? address?.port : undefined;
  const call = (/** @type {string} */ name, /** @type {object} */ given) =>
    ask(`${url}/${name}`, given);
  return {
    start: (work) => call("start", { ...work, clock: `http://127.0.0.1:${port}/` }),
    result: (id) => call("result", { id }),
    runAll: (works, inFlight) => askLong(`${url}/runAll`, { works, inFlight }),
    waiting: (id) => arrival(() => call("hasArrived", { id })),
    send: (id) => call("send", { id }),
    bodies: () => call("bodies", {}),
    close: async () => {
      clock.closeAllConnections();
      await new Promise((resolve) => clock.close(resolve));
    },
  };
}

import { WorkflowError } from "pawl";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { inScope, Scope } from "../../pawl/test/support/scope.js";
import {
  canStartServers,
  type Kind,
  privateServer,
  servers,
} from "../../pawl/test/support/servers.js";
import { until } from "../../pawl/test/support/until.js";
import { stage, type App } from "./support/apps.js";
import { compileProcess } from "./support/compile.js";

/* A database that crashes and comes back under load, and processes that do not. */

const MORE = 5;
const result = [
  "first",
  "gated",
  ...Array.from({ length: MORE }, (_, n) => `more ${n + 1}`),
  "last",
];
/** The events that may be logged, because the store was away. Anything else is a mistake. */
const outage = /^(claim|commit|heartbeat|load|poll|reopen|adopt|listen)\.failed$/;

let app: string;
const scope = new Scope();
beforeAll(async () => {
  app = await compileProcess(scope, "dispatcher-node/test/support/app.ts");
});
afterAll(() => scope.end());

describe.skipIf(!canStartServers)("a database that restarts under load", () => {
  test.each(servers)(
    "%s: both processes live on, and every instance ends as it should",
    (kind: Kind) =>
      inScope(async (own) => {
        const server = await privateServer(own, kind);
        const { work, start, ledger } = await stage(own, kind, { url: server.url });
        const options = { leaseMs: 120_000, pollMs: 100 };
        const apps = [await start(app, options), await start(app, options)];

        const ids: string[] = [];
        const load = { isOver: false };
        const creating = async (name: string): Promise<void> => {
          for (let n = 0; !load.isOver; n++) {
            const id = `${name}-${n}`;
            await insist(() => work.create({ id, params: { more: MORE } }));
            ids.push(id);
            await until(() => ledger().length > ids.length, "work goes on", 20);
          }
        };
        const loads = Promise.all(["a", "b", "c"].map(creating));
        loads.catch(() => {}); // reported below
        for (let restarts = 0; restarts < 2; restarts++) {
          const before = ids.length;
          await Promise.race([loads, until(() => ids.length > before + 15, "under load")]);
          await server.restart();
        }
        const after = ids.length;
        await Promise.race([loads, until(() => ids.length > after + 15, "under load again")]);
        load.isOver = true;
        await loads;

        for (const id of ids) {
          const instance = await insist(() => work.get(id));
          expect(await insist(() => instance.result({ timeout: "60 seconds" }))).toEqual(result);
        }
        // Nobody died, so nothing was charged: a body that was entered again is the same attempt.
        expect(ledger().filter(({ attempt }) => attempt !== 1)).toEqual([]);
        await Promise.all(apps.map(endsWell));
      }),
    180_000,
  );
});

/** Sends a request again that the store gave up on. */
async function insist<T>(work: () => Promise<T>): Promise<T> {
  return until(async () => {
    try {
      return { answer: await work() };
    } catch (error) {
      if (!(error instanceof WorkflowError)) throw error;
      if (error.code === "STORE_UNAVAILABLE") return undefined;
      // The try before was carried out, and its answer got lost.
      if (error.code === "INSTANCE_ID_ALREADY_EXISTS") return { answer: undefined as T };
      throw error;
    }
  }, "answered").then(({ answer }) => answer);
}

async function endsWell(each: App): Promise<void> {
  each.signal("SIGTERM");
  expect(await each.exited()).toEqual({ code: 0, signal: null });
  expect(each.errors()).toBe("");
  expect(each.events.filter(({ event }) => !outage.test(event))).toEqual([]);
}

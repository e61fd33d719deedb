import {
  createWorkflows,
  defineWorkflow,
  type Logger,
  type Store,
  type WorkflowEvent,
  type WorkflowStep,
} from "pawl";
import { postgresStore } from "pawl/postgres";
import { describe, expect, test } from "vitest";
import { startRunner, type StartRunnerOptions } from "@pawl/dispatcher-node";
import { bouncer } from "../../pawl/test/support/bouncer.js";
import { database, postgresPool, type Database } from "../../pawl/test/support/database.js";
import { inScope, type Scope } from "../../pawl/test/support/scope.js";
import { servers } from "../../pawl/test/support/servers.js";
import { Signal, until } from "../../pawl/test/support/until.js";

/* Processes that tell one another. Two engines with pools of their own are two processes to the database. */

const shapeless = ["none", "changed", "awaited", "ended"].map((kind) => JSON.stringify({ kind }));

/** Neither a poll nor a heartbeat nor the end of a lease comes to anybody's help. */
const alone: StartRunnerOptions = {
  poll: { minMs: 3_600_000, maxMs: 3_600_000 },
  leaseMs: 3_600_000,
};
const timeout = "20 seconds";

type Code = (event: WorkflowEvent, step: WorkflowStep) => Promise<unknown>;
const wait: Code = async (_event, step) =>
  (await step.waitForEvent("wait", { type: "go" })).payload;

type Logged = { readonly event: string; readonly retryInMs?: number | null };

function processOn(scope: Scope, db: Database, code: Code, url = db.url) {
  const logged: Logged[] = [];
  const reads: string[] = [];
  const log = (event: string, fields: object = {}): void => void logged.push({ event, ...fields });
  const logger: Logger = { debug() {}, info: log, warn: log, error: log };
  const own = postgresStore(postgresPool(scope, url), { schema: db.name });
  const store: Store = {
    ...own,
    get: (target) => {
      reads.push(target.id);
      return own.get(target);
    },
  };
  const workflows = { MAIN: defineWorkflow({ name: "main", run: code }) };
  const pawl = createWorkflows({ workflows, store, logger });
  scope.defer(() => pawl.close());
  return { pawl, main: pawl.workflows.MAIN, store, logged, reads };
}

/** A database, a process that serves and has looked around, and one that only asks. */
async function two(scope: Scope, code: Code, options: StartRunnerOptions = alone) {
  const db = await database(scope, "postgres");
  const server = processOn(scope, db, code);
  await server.pawl.migrate();
  const watcher = await db.session();
  const runner = startRunner(server.pawl, options);
  scope.defer(() => runner.stop({ timeoutMs: 0 }));
  if (options.listen !== false) await until(() => server.store.hints?.isListening, "listening");
  return { db, server, runner, watcher, caller: processOn(scope, db, code) };
}

type World = Awaited<ReturnType<typeof two>>;

async function parked({ caller }: World) {
  const instance = await caller.main.create();
  await until(async () => (await instance.status()).status === "waiting", "parked");
  return instance;
}

const listeners = ({ db, watcher }: Pick<World, "db" | "watcher">): Promise<number[]> =>
  watcher
    .query(
      `SELECT pid FROM pg_stat_activity WHERE query = 'LISTEN pawl_${db.name}' OR (query = 'SELECT 1' AND pid IN (
         SELECT pid FROM pg_stat_activity WHERE query LIKE '%pawl_${db.name}%'))`,
    )
    .then((rows) => rows.map(({ pid }) => Number(pid)));

describe.runIf(servers.includes("postgres"))("hints between processes on PostgreSQL", () => {
  test("a run that another process created, and an event that it sent, are taken at once", () =>
    inScope(async (scope) => {
      const world = await two(scope, wait);
      const instance = await parked(world);
      await instance.sendEvent({ type: "go", payload: "hello" });
      expect(await instance.result({ timeout })).toBe("hello");
    }));

  test("a transaction's work is taken after wake", () =>
    inScope(async (scope) => {
      const world = await two(scope, wait);
      const instance = await parked(world);
      const client = await postgresPool(scope, world.db.url).connect();
      await client.query("BEGIN");
      await instance.sendEvent({ type: "go", payload: "tx" }, { tx: client });
      await client.query("COMMIT");
      client.release();
      world.caller.pawl.wake();
      expect(await instance.result({ timeout })).toBe("tx");
    }));

  test("an event reaches a run whose body is executing elsewhere", () =>
    inScope(async (scope) => {
      const begun = new Signal();
      const code: Code = async (_event, step) => {
        const held = step.do("held", async ({ signal }) => {
          begun.give();
          await new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve()));
        });
        held.catch(() => {});
        return (await step.waitForEvent("wait", { type: "go" })).payload;
      };
      const { caller } = await two(scope, code);
      const instance = await caller.main.create();
      await begun.wait();
      await until(async () => {
        const { entries } = await caller.pawl.history("main", instance.id);
        return entries.some((entry) => entry.kind === "step" && entry.status === "waiting");
      }, "waiting beside the body");
      await instance.sendEvent({ type: "go", payload: "beside" });
      expect(await instance.result({ timeout })).toBe("beside");
    }));

  test("a terminate reaches a body that executes elsewhere", () =>
    inScope(async (scope) => {
      const begun = new Signal();
      const aborted = new Signal();
      const code: Code = (_event, step) =>
        step.do("held", async ({ signal }) => {
          signal.addEventListener("abort", () => aborted.give());
          begun.give();
          await aborted.wait();
        });
      const { caller } = await two(scope, code);
      const instance = await caller.main.create();
      await begun.wait();
      await instance.terminate();
      await aborted.wait();
    }));

  test("result hears of the end elsewhere, and hardly looks", () =>
    inScope(async (scope) => {
      const world = await two(scope, wait);
      const { caller, server } = world;
      const warm = await parked(world);
      const listening = warm.result({ timeout });
      await until(() => caller.store.hints?.isListening, "listening for ends");
      const instance = await parked(world);
      const other = await server.main.get(instance.id);
      caller.reads.length = 0;
      const looks = (): number => caller.reads.filter((id) => id === instance.id).length;
      const result = instance.result({ timeout });
      await until(() => looks() === 4, "the last look for a second");
      await other.sendEvent({ type: "go", payload: 1 });
      const sentAt = performance.now();
      expect(await result).toBe(1);
      // Without being told it would sleep for one to ten seconds by now.
      expect(performance.now() - sentAt).toBeLessThan(900);
      expect(looks()).toBe(5);
      await warm.sendEvent({ type: "go" });
      await listening;
    }));

  test("who asks for an end that has been is told", () =>
    inScope(async (scope) => {
      const { db, server } = await two(scope, async () => "over");
      const { id } = await server.main.create();
      const ended = await server.main.get(id);
      await ended.result({ timeout });
      const asker = processOn(scope, db, wait);
      const target = { workflow: "main", id };
      const heard: { readonly kind: string }[] = [];
      const deaf = asker.store.hints?.listen({
        hear: (hint) => void heard.push(hint),
        listening() {},
        failed() {},
      });
      scope.defer(async () => deaf?.());
      await until(() => asker.store.hints?.isListening, "listening");
      void asker.store.hints?.tell({ kind: "awaited", target });
      await until(() => heard.some(({ kind }) => kind === "ended"), "told");
      expect(heard).toContainEqual({ kind: "ended", target });
    }));

  test("what a stop gives back is taken over by another process at once, as the same attempt", () =>
    inScope(async (scope) => {
      const attempts: number[] = [];
      const begun = new Signal();
      const code: Code = (_event, step) =>
        step.do("a", ({ attempt }) => {
          attempts.push(attempt);
          begun.give();
          return attempts.length === 1 ? new Promise<string>(() => {}) : "ok";
        });
      const { db, runner, caller } = await two(scope, code);
      const instance = await caller.main.create();
      await begun.wait();
      const second = processOn(scope, db, code);
      startRunner(second.pawl, alone);
      await until(() => second.store.hints?.isListening, "the second listening");
      await runner.stop({ timeoutMs: 0 });
      expect(await instance.result({ timeout })).toBe("ok");
      expect(attempts).toEqual([1, 1]);
    }));

  test("a process that has more than it can do calls the others", () =>
    inScope(async (scope) => {
      const over = new Signal();
      const { db, server } = await two(scope, (_event, step) => step.do("a", () => over.wait()), {
        ...alone,
        concurrency: 1,
      });
      const second = processOn(scope, db, async (_event, step) => step.do("a", () => "second"));
      startRunner(second.pawl, alone);
      await until(() => second.store.hints?.isListening, "the second listening");
      const batch = await server.main.createBatch([{ id: "a" }, { id: "b" }, { id: "c" }]);
      const isDone = async (each: (typeof batch)[number]): Promise<boolean> =>
        (await each.status()).status === "complete";
      const done = async (): Promise<number> =>
        (await Promise.all(batch.map(isDone))).filter(Boolean).length;
      await until(async () => (await done()) >= 2, "two done by the second");
      over.give();
      await until(async () => (await done()) === 3, "all done");
    }));

  test("a connection that is lost is opened again", () =>
    inScope(async (scope) => {
      const world = await two(scope, wait);
      const { server, watcher } = world;
      const instance = await parked(world);
      const [pid] = await listeners(world);
      await watcher.query("SELECT pg_terminate_backend($1)", [pid]);
      await until(() => server.logged.some(({ event }) => event === "listen.failed"), "noticed");
      await until(() => server.store.hints?.isListening, "listening again");
      await instance.sendEvent({ type: "go", payload: "again" });
      expect(await instance.result({ timeout })).toBe("again");
    }));

  test("what was told while nobody listened is looked for afterwards", () =>
    inScope(async (scope) => {
      const world = await two(scope, wait);
      const { server, watcher, caller } = world;
      const instance = await parked(world);
      const [pid] = await listeners(world);
      await watcher.query("SELECT pg_terminate_backend($1)", [pid]);
      await until(() => server.store.hints?.isListening === false, "deaf");
      await (await caller.main.get(instance.id)).sendEvent({ type: "go", payload: "late" });
      expect(await instance.result({ timeout })).toBe("late");
    }));

  test("listen: false has no connection for it, and polls", () =>
    inScope(async (scope) => {
      const world = await two(scope, wait, { listen: false, poll: { minMs: 20, maxMs: 40 } });
      const instance = await parked(world);
      expect(await listeners(world)).toEqual([]);
      await instance.sendEvent({ type: "go", payload: "polled" });
      const other = await world.server.main.get(instance.id);
      expect(await other.result({ timeout })).toBe("polled");
      expect(await listeners(world)).toEqual([]);
    }));

  test("one process alone tells nothing", () =>
    inScope(async (scope) => {
      const { db, server } = await two(scope, async (_event, step) => {
        await step.sleep("nap", 5);
        return step.do("a", () => "ok");
      });
      const client = await postgresPool(scope, db.url).connect();
      const heard: unknown[] = [];
      client.on("notification", ({ payload }) => heard.push(payload));
      await client.query(`LISTEN pawl_${db.name}`);
      const instances = await Promise.all(Array.from({ length: 20 }, () => server.main.create()));
      for (const each of instances) {
        await until(async () => (await each.status()).status === "complete", "complete");
      }
      await client.query("SELECT 1");
      expect(heard).toEqual([]);
      client.release();
    }));

  test("others' notifications on the channel do no harm", () =>
    inScope(async (scope) => {
      const world = await two(scope, wait);
      const instance = await parked(world);
      for (const payload of ["", "null", "[]", "{", ...shapeless]) {
        await world.watcher.query("SELECT pg_notify($1, $2)", [`pawl_${world.db.name}`, payload]);
      }
      await instance.sendEvent({ type: "go", payload: 1 });
      expect(await instance.result({ timeout })).toBe(1);
    }));

  test("behind a pooler it says so once, and polls; what it tells is heard elsewhere", () =>
    inScope(async (scope) => {
      const world = await two(scope, wait);
      const url = await bouncer(scope, world.db.url, "options");
      const pooled = processOn(scope, world.db, wait, url);
      const runner = startRunner(pooled.pawl, { ...alone, concurrency: 1 });
      await until(() => pooled.logged.some(({ event }) => event === "listen.failed"), "said so");
      const instance = await parked(world);
      await runner.stop();
      await (await pooled.main.get(instance.id)).sendEvent({ type: "go", payload: "pooled" });
      expect(await instance.result({ timeout })).toBe("pooled");
      const failures = pooled.logged.filter(({ event }) => event === "listen.failed");
      expect(failures).toMatchObject([{ retryInMs: null }]);
    }));
});

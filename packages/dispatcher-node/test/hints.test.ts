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
import type { Hint, HintChannel } from "../../pawl/src/store/hints.js";
import { bouncer } from "../../pawl/test/support/bouncer.js";
import { database, postgresPool, type Database } from "../../pawl/test/support/database.js";
import { inScope, type Scope } from "../../pawl/test/support/scope.js";
import { servers } from "../../pawl/test/support/servers.js";
import { Signal, until } from "../../pawl/test/support/until.js";

/* Processes that send each other hints. To the database, two engines with pools of their own are two processes. */

const shapeless = [
  ...["none", "changed", "awaited", "ended"].map((kind) => ({ from: "x", hints: [{ kind }] })),
  { from: "x", hints: [null, 1] },
  { from: 1, hints: [{ kind: "due" }] },
  { from: "x".repeat(100), hints: [{ kind: "awaited", target: { workflow: "main", id: "x" } }] },
  { hints: [] },
  [{ kind: "due" }],
].map((message) => JSON.stringify(message));

/** No poll, heartbeat or end of a lease comes to anybody's help. */
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

/** Opens a database, a process that serves and has looked for work, and one that only asks. */
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

/** Records what a process on that schema hears. */
async function listener(scope: Scope, url: string, schema: string) {
  const store = postgresStore(postgresPool(scope, url), { schema });
  scope.defer(() => store.close());
  const hints = store.hints as HintChannel;
  const heard: Hint[] = [];
  hints.listen({ hear: (hint) => void heard.push(hint), listening() {}, failed() {} });
  await until(() => hints.isListening, "listening");
  return { hints, heard };
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
      `SELECT pid FROM pg_stat_activity WHERE query = 'LISTEN "pawl_${db.name}"' OR (query = 'SELECT 1' AND pid IN (
         SELECT pid FROM pg_stat_activity WHERE query LIKE '%pawl_${db.name}%'))`,
    )
    .then((rows) => rows.map(({ pid }) => Number(pid)));

describe.runIf(servers.includes("postgres"))("hints between processes on PostgreSQL", () => {
  test("let a process take another's new run, and an event for it, at once", () =>
    inScope(async (scope) => {
      const world = await two(scope, wait);
      const instance = await parked(world);
      await instance.sendEvent({ type: "go", payload: "hello" });
      expect(await instance.result({ timeout })).toBe("hello");
    }));

  test("let a transaction's work be taken after wake", () =>
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

  test("bring an event to a run whose body is executing elsewhere", () =>
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

  test("bring a terminate to a body that executes elsewhere", () =>
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

  test("tell result of an end elsewhere, so that it hardly polls", () =>
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
      // Without a hint the caller would sleep for one to ten seconds by now.
      expect(performance.now() - sentAt).toBeLessThan(900);
      expect(looks()).toBe(5);
      await warm.sendEvent({ type: "go" });
      await listening;
    }));

  test("answer a process that asks for a past end, and no other process", () =>
    inScope(async (scope) => {
      const { db, server } = await two(scope, async () => "over");
      const { id } = await server.main.create();
      const ended = await server.main.get(id);
      await ended.result({ timeout });
      const asker = await listener(scope, db.url, db.name);
      const other = await listener(scope, db.url, db.name);
      const target = { workflow: "main", id };
      void asker.hints.tell({ kind: "awaited", target });
      await until(() => asker.heard.length === 1, "told");
      expect(asker.heard).toEqual([{ kind: "ended", target }]);
      // A later hint has come, so the question has come, and no answer.
      void server.store.hints?.tell({ kind: "due" });
      await until(() => other.heard.length >= 2, "the next hint");
      expect(other.heard).toEqual([{ kind: "awaited", target }, { kind: "due" }]);
    }));

  test("tell all who ask, before and after the end, each of them once", () =>
    inScope(async (scope) => {
      const held = new Signal();
      const { db, server } = await two(scope, (_event, step) => step.do("held", () => held.wait()));
      const { id } = await server.main.create();
      const target = { workflow: "main", id };
      const first = await listener(scope, db.url, db.name);
      const second = await listener(scope, db.url, db.name);
      const late = await listener(scope, db.url, db.name);
      const ends = ({ heard }: typeof first): number =>
        heard.filter(({ kind }) => kind === "ended").length;
      void first.hints.tell({ kind: "awaited", target });
      void second.hints.tell({ kind: "awaited", target });
      await until(() => late.heard.length === 2, "both have asked");
      held.give();
      await until(() => ends(first) === 1 && ends(second) === 1, "both told");
      void late.hints.tell({ kind: "awaited", target });
      await until(() => ends(late) === 1, "told late");
      void late.hints.tell({ kind: "awaited", target });
      const other = { workflow: "main", id: (await server.main.create()).id };
      await (await server.main.get(other.id)).result({ timeout });
      void late.hints.tell({ kind: "awaited", target: other });
      await until(
        () => late.heard.some((hint) => "target" in hint && hint.target.id === other.id),
        "the next",
      );
      expect([ends(first), ends(second), ends(late)]).toEqual([1, 1, 2]);
    }));

  test("reach a process in its next session if it asked before its session was lost", () =>
    inScope(async (scope) => {
      const held = new Signal();
      const world = await two(scope, (_event, step) => step.do("held", () => held.wait()));
      const { db, server, watcher } = world;
      const { id } = await server.main.create();
      const target = { workflow: "main", id };
      const name = `asker of ${db.name}`;
      const url = new URL(db.url);
      url.searchParams.set("application_name", name);
      const asker = await listener(scope, url.href, db.name);
      const other = await listener(scope, db.url, db.name);
      void asker.hints.tell({ kind: "awaited", target });
      await until(() => other.heard.length === 1, "asked");
      await watcher.query(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = $1",
        [name],
      );
      await until(() => !asker.hints.isListening, "deaf");
      await until(() => asker.hints.isListening, "hears again");
      held.give();
      await until(() => asker.heard.some(({ kind }) => kind === "ended"), "told");
    }));

  test("that are told together are few notifications, and all are heard", () =>
    inScope(async (scope) => {
      const db = await database(scope, "postgres");
      const teller = await listener(scope, db.url, db.name);
      const hearer = await listener(scope, db.url, db.name);
      const client = await postgresPool(scope, db.url).connect();
      const sizes: number[] = [];
      client.on("notification", ({ payload = "" }) => sizes.push(Buffer.byteLength(payload)));
      await client.query(`LISTEN "pawl_${db.name}"`);
      // Some characters have three bytes, so that bytes count and not characters.
      const ids = Array.from(
        { length: 5_000 },
        (_, n) => `${(n % 3 === 0 ? "€" : "e").repeat(80)}${n}`,
      );
      for (const id of ids)
        void teller.hints.tell({ kind: "awaited", target: { workflow: "main", id } });
      await until(() => hearer.heard.length === ids.length, "all heard");
      expect(hearer.heard.map((hint) => "target" in hint && hint.target.id)).toEqual(ids);
      await client.query("SELECT 1");
      client.release();
      expect(sizes.length).toBeLessThan(200);
      expect(Math.max(...sizes)).toBeGreaterThan(7_500);
      expect(teller.heard).toEqual([]);
    }));

  test("take a schema's name as it is written", () =>
    inScope(async (scope) => {
      const db = await database(scope, "postgres");
      const schema = db.name.toUpperCase();
      const teller = await listener(scope, db.url, schema);
      const hearer = await listener(scope, db.url, schema);
      const other = await listener(scope, db.url, db.name);
      void teller.hints.tell({ kind: "due" });
      await until(() => hearer.heard.length === 1, "heard");
      const target = { workflow: "main", id: "other" };
      const neighbour = await listener(scope, db.url, db.name);
      void neighbour.hints.tell({ kind: "awaited", target });
      await until(() => other.heard.length > 0, "its own heard");
      expect(other.heard).toEqual([{ kind: "awaited", target }]);
    }));

  test("let another process take over what a stop gives back at once, as the same attempt", () =>
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

  test("call other processes if one has more than it can do", () =>
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

  test("arrive again after a lost connection was reopened", () =>
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

  test("that were missed while nobody listened are made up for afterwards", () =>
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

  test("need no connection with listen: false, which polls", () =>
    inScope(async (scope) => {
      const world = await two(scope, wait, { listen: false, poll: { minMs: 20, maxMs: 40 } });
      const instance = await parked(world);
      expect(await listeners(world)).toEqual([]);
      await instance.sendEvent({ type: "go", payload: "polled" });
      const other = await world.server.main.get(instance.id);
      expect(await other.result({ timeout })).toBe("polled");
      expect(await listeners(world)).toEqual([]);
    }));

  test("are not sent by a process that is alone", () =>
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

  test("are not disturbed by foreign notifications on the channel", () =>
    inScope(async (scope) => {
      const world = await two(scope, wait);
      const instance = await parked(world);
      for (const payload of ["", "null", "[]", "{", ...shapeless]) {
        await world.watcher.query("SELECT pg_notify($1, $2)", [`pawl_${world.db.name}`, payload]);
      }
      await instance.sendEvent({ type: "go", payload: 1 });
      expect(await instance.result({ timeout })).toBe(1);
    }));

  test("are not heard behind a pooler, which is logged once, but are heard from there elsewhere", () =>
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

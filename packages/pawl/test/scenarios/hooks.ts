import {
  createWorkflows,
  type HookDelivery,
  type Hooks,
  type InstanceFinished,
  type Registry,
  type Store,
  type WorkflowEnqueued,
} from "pawl";
import { VirtualTime } from "pawl/testing";
import { describe, expect, onTestFinished, test } from "vitest";
import { DELIVERY_LEASE_MS } from "../../src/hooks/deliverer.js";
import type { StoreFixture, TestDatabase } from "../../src/testing/conformance/index.js";
import { until } from "../support/until.js";
import { Gate, stage, type Code } from "./stage.js";
import { counting } from "./store-wrappers.js";

type Told = (WorkflowEnqueued | InstanceFinished) & { readonly attempt: number };

/** Hooks that record what they were told, and then call `act`, which a test may replace. */
class Recorder {
  readonly told: Told[] = [];
  readonly signals: AbortSignal[] = [];
  act: (told: Told) => unknown = () => {};

  readonly #tell = async (
    happened: WorkflowEnqueued | InstanceFinished,
    { attempt, signal }: HookDelivery,
  ): Promise<void> => {
    const told = { ...happened, attempt };
    this.told.push(told);
    this.signals.push(signal);
    await this.act(told);
  };
  readonly hooks: Hooks = { onWorkflowEnqueued: this.#tell, onInstanceFinished: this.#tell };

  /** One short text for each call: the cause, the instance and the run. */
  get words(): string[] {
    return this.told.map((told) => {
      const what = "reason" in told ? told.reason : told.status;
      return `${what} ${told.instanceId} ${told.runNumber}`;
    });
  }
}

const ends: Code = (event, step) =>
  step.do("a", { retries: { limit: 0, delay: 0 } }, () => {
    if (event.payload === "fails") throw new Error("no");
    return "ok";
  });

const never = (): Promise<never> => new Promise(() => {});

export function hooks(on: StoreFixture): void {
  describe("hooks", () => {
    test("are called once for every cause, with its facts and an id of its own", async () => {
      const recorder = new Recorder();
      const s = await stage(on, ends, { hooks: recorder.hooks });
      await s.start("works");
      await s.start("fails");
      const third = await s.create("works");
      await third.pause();
      await third.resume();
      await third.terminate();
      await third.restart();
      await s.h.runUntilIdle();
      expect(recorder.words.toSorted()).toEqual(
        [
          ["create i1 1", "complete i1 1", "create i2 1", "errored i2 1"],
          ["create i3 1", "resume i3 1", "terminated i3 1", "restart i3 2", "complete i3 2"],
        ]
          .flat()
          .toSorted(),
      );
      expect(new Set(recorder.told.map(({ id }) => id)).size).toBe(9);
      const { id: _own, ...first } = recorder.told[0]!;
      expect(first).toEqual({
        workflowName: "main",
        instanceId: "i1",
        runNumber: 1,
        reason: "create",
        happenedAt: new Date(s.clock.now()),
        attempt: 1,
      });
      await s.pass("1 day");
      expect(recorder.told.length).toBe(9);
    });

    test("are called for batches, children and events", async () => {
      const recorder = new Recorder();
      const code = {
        MAIN: (async (_event, step, { workflows }) => {
          await step.do("child", async () => {
            await workflows["CHILD"]?.create({ id: "c" });
          });
          await step.waitForEvent("wait", { type: "go" });
        }) satisfies Code,
        CHILD: ends,
      };
      const s = await stage(on, code, { hooks: recorder.hooks });
      await s.workflows["MAIN"]?.createBatch([{ id: "a" }, { id: "b" }]);
      await s.h.runUntilIdle();
      expect(recorder.words.toSorted()).toEqual([
        "complete c 1",
        "create a 1",
        "create b 1",
        "create c 1",
      ]);
      const a = await s.workflows["MAIN"]?.get("a");
      await a?.sendEvent({ type: "other" });
      await a?.sendEvent({ type: "go" });
      await s.h.runUntilIdle();
      expect(recorder.words.slice(4)).toEqual(["event a 1", "complete a 1"]);
    });

    test("are called in the process that registered them, whichever process writes", async () => {
      const recorder = new Recorder();
      const s = await stage(on, ends);
      const peer = await s.peer({ OTHER: ends }, { hooks: recorder.hooks });
      await peer.h.tick();
      await s.start();
      await s.pass("1 hour");
      expect(recorder.told).toEqual([]);
      await peer.h.tick();
      expect(recorder.words).toEqual(["create i1 1", "complete i1 1"]);
    });

    test("cost no call to the store if none is registered", async () => {
      const store = counting();
      const s = await stage(on, ends, { around: store.around });
      await s.start();
      const { unknownHooks: _report, ...calls } = store.calls;
      expect(Object.keys(calls).filter((verb) => verb.includes("ook"))).toEqual([]);
    });

    test("are registered once per process", async () => {
      const store = counting();
      const recorder = new Recorder();
      const s = await stage(on, ends, { hooks: recorder.hooks, around: store.around });
      for (let i = 0; i < 3; i++) await s.start();
      expect(store.calls["registerHooks"]).toBe(1);
      expect(store.calls["create"]).toBe(3);
    });

    test.each(["commit", "rollback"] as const)("follow a user's transaction: %s", async (end) => {
      const recorder = new Recorder();
      const s = await stage(on, ends, { hooks: recorder.hooks });
      const transaction = await s.database.begin();
      const { tx } = transaction;
      // This is the first thing that the process does, so its hooks are not registered yet.
      const instance = await s.workflows["MAIN"]?.create({ id: "t" }, { tx });
      await instance?.sendEvent({ type: "go" }, { tx });
      expect(recorder.told).toEqual([]);
      await transaction[end]();
      await s.h.runUntilIdle();
      expect(recorder.words.toSorted()).toEqual(
        end === "commit" ? ["complete t 1", "create t 1", "event t 1"] : [],
      );
    });

    test("that throw are called again with growing delays, by the store's clock", async () => {
      const recorder = new Recorder();
      recorder.act = ({ attempt }) => {
        if (attempt < 4) throw new Error("not now");
      };
      const { onInstanceFinished } = recorder.hooks;
      const s = await stage(on, ends, { hooks: { onInstanceFinished } });
      await s.start();
      const waits: number[] = [];
      for (let n = 2; n <= 4; n++) {
        const { nextWakeInMs } = await s.h.tick();
        expect(recorder.told.length).toBe(n - 1);
        waits.push(nextWakeInMs ?? -1);
        await s.clock.advance(nextWakeInMs ?? 0);
        await s.h.tick();
      }
      expect(recorder.told.map(({ attempt }) => attempt)).toEqual([1, 2, 3, 4]);
      expect(new Set(recorder.told.map(({ id }) => id)).size).toBe(1);
      for (const [n, ms] of waits.entries()) {
        expect(ms).toBeGreaterThanOrEqual(500 * 2 ** n);
        expect(ms).toBeLessThanOrEqual(1_000 * 2 ** n);
      }
      expect((await s.h.tick()).nextWakeInMs).toBe(null);
      const failed = s.logs.filter(({ event }) => event === "hook.failed");
      expect(failed.map(({ level, fields }) => [level, Reflect.get(fields, "error")])).toEqual(
        waits.map(() => ["warn", "Error: not now"]),
      );
    });

    test("that hang hold up neither runs nor other hooks, and are cut off after 30 seconds", async () => {
      const recorder = new Recorder();
      recorder.act = (told) => (told.attempt === 1 && "status" in told ? never() : undefined);
      const s = await stage(on, ends, { hooks: recorder.hooks });
      const count = 30; // more than are called at a time
      for (let i = 0; i < count; i++) await s.create();
      await s.h.runUntilIdle();
      expect((await s.h.status("main", `i${count}`)).status).toBe("complete");
      expect(recorder.words.filter((word) => word.startsWith("create")).length).toBe(count);
      expect(recorder.words.filter((word) => word.startsWith("complete")).length).toBe(20);
      await s.clock.advance("29 seconds");
      const cutOff = () => recorder.signals.filter(({ aborted }) => aborted).length;
      expect(cutOff()).toBe(0);
      await s.clock.advance("1 second");
      expect(cutOff()).toBe(20);
      for (let n = 0; n < 10; n++) await s.clock.advance("31 seconds");
      const done = recorder.told.filter(({ attempt }) => attempt === 2);
      expect(new Set(done.map(({ id }) => id)).size).toBe(count);
    });

    test("that always fail are given up after 15 attempts, listed, and called again on demand", async () => {
      const recorder = new Recorder();
      recorder.act = ({ instanceId }) => {
        throw new TypeError(`no ${instanceId}\0\ud800`);
      };
      const { onInstanceFinished } = recorder.hooks;
      const s = await stage(on, ends, { hooks: { onInstanceFinished } });
      await s.start();
      await s.start("fails");
      for (let n = 0; n < 40; n++) await s.clock.advance("5 minutes");
      expect(recorder.told.length).toBe(2 * 15);
      expect((await s.h.tick()).nextWakeInMs).toBe(null);
      expect(s.logs.filter(({ event }) => event === "hook.givenUp").length).toBe(2);

      const first = await s.admin.failed({ pageSize: 1 });
      expect(first.hasNextPage).toBe(true);
      const second = await s.admin.failed({ pageSize: 1, cursor: first.cursor });
      expect(second.hasNextPage).toBe(false);
      const all = [...first.deliveries, ...second.deliveries];
      expect(all.map(({ instanceId }) => instanceId).toSorted()).toEqual(["i1", "i2"]);
      const [delivery] = all.filter(({ instanceId }) => instanceId === "i2");
      expect(delivery).toMatchObject({
        hook: "onInstanceFinished",
        workflowName: "main",
        runNumber: 1,
        status: "errored",
        attempts: 15,
        error: { name: "TypeError" },
      });
      expect(delivery?.error.message).toContain("no i2");

      recorder.act = () => {};
      expect(await s.admin.retry(delivery?.id ?? "")).toBe(true);
      expect(await s.admin.retry("none")).toBe(false);
      await s.h.tick();
      expect(recorder.told.at(-1)).toMatchObject({ id: delivery?.id, attempt: 1 });
      expect((await s.admin.failed()).deliveries.length).toBe(1);
    });

    test("are called again once the delivery lease of a dead process has run out", async () => {
      const recorder = new Recorder();
      recorder.act = ({ attempt }) => (attempt === 1 ? never() : undefined);
      const { onInstanceFinished } = recorder.hooks;
      const s = await stage(on, ends, { hooks: { onInstanceFinished } });
      await s.start();
      expect(recorder.told.length).toBe(1);
      await s.h.crashRunner(s.h.runner);
      s.addRunner();
      await s.h.tick();
      await s.clock.advance(DELIVERY_LEASE_MS - 1);
      await s.h.tick();
      expect(recorder.told.length).toBe(1);
      await s.clock.advance(1);
      await s.h.tick();
      const [one, two] = recorder.told;
      expect(two).toEqual({ ...one, attempt: 2 });
    });

    test("that the code no longer has are reported, and dropped on demand", async () => {
      const recorder = new Recorder();
      const s = await stage(on, ends);
      const peer = await s.peer({ OTHER: ends }, { hooks: recorder.hooks });
      await peer.h.tick();
      await peer.h.close();
      await s.start();
      const reported = () => s.logs.filter(({ event }) => event === "hook.unknown");
      expect(reported()).toEqual([]);
      await s.pass("61 seconds");
      await s.pass("61 seconds");
      expect(reported().map(({ fields }) => fields)).toEqual([
        { hook: "onWorkflowEnqueued" },
        { hook: "onInstanceFinished" },
      ]);
      expect(await s.admin.unregister("onWorkflowEnqueued")).toBe(1);
      expect(await s.admin.unregister("onInstanceFinished")).toBe(1);
      await s.start();
      expect(await s.admin.unregister("onInstanceFinished")).toBe(0);
    });

    test("with an unknown name, or that are not functions, are refused", async () => {
      const { store } = await on.open();
      const workflows = { MAIN: { name: "main", run: ends } } as unknown as Registry;
      const make = (given: object) => createWorkflows({ workflows, store, hooks: given });
      expect(() => make({ onInstanceFinnished: () => {} })).toThrow(
        'hooks: "onInstanceFinnished" is not a hook; the hooks are onWorkflowEnqueued, onInstanceFinished',
      );
      expect(() => make({ onInstanceFinished: "x" })).toThrow("must be a function");
    });

    test("are called right after the commit in a process without a runner", async () => {
      const { pawl, recorder, create } = await served(on);
      const held = new Gate();
      recorder.act = () => held.passed;
      await create("a"); // does not wait for the hook
      await until(() => recorder.words.length === 1, "called");
      expect(recorder.words).toEqual(["create a 1"]);
      recorder.act = ({ attempt }) => {
        if (attempt === 1) throw new Error("not now");
      };
      await create("b");
      await until(
        () => recorder.words.filter((word) => word === "create b 1").length === 2,
        "again",
      );
      await (await pawl.workflows["MAIN"]!.get("b")).terminate();
      await until(() => recorder.words.includes("terminated b 1"), "told of the end");
      held.open();
    });

    test("are called again in a process without a runner even if the store's clock is behind", async () => {
      const clock = new VirtualTime();
      const asked = counting();
      const { recorder, create } = await served(on, { clock, around: asked.around });
      recorder.act = ({ attempt }) => {
        if (attempt === 1) throw new Error("not now");
      };
      await create("a");
      await until(() => (asked.calls["claimHooks"] ?? 0) >= 4, "looked when it was not due yet");
      expect(recorder.told.length).toBe(1);
      clock.advance(1_000);
      await until(() => recorder.told.length === 2, "called again");
    });

    test("are awaited by a stop, but only for a while by a tick", async () => {
      const { pawl, recorder, create } = await served(on);
      const held = new Gate();
      recorder.act = (told) => ("status" in told ? held.passed : undefined);
      await create("a");
      const tick = pawl.tick();
      await until(() => recorder.words.includes("complete a 1"), "called");
      let isOver = false;
      const stopped = pawl.runner.stop(20_000).then(() => (isOver = true));
      await tick;
      expect(isOver).toBe(false);
      held.open();
      await stopped;
      expect(recorder.signals.filter(({ aborted }) => aborted)).toEqual([]);
      const { deliveries } = await pawl.hooks.failed();
      expect(deliveries).toEqual([]);
    });

    test("that outlast a stop are cut off, and called again by the next process", async () => {
      const first = await served(on);
      first.recorder.act = never;
      await first.create("a");
      await until(() => first.recorder.words.length === 1, "called");
      await first.pawl.runner.stop(10);
      expect(first.recorder.signals[0]?.aborted).toBe(true);
      const next = await served(on, { database: first.database });
      await until(async () => {
        await next.pawl.tick();
        return next.recorder.words.includes("create a 1");
      }, "called again");
      const [again] = next.recorder.told.filter((told) => "reason" in told);
      expect(again).toEqual({ ...first.recorder.told[0], attempt: 2 });
    });
  });
}

type Served = {
  /** A database to reuse, which the caller destroys. */
  readonly database?: TestDatabase;
  /** Stands in for the database's clock. The process keeps its own. */
  readonly clock?: VirtualTime;
  readonly around?: (store: Store) => Store;
};

/** A process as users run it, without a dispatcher. */
async function served(on: StoreFixture, { database: given, clock, around }: Served = {}) {
  const database = given ?? (await on.open(clock === undefined ? {} : { clock }));
  const recorder = new Recorder();
  const workflows = { MAIN: { name: "main", run: ends } } as unknown as Registry;
  const store = around === undefined ? database.store : around(database.store);
  const pawl = createWorkflows({ workflows, store, hooks: recorder.hooks });
  onTestFinished(async () => {
    await pawl.runner.stop(0);
    if (given === undefined) await database.destroy();
  });
  const create = (id: string) => pawl.workflows["MAIN"]!.create({ id });
  return { database, recorder, pawl, create };
}

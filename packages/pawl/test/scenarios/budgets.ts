import { describe, expect, test } from "vitest";
import type { StoreFixture } from "../../src/testing/conformance/index.js";
import { until } from "../support/until.js";
import { evicting, HeldBody, macrotasks, stage, type Code, type StageOptions } from "./stage.js";
import { counting, holding } from "./store-wrappers.js";

/**
 * A stage whose store counts its calls. Its runner is already registered, so that only the work itself is
 * counted.
 */
async function counted(on: StoreFixture, code: Code, options: StageOptions = {}) {
  const store = counting();
  const s = await stage(on, code, { ...options, around: store.around });
  await s.h.tick();
  store.reset();
  return { s, store };
}

const stepsCode: Code = async (event, step) => {
  let sum = 0;
  for (let n = 0; n < event.payload; n++) sum += await step.do(`step ${n}`, () => 1);
  return sum;
};

export function budgets(on: StoreFixture): void {
  // Every verb of the store is one atomic write or one read. Other tests count the statements behind each verb.
  describe("budgets", () => {
    test.each([1, 5, 50])(
      "in-process, a run of %i steps takes one commit a step and one to start",
      async (k) => {
        const { s, store } = await counted(on, stepsCode);
        // A runner that starts to listen to other processes lets every waiter poll once, so this one does not listen.
        s.h.runner.serve(() => {}, { listen: false });
        const i = await s.create(k);
        expect(await i.result()).toBe(k);
        expect(store.calls).toEqual({ create: 1, commit: k });
      },
    );

    test.each([1, 5, 50])(
      "queued, a run of %i steps takes one commit more: the claim",
      async (k) => {
        const { s, store } = await counted(on, stepsCode);
        const i = await s.create(k);
        await s.h.tick();
        const { create, claim, commit, load, poll, heartbeat } = store.calls;
        expect({ create, claim, commit }).toEqual({ create: 1, claim: 1, commit: k });
        expect([load, poll, heartbeat]).toEqual([undefined, undefined, undefined]);
        expect(await i.status()).toEqual({ status: "complete", output: k });
      },
    );

    test("the start of a single-attempt step is written once, whatever happens meanwhile", async () => {
      const [store, commit] = [counting(), holding("commit", "answer")];
      const [beside, once] = [new HeldBody(), new HeldBody()];
      const s = await stage(
        on,
        (_event, step) =>
          Promise.all([
            step.do("beside", beside.body),
            step.do("once", { retries: { limit: 0, delay: 0 } }, once.body),
          ]),
        { around: (inner) => commit.around(store.around(inner)) },
      );
      await s.create();
      commit.arm();
      const turn = s.turn();
      await commit.reached;
      beside.result.open(1);
      await macrotasks(10); // lets its passes happen
      await commit.letGo();
      await once.entered.passed;
      await s.clock.advance(0);
      once.result.open(2);
      await turn;
      const written = store.parts.flatMap(({ steps }) => steps.map(({ name }) => name));
      expect(written).toEqual(["once", "beside", "once"]);
    });

    test("each step's row is written once, and progress leaves the ticket alone", async () => {
      const { s, store } = await counted(on, stepsCode);
      const i = await s.create(10);
      await s.h.tick();
      expect(store.parts.flatMap(({ steps }) => steps.map(({ ord }) => ord))).toEqual([
        1, 2, 3, 4, 5, 6, 7, 8, 9, 10,
      ]);
      expect(store.parts.flatMap(({ attempts }) => attempts)).toEqual([]);
      expect(store.parts.map(({ next }) => next.kind)).toEqual([
        ...Array<string>(9).fill("continue"),
        "complete",
      ]);
      expect((await s.steps(i)).length).toBe(10);
    });

    test("parallel steps that end together take at most two commits", async () => {
      const { s, store } = await counted(on, async (_event, step) => {
        await Promise.all(Array.from({ length: 30 }, (_, n) => step.do(`step ${n}`, () => n)));
      });
      await s.create();
      await s.h.tick();
      expect(store.calls["commit"]).toBeLessThanOrEqual(2);
    });

    test("a result, the waits that follow it, and the park take one commit", async () => {
      const { s, store } = await counted(on, async (_event, step) => {
        await step.do("a", () => 1);
        await Promise.all([step.sleep("nap", 1_000), step.waitForEvent("wait", { type: "go" })]);
      });
      await s.create();
      await s.h.tick();
      expect(store.parts.map(({ steps, next }) => [steps.length, next.kind])).toEqual([
        [3, "park"],
      ]);
    });

    test("200 runs of 50 steps at once take less than one commit per 20 steps", async () => {
      const { s, store } = await counted(on, stepsCode, { runner: { concurrency: 200 } });
      const batch = Array.from({ length: 100 }, (_, n) => ({ id: `a${n}`, params: 50 }));
      await s.workflows["MAIN"]?.createBatch(batch);
      await s.workflows["MAIN"]?.createBatch(
        batch.map(({ params }, n) => ({ id: `b${n}`, params })),
      );
      store.reset();
      expect(await s.h.tick()).toEqual({ processed: 200, nextWakeInMs: null });
      expect(store.calls["claim"]).toBe(1);
      expect(store.parts.flatMap(({ steps }) => steps).length).toBe(10_000);
      expect(store.calls["commit"]).toBeLessThan(10_000 / 20);
    });

    test("a parked run makes no calls to the store until it is due", async () => {
      const { s, store } = await counted(on, async (_event, step) => {
        await step.do("a", () => 1);
        await Promise.race([step.sleep("nap", "30 days"), step.waitForEvent("w", { type: "go" })]);
      });
      for (let n = 0; n < 10; n++) await s.create();
      await s.h.runUntilIdle();
      store.reset();
      await s.clock.advance("29 days");
      expect(store.calls).toEqual({});
    });

    test.each([
      ["in the same process does not reload the history", {}, undefined],
      ["of an evicted run loads the history", { runner: evicting }, 1],
    ])("a wake %s", async (_what, options, loads) => {
      const { s, store } = await counted(
        on,
        async (_event, step) => {
          await step.do("a", () => 1);
          await step.sleep("nap", 1_000);
          await step.waitForEvent("wait", { type: "go" });
          return step.do("b", () => 2);
        },
        options,
      );
      const i = await s.start();
      store.reset();
      await s.clock.advance(1_000);
      await s.h.tick();
      const { claim, load, commit } = store.calls;
      expect({ claim, load, commit }).toEqual({ claim: 1, load: loads, commit: 1 });
      await i.sendEvent({ type: "go" });
      store.reset();
      await s.h.tick();
      expect(store.calls["load"]).toBe(loads);
      // An event sent in the process of its run is handed to the run, so no poll is needed.
      expect(store.calls["poll"]).toBeUndefined();
      expect(store.calls["commit"]).toBeLessThanOrEqual(2);
      expect(await i.status()).toMatchObject({ output: 2 });
    });

    test("an event to a parked run of the same process takes one write, and resumes it without a claim", async () => {
      const { s, store } = await counted(on, async (_event, step) => {
        const { payload } = await step.waitForEvent("wait", { type: "go" });
        return step.do("go on", () => payload);
      });
      s.h.runner.serve(() => {}, { listen: false });
      const i = await s.create();
      await until(() => !s.h.runner.isBusy, "parked");
      store.reset();
      await i.sendEvent({ type: "go", payload: "here" });
      await until(() => !s.h.runner.isBusy, "ended");
      // The first commit ends the wait, so that the body may start. The second stores the body's result.
      expect(store.calls).toEqual({ sendEvent: 1, commit: 2 });
      expect(await i.status()).toEqual({ status: "complete", output: "here" });
    });

    test("replay does not write again what is recorded", async () => {
      const { s, store } = await counted(
        on,
        async (_event, step) => {
          for (let n = 0; n < 10; n++) await step.do(`step ${n}`, () => n);
          await step.sleep("nap", 1_000);
        },
        { runner: evicting },
      );
      await s.start();
      store.reset();
      await s.pass(1_000);
      expect(store.parts.map(({ steps, next }) => [steps.length, next.kind])).toEqual([
        [1, "complete"],
      ]);
    });

    test("one claim, one load and one heartbeat serve all runs of a process", async () => {
      const held = new HeldBody();
      const { s, store } = await counted(
        on,
        async (_event, step) => {
          await step.sleep("nap", 1_000);
          await step.do("long", { timeout: "1 day" }, held.body);
        },
        { runner: evicting },
      );
      for (let n = 0; n < 20; n++) await s.create();
      await s.h.runUntilIdle();
      await s.clock.advance(1_000);
      store.reset();
      const turn = s.turn();
      await held.entered.passed;
      await s.clock.advance(1);
      expect(store.calls).toMatchObject({ claim: 1, load: 1 });
      store.reset();
      await s.clock.advance(10_000);
      expect(store.calls["heartbeat"]).toBe(1);
      held.result.open(1);
      await turn;
    });

    test("live memory is bounded: runs that do not fit are evicted, and go on by replay", async () => {
      const { s, store } = await counted(
        on,
        async (_event, step) => {
          const a = await step.do("a", () => 1);
          await step.sleep("nap", 1_000);
          return a;
        },
        { runner: { live: { runs: 3, bytes: 1e9 } } },
      );
      const all = [];
      for (let n = 0; n < 5; n++) all.push(await s.start());
      store.reset();
      await s.pass(1_000);
      expect(store.calls["load"]).toBe(1);
      for (const i of all) expect(await i.status()).toEqual({ status: "complete", output: 1 });
    });
  });
}

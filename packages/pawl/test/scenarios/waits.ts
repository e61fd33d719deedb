import { WaitTimeoutError } from "pawl";
import { describe, expect, test } from "vitest";
import type { StoreFixture } from "../../src/testing/conformance/index.js";
import { evicting, memories, stage, type Code } from "./stage.js";

const waitsAMinute: Code = (_event, step) =>
  step.waitForEvent("wait", { type: "go", timeout: 60_000 }).then(() => "event");

export function waits(on: StoreFixture): void {
  describe.each(memories)("waits, %s", (_, runner) => {
    test("a sleep ends at its time and not a millisecond before", async () => {
      const s = await stage(
        on,
        async (_event, step) => {
          await step.sleep("nap", "24 hours");
          return "awake";
        },
        { runner },
      );
      const i = await s.start();
      expect(await i.status()).toEqual({ status: "waiting" });
      await s.pass(24 * 3_600_000 - 1);
      expect(await i.status()).toEqual({ status: "waiting" });
      await s.pass(1);
      expect(await i.status()).toEqual({ status: "complete", output: "awake" });
    });

    test("a sleepUntil too far ahead fails the same way when it is replayed later", async () => {
      const s = await stage(
        on,
        async (event, step) => {
          const day = 86_400_000;
          const caught = await step
            .sleepUntil("far", event.timestamp.getTime() + 400 * day)
            .catch((error: Error) => error.name);
          await step.sleep("nap", "60 days");
          return caught;
        },
        { runner: evicting },
      );
      expect(await s.run()).toEqual({ status: "complete", output: "ValidationError" });
    });

    test("sleepUntil takes a Date or milliseconds, and ends at once if the time has passed", async () => {
      const s = await stage(
        on,
        async (event, step) => {
          const at = event.timestamp.getTime();
          await step.sleepUntil("past", new Date(at - 1));
          await step.sleepUntil("now", at);
          await step.sleepUntil("ms", at + 1_000);
          await step.sleepUntil("date", new Date(at + 2_500));
          return "awake";
        },
        { runner },
      );
      const i = await s.start();
      expect((await s.steps(i)).map(({ name, status }) => [name, status])).toEqual([
        ["past", "completed"],
        ["now", "completed"],
        ["ms", "waiting"],
      ]);
      await s.pass(2_499);
      expect(await i.status()).toEqual({ status: "waiting" });
      await s.pass(1);
      expect(await i.status()).toMatchObject({ status: "complete" });
    });

    test("parallel timers fire, each at its own time", async () => {
      const s = await stage(
        on,
        (_event, step) =>
          Promise.all(
            [3_000, 1_000, 2_000].map(async (ms) => {
              await step.sleep(`sleep ${ms}`, ms);
              return step.do(`after ${ms}`, () => s.clock.now());
            }),
          ),
        { runner },
      );
      const began = s.clock.now();
      const at = (await s.output()) as number[];
      expect(at.map((ms) => ms - began)).toEqual([3_000, 1_000, 2_000]);
    });

    test("a retry, a timer and an event timeout run in parallel, each to its own time", async () => {
      const s = await stage(
        on,
        async (_event, step) => {
          const at = (name: string) => step.do(name, () => s.clock.now());
          return Promise.all([
            step
              .do("flaky", { retries: { limit: 1, delay: 7_000 } }, ({ attempt }) => {
                if (attempt === 1) throw new Error("no");
              })
              .then(() => at("after flaky")),
            step.sleep("nap", 5_000).then(() => at("after nap")),
            step.waitForEvent("wait", { type: "x", timeout: 3_000 }).catch(() => at("after wait")),
          ]);
        },
        { runner },
      );
      const began = s.clock.now();
      expect(await s.output()).toEqual([began + 7_000, began + 5_000, began + 3_000]);
    });

    test("an event reaches the wait for its type, with its payload and the database's time", async () => {
      const s = await stage(on, (_event, step) => step.waitForEvent("wait", { type: "go" }), {
        runner,
      });
      const i = await s.start();
      await s.pass("1 hour");
      await i.sendEvent({ type: "other", payload: 1 });
      await s.h.runUntilIdle();
      expect(await i.status()).toEqual({ status: "waiting" });
      await i.sendEvent({ type: "go", payload: { at: new Date(5), big: 2n } });
      const sentAt = s.clock.now();
      await s.h.runUntilIdle();
      const output = await i.result({ timeout: 0 });
      expect(output).toMatchObject({ type: "go", payload: { at: new Date(5), big: 2n } });
      const { timestamp } = output as { timestamp: Date };
      expect(timestamp).toBeInstanceOf(Date);
      // Events within one millisecond get times of their own.
      expect(timestamp.getTime() - sentAt).toBeLessThanOrEqual(2);
      const [other, go] = await s.events(i);
      expect(other).toMatchObject({ type: "other", consumedByStep: null, deliveredAt: null });
      expect(go).toMatchObject({ type: "go", consumedByStep: 1, deliveredAt: expect.any(Date) });
    });

    test("an event timeout can be caught, and stands even if an event comes later", async () => {
      const seen: unknown[] = [];
      const s = await stage(
        on,
        async (_event, step) => {
          const first = await step
            .waitForEvent("first", { type: "go", timeout: "1 minute" })
            .catch((error: unknown) => error);
          seen.push(first);
          await step.sleep("nap", "1 minute");
          return first instanceof WaitTimeoutError;
        },
        { runner },
      );
      const i = await s.start();
      await s.pass("1 minute");
      await i.sendEvent({ type: "go" });
      expect(await s.toEnd(i)).toEqual({ status: "complete", output: true });
      for (const error of seen) expect(error).toBeInstanceOf(WaitTimeoutError);
    });

    test("an event in the very millisecond of the deadline is in time", async () => {
      const s = await stage(on, waitsAMinute, { runner });
      const i = await s.start();
      await s.clock.advance(60_000);
      await i.sendEvent({ type: "go" });
      await s.h.runUntilIdle();
      expect(await i.status()).toEqual({ status: "complete", output: "event" });
    });

    test("an event in the deadline's millisecond is too late once the timeout has settled", async () => {
      const s = await stage(
        on,
        async (_event, step) => {
          const first = await step
            .waitForEvent("first", { type: "go", timeout: 60_000 })
            .catch((error: Error) => error.name);
          const second = await step.waitForEvent("second", { type: "go", timeout: 60_000 });
          return [first, second.payload];
        },
        { runner },
      );
      const i = await s.start();
      await s.pass(60_000);
      await i.sendEvent({ type: "go", payload: "late" });
      await s.h.runUntilIdle();
      expect(await i.status()).toMatchObject({ output: ["WaitTimeoutError", "late"] });
    });

    test("an event sent in time counts even if the run is claimed only after the deadline", async () => {
      const s = await stage(on, waitsAMinute, { runner });
      const i = await s.start();
      await s.clock.advance(59_000);
      await i.sendEvent({ type: "go" });
      await s.clock.advance("1 hour");
      await s.h.runUntilIdle();
      expect(await i.status()).toEqual({ status: "complete", output: "event" });
    });

    test("an event after the deadline never counts, even if nobody has claimed the run yet", async () => {
      const s = await stage(
        on,
        async (_event, step) => {
          const first = await step
            .waitForEvent("first", { type: "go", timeout: 60_000 })
            .then(() => "event")
            .catch((error: Error) => error.name);
          const second = await step.waitForEvent("second", { type: "go", timeout: "1 hour" });
          return [first, second.payload];
        },
        { runner },
      );
      const i = await s.start();
      await s.clock.advance(60_001);
      await i.sendEvent({ type: "go", payload: "late" });
      await s.h.runUntilIdle();
      // The event is not lost: the next wait for its type takes it.
      expect(await i.status()).toEqual({
        status: "complete",
        output: ["WaitTimeoutError", "late"],
      });
    });

    test("events are taken first in, first out, including those sent before the wait", async () => {
      const s = await stage(
        on,
        async (_event, step) => {
          const got = [];
          for (let n = 0; n < 4; n++) {
            got.push((await step.waitForEvent(`wait ${n}`, { type: "go" })).payload);
          }
          return got;
        },
        { runner },
      );
      const i = await s.create();
      await i.sendEvent({ type: "go", payload: "a" });
      await i.sendEvent({ type: "go", payload: "b" });
      await s.h.runUntilIdle();
      await i.sendEvent({ type: "go", payload: "c" });
      await i.sendEvent({ type: "go", payload: "d" });
      expect(await s.toEnd(i)).toMatchObject({ output: ["a", "b", "c", "d"] });
    });

    test("of several waits for one type, the first registered gets the first event", async () => {
      const s = await stage(
        on,
        (_event, step) =>
          Promise.all(
            ["first", "second", "third"].map(async (name) => {
              const { payload } = await step.waitForEvent<number>(name, { type: "go" });
              return `${name}: ${payload}`;
            }),
          ),
        { runner },
      );
      const i = await s.start();
      await i.sendEvent({ type: "go", payload: 1 });
      await s.h.runUntilIdle();
      await i.sendEvent({ type: "go", payload: 2 });
      await i.sendEvent({ type: "go", payload: 3 });
      expect(await s.toEnd(i)).toMatchObject({ output: ["first: 1", "second: 2", "third: 3"] });
    });

    test("catch and finally in the code never see a suspension", async () => {
      const seen: string[] = [];
      const s = await stage(
        on,
        async (_event, step) => {
          try {
            await step.sleep("nap", "1 hour");
            await step.waitForEvent("wait", { type: "go", timeout: "1 hour" });
          } catch (error) {
            seen.push(`caught ${(error as Error).name}`);
          } finally {
            seen.push("finally");
          }
        },
        { runner },
      );
      const i = await s.start();
      await s.pass("1 hour");
      expect(seen).toEqual([]);
      await s.pass("1 hour");
      expect(await i.status()).toMatchObject({ status: "complete" });
      expect(seen).toEqual(["caught WaitTimeoutError", "finally"]);
    });
  });

  describe("waits", () => {
    test("an event sent twice under one id counts once", async () => {
      const s = await stage(on, async (_event, step) => {
        const a = await step.waitForEvent("a", { type: "go" });
        const b = await step
          .waitForEvent("b", { type: "go", timeout: 1_000 })
          .catch((error: Error) => error.name);
        return [a.payload, b];
      });
      const i = await s.start();
      await i.sendEvent({ type: "go", id: "one", payload: 1 });
      await i.sendEvent({ type: "go", id: "one", payload: 2 });
      expect(await s.toEnd(i)).toMatchObject({ output: [1, "WaitTimeoutError"] });
    });

    test("a wait for an event times out after 24 hours by default", async () => {
      const s = await stage(on, (_event, step) => step.waitForEvent("wait", { type: "go" }));
      const i = await s.start();
      await s.pass(24 * 3_600_000 - 1);
      expect(await i.status()).toEqual({ status: "waiting" });
      await s.pass(1);
      expect(await i.status()).toMatchObject({ error: { name: "WaitTimeoutError" } });
    });

    test("invalid durations, times and event types throw errors that the code can catch", async () => {
      const s = await stage(on, async (event, step) => {
        const tooFar = event.timestamp.getTime() + 366 * 86_400_000;
        const outcomes = await Promise.allSettled([
          step.waitForEvent("a", { type: "x", timeout: 999 }),
          step.waitForEvent("b", { type: "x", timeout: "366 days" }),
          step.waitForEvent("c", { type: "no spaces" }),
          step.sleep("d", "366 days"),
          step.sleep("e", -1),
          step.sleep("f", "a while"),
          step.sleepUntil("g", Number.NaN),
          step.sleepUntil("h", tooFar),
        ]);
        return outcomes.map((each) => each.status === "rejected" && each.reason.name);
      });
      expect(await s.output()).toEqual(Array(8).fill("ValidationError"));
    });

    test("a sleep of no length ends at once", async () => {
      const s = await stage(on, (_event, step) => step.sleep("none", 0).then(() => "on"));
      const i = await s.start();
      expect(await i.status()).toEqual({ status: "complete", output: "on" });
    });

    test("a parked run holds no slot", async () => {
      const s = await stage(on, (_event, step) => step.sleep("nap", "1 day"), {
        runner: { concurrency: 2 },
      });
      for (let n = 0; n < 5; n++) await s.create();
      await s.h.runUntilIdle();
      expect(s.h.runner.freeSlots).toBe(2);
    });

    test("an event sent in a user's transaction counts from its commit, and never after a rollback", async () => {
      const s = await stage(on, (_event, step) => step.waitForEvent("wait", { type: "go" }));
      const i = await s.start();
      const undone = await s.database.begin();
      await i.sendEvent({ type: "go", payload: "undone" }, { tx: undone.tx });
      await undone.rollback();
      await s.h.runUntilIdle();
      expect(await i.status()).toEqual({ status: "waiting" });
      const kept = await s.database.begin();
      await i.sendEvent({ type: "go", payload: "kept" }, { tx: kept.tx });
      await kept.commit();
      await s.h.tick();
      await s.h.runUntilIdle();
      expect(await i.status()).toMatchObject({ output: { payload: "kept" } });
    });
  });
}

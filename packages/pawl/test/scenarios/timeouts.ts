import { StepTimeoutError, type StepContext } from "pawl";
import { describe, expect, test } from "vitest";
import type { StoreFixture } from "../../src/testing/conformance/index.js";
import { HeldBody, macrotasks, stage } from "./stage.js";

export function timeouts(on: StoreFixture): void {
  describe("attempt timeouts", () => {
    test("an attempt that takes too long fails with StepTimeoutError, and is retried", async () => {
      const held = new HeldBody();
      const s = await stage(on, (_event, step) =>
        step.do(
          "slow",
          { timeout: "30 seconds", retries: { limit: 1, delay: 1_000 } },
          (context) => (context.attempt === 1 ? held.body(context) : "second"),
        ),
      );
      const i = await s.create();
      const turn = s.turn();
      await held.entered.passed;
      await s.clock.advance(29_999);
      expect(held.signal?.aborted).toBe(false);
      await s.clock.advance(1);
      expect(held.signal?.aborted).toBe(true);
      expect(held.signal?.reason).toBeInstanceOf(StepTimeoutError);
      await turn;
      expect(await i.status()).toEqual({ status: "waiting" });
      held.result.open("late");
      expect(await s.toEnd(i)).toEqual({ status: "complete", output: "second" });
      const [step] = await s.steps(i);
      expect(step).toMatchObject({
        result: "second",
        attempts: [{ n: 1, error: { name: "StepTimeoutError" } }, { n: 2 }],
      });
    });

    test("a late result or failure is never stored, and never becomes an unhandled rejection", async () => {
      const [late, later] = [new HeldBody(), new HeldBody()];
      const once = { timeout: 1_000, retries: { limit: 0, delay: 0 } };
      const s = await stage(on, async (_event, step) => {
        const names = [];
        for (const [name, { body }] of Object.entries({ late, later })) {
          names.push(await step.do(name, once, body).catch((error: Error) => error.name));
        }
        return names;
      });
      const i = await s.create();
      const turn = s.turn();
      await late.entered.passed;
      await s.clock.advance(1_000);
      late.result.open("a result");
      await later.entered.passed;
      await s.clock.advance(1_000);
      later.result.fail(new Error("a failure"));
      await turn;
      expect(await s.toEnd(i)).toMatchObject({ output: ["StepTimeoutError", "StepTimeoutError"] });
      for (const step of await s.steps(i)) {
        expect(step).toMatchObject({ status: "errored", error: { name: "StepTimeoutError" } });
        expect(step.result).toBeUndefined();
      }
    });

    test("an attempt has ten minutes by default", async () => {
      const held = new HeldBody();
      const s = await stage(on, (_event, step) =>
        step.do("slow", { retries: { limit: 0, delay: 0 } }, held.body),
      );
      const i = await s.create();
      const turn = s.turn();
      await held.entered.passed;
      await s.clock.advance(599_999);
      expect(held.signal?.aborted).toBe(false);
      await s.clock.advance(1);
      await turn;
      expect(await i.status()).toMatchObject({ error: { name: "StepTimeoutError" } });
    });

    test("each attempt has its own timeout and its own signal", async () => {
      const signals: AbortSignal[] = [];
      const never = ({ signal }: StepContext) =>
        new Promise<never>(() => void signals.push(signal));
      const s = await stage(on, (_event, step) =>
        step.do(
          "hangs",
          { timeout: 1_000, retries: { limit: 2, delay: 500, backoff: "constant" } },
          never,
        ),
      );
      const i = await s.create();
      const began = s.clock.now();
      for (let n = 1; n <= 3; n++) {
        const turn = s.turn();
        while (signals.length < n) await macrotasks(1);
        await s.clock.advance(1_000);
        await turn;
        if (n < 3) await s.clock.advance(500);
      }
      expect(await i.status()).toMatchObject({
        status: "errored",
        error: { name: "StepTimeoutError" },
      });
      expect(s.clock.now() - began).toBe(4_000);
      expect(new Set(signals).size).toBe(3);
      expect(signals.every(({ aborted }) => aborted)).toBe(true);
    });

    test("the signal does not fire after an attempt that ended in time", async () => {
      let signal: AbortSignal | undefined;
      const s = await stage(on, async (_event, step) => {
        await step.do("quick", { timeout: 1_000 }, (context) => void (signal = context.signal));
        await step.sleep("nap", "1 hour");
      });
      const i = await s.create();
      await s.toEnd(i);
      expect(signal?.aborted).toBe(false);
    });

    test("a body that rejects with the signal's reason fails with the timeout", async () => {
      const s = await stage(on, (_event, step) =>
        step.do(
          "heeds",
          { timeout: 1_000, retries: { limit: 0, delay: 0 } },
          ({ signal }) =>
            new Promise((_resolve, reject) => {
              signal.addEventListener("abort", () => reject(signal.reason as Error));
              entered();
            }),
        ),
      );
      let entered = (): void => {};
      const isEntered = new Promise<void>((resolve) => (entered = resolve));
      const i = await s.create();
      const turn = s.turn();
      await isEntered;
      await s.clock.advance(1_000);
      await turn;
      expect(await i.status()).toMatchObject({ error: { name: "StepTimeoutError" } });
    });
  });
}

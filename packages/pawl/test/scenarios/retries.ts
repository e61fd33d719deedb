import { NonRetryableError, WorkflowError, type WorkflowRetries } from "pawl";
import { describe, expect, test, vi } from "vitest";
import type { StoreFixture } from "../../src/testing/conformance/index.js";
import { evicting, HeldBody, memories, stage, type StageOptions } from "./stage.js";

type Retries = Partial<WorkflowRetries>;

/** Runs a step that always fails, and returns when each attempt began, counted from the first. */
async function attemptsOf(
  on: StoreFixture,
  error: (now: number) => unknown,
  given?: Retries,
  options: StageOptions & { timeout?: string } = {},
) {
  const { timeout, ...rest } = options;
  const times: number[] = [];
  const s = await stage(
    on,
    (_event, step) => {
      const config = given === undefined ? {} : { retries: given as WorkflowRetries };
      return step.do("fails", { ...config, ...(timeout ? { timeout } : {}) }, () => {
        times.push(s.clock.now());
        throw error(s.clock.now());
      });
    },
    rest,
  );
  const status = await s.run();
  return { after: times.map((at) => at - (times[0] ?? 0)), status };
}

const plain = (): Error => new Error("no");
const withFields = (fields: object): Error => Object.assign(new Error("no"), fields);

export function retries(on: StoreFixture): void {
  describe.each(memories)("retries, %s", (_, runner) => {
    test("by default there are 5 retries, 10 s at first, doubling", async () => {
      const { after, status } = await attemptsOf(on, plain, undefined, { runner });
      expect(after).toEqual([0, 10_000, 30_000, 70_000, 150_000, 310_000]);
      expect(status).toEqual({ status: "errored", error: { name: "Error", message: "no" } });
    });

    test.each([
      ["constant", [0, 1_500, 3_000, 4_500]],
      ["linear", [0, 1_500, 4_500, 9_000]],
      ["exponential", [0, 1_500, 4_500, 10_500]],
    ] as const)("%s delays are exact to the millisecond", async (backoff, expected) => {
      const given = { limit: 3, delay: "1.5 seconds", backoff };
      const { after } = await attemptsOf(on, plain, given, { runner });
      expect(after).toEqual(expected);
    });

    test("a retry begins at its time and not a millisecond before", async () => {
      let calls = 0;
      const s = await stage(
        on,
        (_event, step) =>
          step.do("x", { retries: { limit: 1, delay: 5_000 } }, () => {
            calls += 1;
            throw new Error("no");
          }),
        { runner },
      );
      const i = await s.start();
      expect(await i.status()).toEqual({ status: "waiting" });
      const [step] = await s.steps(i);
      expect(step).toMatchObject({
        wait: { reason: "retry", until: new Date(s.clock.now() + 5_000) },
      });
      await s.pass(4_999);
      expect(calls).toBe(1);
      await s.pass(1);
      expect(calls).toBe(2);
    });
  });

  describe("retries", () => {
    test("the delay counts from the failure, not from the attempt's start", async () => {
      const held = new HeldBody();
      let second = 0;
      const s = await stage(on, (_event, step) =>
        step.do("slow", { retries: { limit: 1, delay: "10 seconds" } }, (context) => {
          if (context.attempt === 1) return held.body(context);
          second = s.clock.now();
          return "ok";
        }),
      );
      const i = await s.create();
      const turn = s.turn();
      await held.entered.passed;
      await s.clock.advance("3 minutes");
      held.result.fail(new Error("after three minutes"));
      const failedAt = s.clock.now();
      await turn;
      expect(await s.toEnd(i)).toMatchObject({ output: "ok" });
      expect(second - failedAt).toBe(10_000);
    });

    test("limit counts retries: 0 means one attempt, 2 means three", async () => {
      for (const [limit, attempts] of [
        [0, 1],
        [2, 3],
      ] as const) {
        const { after } = await attemptsOf(on, plain, { limit, delay: 1 });
        expect(after.length).toBe(attempts);
      }
    });

    test("a limit of Infinity retries for as long as it takes", async () => {
      let calls = 0;
      const s = await stage(
        on,
        (_event, step) =>
          step.do(
            "x",
            { retries: { limit: Infinity, delay: 1, backoff: "constant" } },
            ({ attempt }) => {
              calls += 1;
              if (attempt < 40) throw new Error("not yet");
              return attempt;
            },
          ),
        { runner: evicting },
      );
      expect(await s.output()).toBe(40);
      expect(calls).toBe(40);
    });

    test("exponential delays without a limit stay below the longest allowed sleep", async () => {
      const s = await stage(on, (_event, step) =>
        step.do("x", { retries: { limit: Infinity, delay: "100 days" } }, ({ attempt }) => {
          if (attempt < 5) throw new Error("not yet");
          return attempt;
        }),
      );
      const began = s.clock.now();
      expect(await s.output()).toBe(5);
      const days = (s.clock.now() - began) / 86_400_000;
      expect(days).toBe(100 + 200 + 365 + 365);
    });

    class Refused extends NonRetryableError {
      override name = "Refused";
    }

    test.each([
      ["itself", () => new NonRetryableError("stop"), "NonRetryableError", "stop"],
      ["with a name of its own", () => new NonRetryableError("stop", "Fatal"), "Fatal", "stop"],
      ["a subclass", () => new Refused("stop"), "Refused", "stop"],
      ["an empty message", () => new NonRetryableError(""), "NonRetryableError", ""],
    ])("NonRetryableError ends the step at once: %s", async (_what, error, name, message) => {
      const { after, status } = await attemptsOf(on, error);
      expect(after).toEqual([0]);
      expect(status).toEqual({ status: "errored", error: { name, message } });
    });

    test("a NonRetryableError from a second copy of the module ends the step at once, too", async () => {
      vi.resetModules();
      const copy = await import("../../src/model/errors.js");
      expect(copy.NonRetryableError).not.toBe(NonRetryableError);
      const { after } = await attemptsOf(on, () => new copy.NonRetryableError("stop"));
      expect(after).toEqual([0]);
    });

    test("an error that only has the name of NonRetryableError is retried", async () => {
      const { after } = await attemptsOf(on, () => withFields({ name: "NonRetryableError" }), {
        limit: 1,
        delay: 10,
      });
      expect(after).toEqual([0, 10]);
    });

    test("NonRetryableError thrown outside of steps ends the instance with its name", async () => {
      const s = await stage(on, () => {
        throw new NonRetryableError("stop", "Fatal");
      });
      expect(await s.run()).toEqual({
        status: "errored",
        error: { name: "Fatal", message: "stop" },
      });
    });

    test("retryAfter in seconds sets the delay", async () => {
      const { after } = await attemptsOf(on, () => withFields({ status: 429, retryAfter: 7.5 }), {
        limit: 2,
        delay: 1_000,
      });
      expect(after).toEqual([0, 7_500, 15_000]);
    });

    test("retryAfter as a Date sets the moment; one that has passed means now", async () => {
      const at = (ms: number) => (now: number) =>
        withFields({ status: 503, retryAfter: new Date(now + ms) });
      const given = { limit: 1, delay: 1_000 };
      expect((await attemptsOf(on, at(90_000), given)).after).toEqual([0, 90_000]);
      expect((await attemptsOf(on, at(-5), given)).after).toEqual([0, 0]);
    });

    test.each([[Number.NaN], [-1], [Infinity], ["3"], [new Date(Number.NaN)]])(
      "a retryAfter of %s is ignored, and the step's own delay applies",
      async (retryAfter) => {
        const error = () => withFields({ status: 503, retryAfter });
        expect((await attemptsOf(on, error, { limit: 1, delay: 1_000 })).after).toEqual([0, 1_000]);
      },
    );

    test.each([
      [400, false],
      [401, false],
      [404, false],
      [408, true],
      [409, false],
      [422, false],
      [425, true],
      [429, true],
      [499, false],
      [500, true],
      [503, true],
      [399, true],
    ])("an error with HTTP status %i is retried: %s", async (status, isRetried) => {
      const { after } = await attemptsOf(on, () => withFields({ status }), { limit: 1, delay: 5 });
      expect(after.length).toBe(isRetried ? 2 : 1);
    });

    test("a status that is not a number is ignored", async () => {
      const { after } = await attemptsOf(on, () => withFields({ status: "404" }), {
        limit: 1,
        delay: 5,
      });
      expect(after.length).toBe(2);
    });

    test("the engine's own WorkflowError is retried like any other error", async () => {
      const error = () => new WorkflowError("INSTANCE_NOT_FOUND", "not there yet");
      expect((await attemptsOf(on, error, { limit: 1, delay: 5 })).after.length).toBe(2);
    });

    test("retryable decides instead of the status, and receives the thrown value itself", async () => {
      class Special extends Error {
        status = 404;
        #secret = 1;
        isMine(): boolean {
          return this.#secret === 1;
        }
      }
      const retryable = (error: unknown): boolean => error instanceof Special && error.isMine();
      const given = { limit: 1, delay: 5, retryable };
      expect((await attemptsOf(on, () => new Special(), given)).after.length).toBe(2);
      expect((await attemptsOf(on, plain, given)).after.length).toBe(1);
    });

    test("retryable does not overrule a NonRetryableError, and is ignored if it throws", async () => {
      const always = { limit: 1, delay: 5, retryable: () => true };
      expect((await attemptsOf(on, () => new NonRetryableError("x"), always)).after.length).toBe(1);
      const broken = {
        limit: 1,
        delay: 5,
        retryable: (): boolean => {
          throw new Error("bug");
        },
      };
      const { after, status } = await attemptsOf(on, plain, broken);
      expect(after.length).toBe(2);
      expect(status.error?.message).toBe("no");
    });

    test("maxDelay caps backoff and retryAfter", async () => {
      const given = { limit: 3, delay: "1 second", maxDelay: "3 seconds" };
      expect((await attemptsOf(on, plain, given)).after).toEqual([0, 1_000, 3_000, 6_000]);
      const asked = () => withFields({ retryAfter: 60 });
      expect((await attemptsOf(on, asked, { ...given, limit: 1 })).after).toEqual([0, 3_000]);
    });

    test("jitter moves a delay up or down by at most its share, and differs from retry to retry", async () => {
      const given = { limit: 30, delay: 10_000, backoff: "constant", jitter: 0.2 } as const;
      const { after } = await attemptsOf(on, plain, given);
      const delays = after.slice(1).map((at, n) => at - (after[n] ?? 0));
      expect(Math.min(...delays)).toBeGreaterThanOrEqual(8_000);
      expect(Math.max(...delays)).toBeLessThanOrEqual(12_000);
      expect(new Set(delays).size).toBeGreaterThan(5);
    });

    test("a jitter range is added to the delay, and maxDelay still holds", async () => {
      const given = { limit: 30, delay: 2_000, jitter: { min: "1 second", max: "3 seconds" } };
      const { after } = await attemptsOf(on, plain, { ...given, maxDelay: "5 minutes" });
      const delays = after.slice(1).map((at, n) => at - (after[n] ?? 0));
      expect(delays[0]).toBeGreaterThanOrEqual(3_000);
      expect(delays[0]).toBeLessThanOrEqual(5_000);
      expect(Math.max(...delays)).toBe(300_000);
    });

    test.each([
      [{ limit: -1, delay: 1 }, "limit"],
      [{ limit: 1.5, delay: 1 }, "limit"],
      [{ limit: Number.NaN, delay: 1 }, "limit"],
      [{ limit: 1, delay: "soon" }, "delay"],
      [{ limit: 1, delay: 1, backoff: "random" }, "backoff"],
      [{ limit: 1, delay: 1, jitter: 2 }, "jitter"],
      [{ limit: 1, delay: 1, maxDelay: -1 }, "maxDelay"],
    ])("a config of %j is refused before the body runs", async (bad, field) => {
      const { after, status } = await attemptsOf(on, plain, bad as Retries);
      expect(after).toEqual([]);
      expect(status).toMatchObject({ status: "errored", error: { name: "ValidationError" } });
      expect(status.error?.message).toContain(field);
    });

    test("stepDefaults fill in what a step's config leaves out, field by field", async () => {
      const times: number[] = [];
      const s = await stage(
        on,
        (_event, step) =>
          step.do("x", { timeout: "1 minute" }, ({ config }) => {
            times.push(s.clock.now());
            expect(config).toMatchObject({ retries: { limit: 2, delay: 100 }, timeout: 60_000 });
            throw new Error("no");
          }),
        { stepDefaults: { retries: { limit: 2, delay: 100, backoff: "constant" } } },
      );
      await s.run();
      expect(times.map((at) => at - (times[0] ?? 0))).toEqual([0, 100, 200]);
    });

    test("a step that waits for its retry does not hold up its neighbours", async () => {
      const order: string[] = [];
      const s = await stage(on, (_event, step) =>
        Promise.all([
          step.do("flaky", { retries: { limit: 1, delay: "1 hour" } }, ({ attempt }) => {
            order.push(`flaky ${attempt}`);
            if (attempt === 1) throw new Error("no");
          }),
          (async () => {
            await step.do("b", () => void order.push("b"));
            await step.sleep("nap", "1 minute");
            await step.do("c", () => void order.push("c"));
          })(),
        ]),
      );
      const i = await s.start();
      await s.pass("1 minute");
      expect(order).toEqual(["flaky 1", "b", "c"]);
      expect(await s.toEnd(i)).toMatchObject({ status: "complete" });
      expect(order).toEqual(["flaky 1", "b", "c", "flaky 2"]);
    });
  });
}

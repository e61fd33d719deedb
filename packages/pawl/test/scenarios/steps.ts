import { DuplicateStepError, type StepContext } from "pawl";
import { describe, expect, test } from "vitest";
import type { StoreFixture } from "../../src/testing/conformance/index.js";
import { evicting, Gate, HeldBody, macrotasks, memories, stage } from "./stage.js";
import { taking } from "./store-wrappers.js";

export function steps(on: StoreFixture): void {
  describe.each(memories)("steps, %s", (_, runner) => {
    test("a step's body runs once, and later calls return its recorded result", async () => {
      let calls = 0;
      const s = await stage(
        on,
        async (_event, step) => {
          const a = await step.do("a", () => ++calls);
          await step.sleep("nap", "1 hour");
          const again = await step.do("a", () => ++calls);
          return [a, again];
        },
        { runner },
      );
      expect(await s.output()).toEqual([1, 1]);
      expect(calls).toBe(1);
    });

    test("a value that JSON does not know is the same on the first run and on replay", async () => {
      const value = () => ({
        big: 12345678901234567890n,
        date: new Date(1_600_000_000_123),
        map: new Map([["k", new Set([1, "two"])]]),
        bytes: new Uint8Array([0, 255]),
        missing: undefined,
        negative: -0,
        nan: Number.NaN,
        text: "\0 nul, ' quote, \\ backslash, 😀",
      });
      const seen: unknown[] = [];
      const s = await stage(
        on,
        async (_event, step) => {
          const got = await step.do("make", value);
          seen.push(got);
          await step.sleep("nap", "1 day");
          return got;
        },
        { runner },
      );
      expect(await s.output()).toEqual(value());
      for (const each of seen) expect(each).toEqual(value());
    });

    test("mutating a result does not change what a later call returns", async () => {
      const s = await stage(
        on,
        async (_event, step) => {
          const first = await step.do("list", () => ["a"]);
          first.push("b");
          await step.sleep("nap", 1_000);
          return step.do("list", () => ["never"]);
        },
        { runner },
      );
      expect(await s.output()).toEqual(["a"]);
    });

    test("an error keeps its class, name, code and cause, both live and on replay", async () => {
      const seen: unknown[] = [];
      const s = await stage(
        on,
        async (_event, step) => {
          const fails = (): never => {
            const cause = new RangeError("deeper");
            throw Object.assign(new TypeError("bad", { cause }), { code: "E_BAD", name: "Odd" });
          };
          const error = await step
            .do("fails", { retries: { limit: 0, delay: 0 } }, fails)
            .catch((caught: unknown) => caught);
          seen.push(error);
          await step.sleep("nap", 1_000);
          return error instanceof TypeError;
        },
        { runner },
      );
      expect(await s.output()).toBe(true);
      expect(seen.length).toBe(runner === evicting ? 2 : 1);
      for (const error of seen as TypeError[]) {
        expect(error).toBeInstanceOf(TypeError);
        expect(error).toMatchObject({ name: "Odd", message: "bad", code: "E_BAD" });
        expect(error.cause).toBeInstanceOf(RangeError);
        expect(error.cause).toMatchObject({ message: "deeper" });
      }
    });

    test.each([[undefined], [0], [""], [null], [false], [Number.NaN]])(
      "a step that throws %j fails with just that",
      async (thrown) => {
        const s = await stage(
          on,
          async (_event, step) => {
            const outcome = await step
              .do("falsy", { retries: { limit: 1, delay: 1_000 } }, () => {
                throw thrown;
              })
              .then(
                () => "succeeded",
                (error: unknown) => ({ error }),
              );
            await step.sleep("nap", 1_000);
            return outcome;
          },
          { runner },
        );
        expect(await s.output()).toEqual({ error: thrown });
      },
    );

    test("non-step awaits between steps are harmless", async () => {
      const s = await stage(
        on,
        async (_event, step) => {
          const a = await step.do("a", () => 1);
          await new Promise((resolve) => setTimeout(resolve, 2));
          await step.sleep("nap", 1_000);
          await Promise.resolve();
          const b = await step.do("b", () => a + 1);
          await macrotasks(1);
          return step.do("c", () => b + 1);
        },
        { runner },
      );
      expect(await s.output()).toBe(3);
    });
  });

  describe("steps", () => {
    test("a body learns its name, count, attempt, config, instance and signal", async () => {
      const contexts: StepContext[] = [];
      const s = await stage(on, (_event, step) =>
        step.do(
          "look",
          { retries: { limit: 2, delay: "1 second", backoff: "linear" }, timeout: "5 minutes" },
          (context) => {
            contexts.push(context);
            if (context.attempt === 1) throw new Error("again");
          },
        ),
      );
      await s.run();
      expect(contexts.map(({ attempt }) => attempt)).toEqual([1, 2]);
      expect(contexts[1]).toMatchObject({
        step: { name: "look", count: 1 },
        instanceId: "i1",
        config: { retries: { limit: 2, delay: 1_000, backoff: "linear" }, timeout: 300_000 },
      });
      expect(contexts[1]?.signal).toBeInstanceOf(AbortSignal);
      expect(contexts[1]?.signal.aborted).toBe(false);
    });

    test("history shows each step with its result and its attempts", async () => {
      const s = await stage(on, async (_event, step) => {
        await step.do("a", () => ({ n: 1 }));
        await step.do("flaky", { retries: { limit: 3, delay: 1_000 } }, ({ attempt }) => {
          if (attempt === 1) throw new TypeError("not yet");
          return "ok";
        });
      });
      const i = await s.create();
      await s.toEnd(i);
      expect(await s.steps(i)).toMatchObject([
        { name: "a", type: "do", status: "completed", result: { n: 1 }, attempts: [{ n: 1 }] },
        {
          name: "flaky",
          status: "completed",
          result: "ok",
          attempts: [{ n: 1, error: { name: "TypeError", message: "not yet" } }, { n: 2 }],
        },
      ]);
    });

    test.each([
      ["", { limit: 1, delay: 0 }],
      [" on its only attempt", { limit: 0, delay: 0 }],
    ])(
      "a running step%s is in the history within a second, with its attempt",
      async (_, retries) => {
        const long = new HeldBody();
        const s = await stage(on, async (_event, step) => {
          await step.do("a", () => {});
          await step.do("long", { retries }, long.body);
        });
        const i = await s.create();
        const start = new Date(s.clock.now());
        const turn = s.turn();
        await long.entered.passed;
        await s.clock.advance(1_000);
        expect(await s.steps(i)).toMatchObject([
          { name: "a", status: "completed" },
          {
            name: "long",
            status: "running",
            startedAt: start,
            endedAt: null,
            attempts: [{ n: 1, startedAt: start, endedAt: null }],
          },
        ]);
        long.result.open(undefined);
        await turn;
        expect(await s.steps(i)).toMatchObject([
          {},
          {
            status: "completed",
            attempts: [{ n: 1, startedAt: start, endedAt: new Date(s.clock.now()) }],
          },
        ]);
      },
    );

    test("history never shows a step starting before the step before it has ended", async () => {
      const s = await stage(
        on,
        async (_event, step) => {
          for (const n of [1, 2, 3]) await step.do(`step ${n}`, () => n);
          await step.sleep("nap", 1_000);
          await step.do("last", () => {});
        },
        taking("commit", [20, 1]),
      );
      const i = await s.create();
      await s.toEnd(i);
      const told = await s.steps(i);
      expect(told).toHaveLength(5);
      for (const [n, { startedAt }] of told.entries()) {
        const before = told[n - 1]?.endedAt ?? startedAt;
        expect(startedAt.getTime()).toBeGreaterThanOrEqual(before?.getTime() ?? Infinity);
      }
    });

    test("the log shows where a step's error was thrown, and its causes", async () => {
      const s = await stage(on, (_event, step) =>
        step.do("a", { retries: { limit: 0, delay: 0 } }, function thrower() {
          throw new Error("outer", { cause: new TypeError("inner") });
        }),
      );
      await s.run();
      const failed = s.logs.filter(({ event }) => event === "step.failed");
      expect(failed).toMatchObject([
        { level: "warn", fields: { workflow: "main", id: "i1", step: "a", error: "Error: outer" } },
      ]);
      const [{ stack }] = failed.map(({ fields }) => fields as { stack: string }) as [
        { stack: string },
      ];
      expect(stack).toMatch(/^Error: outer\n +at .*thrower .*:\d+:\d+/);
      expect(stack).toMatch(/\ncaused by: TypeError: inner\n +at .*thrower /);
    });

    test("an error that escapes the code errors the instance, and one that is caught does not", async () => {
      const fails = (): never => {
        throw Object.assign(new RangeError("no"), { code: 7 });
      };
      const once = { retries: { limit: 0, delay: 0 } };
      const lets = await stage(on, (_event, step) => step.do("x", once, fails));
      expect(await lets.run()).toEqual({
        status: "errored",
        error: { name: "RangeError", message: "no", code: 7 },
      });
      const catches = await stage(on, (_event, step) =>
        step.do("x", once, fails).catch(() => "ok"),
      );
      expect(await catches.run()).toEqual({ status: "complete", output: "ok" });
    });

    test("result() returns the output, or throws the instance's error with its class", async () => {
      const s = await stage(on, async (event) => {
        if (event.payload === "bad") throw new TypeError("no good");
        return new Map([["n", 1n]]);
      });
      expect(await s.output("good")).toEqual(new Map([["n", 1n]]));
      await expect(s.output("bad")).rejects.toThrow(TypeError);
    });

    test("an endless loop of steps ends at the cap even if its author catches errors, and waits do not count", async () => {
      let bodies = 0;
      const s = await stage(
        on,
        async (_event, step) => {
          for (let n = 0; n < 3; n++) await step.sleep(`nap ${n}`, 1);
          for (let n = 0; ; n++) await step.do(`step ${n}`, () => ++bodies).catch(() => {});
        },
        { limits: { maxStepsPerRun: 4 } },
      );
      expect(await s.run()).toMatchObject({
        status: "errored",
        error: { name: "MaxStepsExceededError" },
      });
      expect(bodies).toBe(4);
    });

    test("a run may have exactly as many steps as the cap allows", async () => {
      const s = await stage(
        on,
        async (_event, step) => {
          for (let n = 0; n < 4; n++) await step.do(`step ${n}`, () => n);
          await step.sleep("nap", 1);
          return "done";
        },
        { limits: { maxStepsPerRun: 4 }, runner: evicting },
      );
      expect(await s.output()).toBe("done");
    });

    test("calling a name twice at the same time throws DuplicateStepError, and the first call is unharmed", async () => {
      const s = await stage(on, async (_event, step) => {
        const [a, b] = await Promise.allSettled([
          step.do("same", () => 1),
          step.do("same", () => 2),
        ]);
        return [a, b.status === "rejected" && b.reason instanceof DuplicateStepError];
      });
      expect(await s.output()).toEqual([{ status: "fulfilled", value: 1 }, true]);
    });

    test('with "counted", calling a name again is the next step of that name', async () => {
      const counts: number[] = [];
      const s = await stage(
        on,
        async (_event, step) => {
          const body = ({ step: { count } }: StepContext): number => (counts.push(count), count);
          const a = await step.do("same", body);
          await step.sleep("nap", 1);
          const b = await step.do("same", body);
          await step.sleep("nap", 1);
          const [c, d] = await Promise.all([step.do("same", body), step.do("same", body)]);
          return [a, b, c, d];
        },
        { repeatedStepNames: "counted", runner: evicting },
      );
      expect(await s.output()).toEqual([1, 2, 3, 4]);
      expect(counts).toEqual([1, 2, 3, 4]);
    });

    test('with "error", calling a name again throws, on replay too', async () => {
      const s = await stage(
        on,
        async (_event, step) => {
          await step.do("same", () => 1);
          await step.sleep("nap", 1);
          return step.do("same", () => 2).catch((error: Error) => error.name);
        },
        { repeatedStepNames: "error", runner: evicting },
      );
      expect(await s.output()).toBe("DuplicateStepError");
    });

    test("a name used for two kinds of steps throws a StepMismatchError that names both", async () => {
      const s = await stage(on, async (_event, step) => {
        await step.do("x", () => 1);
        await step.sleep("x", 1);
      });
      const { error } = await s.run();
      expect(error?.name).toBe("StepMismatchError");
      expect(error?.message).toMatch(/x.*do.*sleep/);
    });

    test("a failing step that nobody awaits is recorded, and ends neither the process nor the instance", async () => {
      const once = { retries: { limit: 0, delay: 0 } };
      const s = await stage(on, async (_event, step) => {
        void step.do("forgotten", once, () => Promise.reject(new Error("unheard")));
        await step.do("next", () => 1);
        await step.do("last", () => 2);
        return "done";
      });
      const i = await s.create();
      expect(await s.toEnd(i)).toEqual({ status: "complete", output: "done" });
      const forgotten = (await s.steps(i)).find(({ name }) => name === "forgotten");
      expect(forgotten).toMatchObject({ status: "errored", error: { message: "unheard" } });
    });

    test("when a run returns while a body still runs, its signal fires and its result is dropped", async () => {
      const held = new HeldBody();
      const s = await stage(on, async (_event, step) => {
        void step.do("slow", held.body);
        await step.do("quick", () => 1);
        return "done";
      });
      const i = await s.create();
      expect(await s.toEnd(i)).toEqual({ status: "complete", output: "done" });
      expect(held.signal?.aborted).toBe(true);
      held.result.open("too late");
      await s.pass(1_000);
      const slow = (await s.steps(i)).find(({ name }) => name === "slow");
      expect(slow?.result).toBeUndefined();
    });

    test("a step may call steps: each is recorded, and none runs again when the outer step is retried", async () => {
      const calls: string[] = [];
      const s = await stage(
        on,
        (_event, step) =>
          step.do("outer", { retries: { limit: 1, delay: 1_000 } }, async ({ attempt }) => {
            calls.push(`outer ${attempt}`);
            const inner = await step.do("inner", () => (calls.push("inner"), 20));
            if (attempt === 1) throw new Error("after inner");
            return inner + 1;
          }),
        { runner: evicting },
      );
      expect(await s.output()).toBe(21);
      expect(calls).toEqual(["outer 1", "inner", "outer 2"]);
    });

    test("synchronous bodies and thenable results work like any other", async () => {
      // oxlint-disable-next-line unicorn/no-thenable
      const thenable = { then: (ok: (n: number) => void) => ok(2) };
      const s = await stage(on, async (_event, step) => [
        await step.do("sync", () => 1),
        await step.do("thenable", () => thenable as never),
        await step.do("nothing", () => {}),
      ]);
      expect(await s.output()).toEqual([1, 2, undefined]);
    });

    test("parallel steps run at the same time", async () => {
      const [a, b] = [new Gate(), new Gate()];
      const s = await stage(on, (_event, step) =>
        Promise.all([
          step.do("a", async () => (a.open(), await b.passed, "a")),
          step.do("b", async () => (b.open(), await a.passed, "b")),
        ]),
      );
      expect(await s.output()).toEqual(["a", "b"]);
    });
  });
}

import { WorkflowEntrypoint } from "pawl";
import { describe, expect, test } from "vitest";
import type { StoreFixture } from "../../src/testing/conformance/index.js";
import { evicting, open, stage, type Code } from "./stage.js";

export function poison(on: StoreFixture): void {
  describe("poison", () => {
    test("a workflow whose constructor throws errors only its own instance", async () => {
      class Poison extends WorkflowEntrypoint {
        readonly broken = ((): never => {
          throw new RangeError("in a field initialiser");
        })();
        async run(): Promise<void> {}
      }
      class Healthy extends WorkflowEntrypoint {
        async run(): Promise<string> {
          return "fine";
        }
      }
      const { h } = await open(on, {
        workflows: {
          POISON: { name: "poison", workflow: Poison },
          HEALTHY: { name: "healthy", workflow: Healthy },
        },
      });
      const bad = await h.workflows.POISON.create();
      const good = await h.workflows.HEALTHY.create();
      await h.runUntilIdle();
      expect(await bad.status()).toEqual({
        status: "errored",
        error: { name: "RangeError", message: "in a field initialiser" },
      });
      expect(await good.status()).toEqual({ status: "complete", output: "fine" });
    });

    test.each<[string, Code]>([
      [
        "calls the same recorded step again and again",
        async (_event, step) => {
          for (;;) {
            if (await step.do("check", () => false)) return;
            await step.sleep("pause", "1 second");
          }
        },
      ],
      [
        "calls a step with invalid arguments again and again",
        async (_event, step) => {
          for (;;) await step.sleep("pause", "a while").catch(() => {});
        },
      ],
    ])("a loop that %s ends, and holds up no other run", async (_what, endless) => {
      const s = await stage(on, {
        ENDLESS: endless,
        HEALTHY: (_event, step) => step.do("a", () => "fine"),
      });
      const bad = await s.start();
      const good = await s.workflows["HEALTHY"]!.create({});
      expect(await s.toEnd(bad)).toMatchObject({
        status: "errored",
        error: { name: "MaxStepsExceededError", message: expect.stringContaining("must differ") },
      });
      await s.h.runUntilIdle();
      expect(await good.status()).toEqual({ status: "complete", output: "fine" });
    });

    test("a body that throws a value that cannot be inspected fails like any other", async () => {
      const s = await stage(on, (_event, step) =>
        step.do("hostile", { retries: { limit: 1, delay: "1 second" } }, () => {
          const { proxy, revoke } = Proxy.revocable({}, {});
          revoke();
          throw proxy;
        }),
      );
      const i = await s.start();
      expect(await i.status()).toEqual({ status: "waiting" });
      expect((await s.toEnd(i)).status).toBe("errored");
    });

    test("a logger that throws does not affect the run", async () => {
      const broken = (): never => {
        throw new Error("the pipe is gone");
      };
      const logger = { debug: broken, info: broken, warn: broken, error: broken };
      let attempts = 0;
      const s = await stage(
        on,
        (_event, step) =>
          step.do("a", { retries: { limit: 1, delay: "1 second" } }, () => {
            if (++attempts === 1) throw new Error("no");
            return "fine";
          }),
        { logger },
      );
      expect(await s.run()).toEqual({ status: "complete", output: "fine" });
    });

    test("code that throws before its first step, synchronously or not, errors only its own instance", async () => {
      const s = await stage(on, (event, step) => {
        if (event.payload === "sync") throw new Error("sync");
        if (event.payload === "async") return Promise.reject(new Error("async"));
        return step.do("a", () => "fine");
      });
      const all = [await s.create("sync"), await s.create("async"), await s.create("good")];
      await s.h.runUntilIdle();
      expect(await Promise.all(all.map((each) => each.status()))).toEqual([
        { status: "errored", error: { name: "Error", message: "sync" } },
        { status: "errored", error: { name: "Error", message: "async" } },
        { status: "complete", output: "fine" },
      ]);
    });

    test.each([
      [
        "whose message cannot be read",
        () =>
          Object.defineProperty(new Error("x"), "message", {
            get() {
              throw new Error("gotcha");
            },
          }),
      ],
      [
        "that is its own cause",
        () => {
          const error = new Error("loop");
          error.cause = error;
          return error;
        },
      ],
      ["of ten megabytes", () => new Error("x".repeat(10_000_000))],
      ["with a NUL and half a surrogate", () => new Error("\0\ud800")],
      ["that is a function", () => () => 1],
      ["that is a symbol", () => Symbol("s")],
      [
        "that is a class instance",
        () =>
          new (class Odd {
            n = 1;
          })(),
      ],
    ])("an error %s is stored as well as it can be, and replays", async (_what, make) => {
      const s = await stage(
        on,
        async (_event, step) => {
          const once = { retries: { limit: 0, delay: 0 } };
          const isCaught = await step
            .do("throws", once, () => {
              throw make();
            })
            .catch(() => true);
          await step.sleep("nap", 1);
          expect(isCaught).toBe(true);
          throw make();
        },
        { runner: evicting },
      );
      const status = await s.run();
      expect(status.status).toBe("errored");
      expect(JSON.stringify(status.error).length).toBeLessThan(70_000);
    });

    test("a huge history is replayed without holding up its neighbours", async () => {
      const text = "x".repeat(100_000);
      const s = await stage(
        on,
        async (event, step) => {
          if (event.payload !== "huge") return step.do("a", () => "fine");
          for (let n = 0; n < 80; n++) await step.do(`step ${n}`, () => text);
          await step.sleep("nap", 1_000);
          let total = 0;
          for (let n = 0; n < 80; n++) total += (await step.do(`step ${n}`, () => "")).length;
          return total;
        },
        { runner: evicting },
      );
      const huge = await s.create("huge");
      await s.h.runUntilIdle();
      const others = [await s.create(), await s.create()];
      await s.clock.advance(1_000);
      await s.h.runUntilIdle();
      for (const other of others) expect(await other.status()).toMatchObject({ output: "fine" });
      expect(await huge.status()).toEqual({ status: "complete", output: 8_000_000 });
    });

    test("a body that throws after its run has ended causes no unhandled rejection", async () => {
      const s = await stage(on, async (_event, step) => {
        void step.do("a", async () => {
          await new Promise((resolve) => setTimeout(resolve, 5));
          throw new Error("after the end");
        });
        await step.do("b", () => 1);
        return "done";
      });
      expect(await s.output()).toBe("done");
      // Vitest fails on an unhandled rejection. This gives one the time to happen.
      await new Promise((resolve) => setTimeout(resolve, 20));
    });

    test("a workflow whose steps all fail at once ends once, with the first failure", async () => {
      const s = await stage(on, (_event, step) =>
        Promise.all(
          Array.from({ length: 20 }, (_, n) =>
            step.do(`step ${n}`, { retries: { limit: 0, delay: 0 } }, () => {
              throw new Error(`failure ${n}`);
            }),
          ),
        ),
      );
      expect(await s.run()).toMatchObject({ status: "errored", error: { message: "failure 0" } });
    });
  });
}

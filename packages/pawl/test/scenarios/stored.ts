import { describe, expect, test } from "vitest";
import type { StoreFixture } from "../../src/testing/conformance/index.js";
import { evicting, stage } from "./stage.js";

export function stored(on: StoreFixture): void {
  describe("stored values", () => {
    test("a result above the limit errors the step at once, with its name and without a retry", async () => {
      let calls = 0;
      const s = await stage(
        on,
        (_event, step) => step.do("big", () => (calls++, "x".repeat(2_000))),
        {
          limits: { stepResultMaxBytes: 1_000 },
        },
      );
      const status = await s.run();
      expect(status).toMatchObject({ status: "errored", error: { name: "PayloadTooLargeError" } });
      expect(status.error?.message).toContain("big");
      expect(calls).toBe(1);
    });

    test("a result of a mebibyte is stored", async () => {
      const text = "ä".repeat(524_000);
      const s = await stage(
        on,
        async (_event, step) => {
          const got = await step.do("big", () => text);
          await step.sleep("nap", 1_000);
          return got === text;
        },
        { runner: evicting },
      );
      expect(await s.output()).toBe(true);
    });

    test.each([
      ["a function", () => () => 1, "function"],
      [
        "a class instance",
        () =>
          new (class Odd {
            n = 1;
          })(),
        "Odd",
      ],
      [
        "a cycle",
        () => {
          const cycle: { me?: unknown } = {};
          cycle.me = cycle;
          return cycle;
        },
        "me",
      ],
    ])("%s as a result is one clear error that names the step", async (_what, make, word) => {
      let calls = 0;
      const s = await stage(on, (_event, step) =>
        step.do("odd result", () => {
          calls += 1;
          return make();
        }),
      );
      const status = await s.run();
      expect(status).toMatchObject({ status: "errored", error: { name: "SerializationError" } });
      expect(status.error?.message).toContain("odd result");
      expect(status.error?.message).toContain(word);
      expect(calls).toBe(1);
    });

    test("an output above its limit, or one that cannot be stored, errors the instance", async () => {
      const s = await stage(on, (event) => (event.payload === 1 ? "x".repeat(200) : () => 1), {
        limits: { outputMaxBytes: 100 },
      });
      expect(await s.run(1)).toMatchObject({ error: { name: "PayloadTooLargeError" } });
      expect(await s.run(2)).toMatchObject({ error: { name: "SerializationError" } });
    });

    test.each([
      ["empty", ""],
      ["257 characters long", "n".repeat(257)],
      ["with a NUL", "a\0b"],
    ])("a bad step name (%s) throws an error that the code can catch", async (_what, name) => {
      const s = await stage(on, async (_event, step) => {
        const errors = await Promise.allSettled([
          step.do(name, () => 1),
          step.sleep(name, 1),
          step.sleepUntil(name, 1),
          step.waitForEvent(name, { type: "x" }),
        ]);
        return errors.map((each) => each.status === "rejected" && each.reason.name);
      });
      expect(await s.output()).toEqual(Array(4).fill("ValidationError"));
    });

    test("a step name may have 256 characters of any script", async () => {
      const name = "😀".repeat(256);
      const s = await stage(
        on,
        async (_event, step) => {
          await step.do(name, () => 1);
          await step.sleep("nap", 1);
          return step.do(name, () => 2);
        },
        { runner: evicting },
      );
      expect(await s.output()).toBe(1);
    });
  });
}

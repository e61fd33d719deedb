import { describe, expect, test } from "vitest";
import type { StoreFixture } from "../../src/testing/conformance/index.js";
import { evicting, Gate, HeldBody, macrotasks, memories, stage } from "./stage.js";
import { holding } from "./store-wrappers.js";

const hour = "1 hour";
const thrice = { retries: { limit: 2, delay: "1 second", backoff: "constant" } } as const;

export function nested(on: StoreFixture): void {
  test.each(["counted", "error"] as const)(
    "with %s names, code that a body left behind may call a step while the body's result is on its way",
    async (repeatedStepNames) => {
      const commit = holding("commit", "answer");
      const leftBehind = new Gate();
      const beside = new HeldBody();
      const s = await stage(
        on,
        async (_event, step) => {
          const lasting = step.do("beside", beside.body);
          await step.do("outer", () => {
            void leftBehind.passed.then(() => step.sleep("inner", "1 minute"));
            return 1;
          });
          await lasting;
          return step.do("last", () => "done");
        },
        { around: commit.around, repeatedStepNames },
      );
      const i = await s.create();
      commit.arm();
      const turn = s.turn();
      await beside.entered.passed;
      await commit.reached;
      leftBehind.open();
      await macrotasks(3);
      await commit.letGo();
      await macrotasks(3);
      beside.result.open(null);
      await turn;
      expect(await s.toEnd(i)).toEqual({ status: "complete", output: "done" });
    },
  );

  describe.each(memories)("steps within the bodies of steps, %s", (_memory, runner) => {
    test("counted names are counted within each outer step", async () => {
      const charged: string[] = [];
      const s = await stage(
        on,
        async (_event, step) => {
          const out: string[] = [];
          for (const who of ["ann", "bob", "cat"]) {
            const order = step.do("order", () =>
              step.do("charge", () => {
                charged.push(who);
                return `charged ${who}`;
              }),
            );
            out.push(await order);
            await step.sleep("pause", hour);
          }
          out.push(await step.do("charge", () => "at the top"));
          await step.sleep("pause", hour);
          return out;
        },
        { repeatedStepNames: "counted", runner },
      );
      expect(await s.run()).toEqual({
        status: "complete",
        output: ["charged ann", "charged bob", "charged cat", "at the top"],
      });
      expect(charged).toEqual(["ann", "bob", "cat"]);
    });

    test.each(["cached", "counted", "error"] as const)(
      "with %s names, an inner step that ended does not run again when the outer step is retried",
      async (repeatedStepNames) => {
        const ran: string[] = [];
        const s = await stage(
          on,
          (_event, step) =>
            step.do("outer", thrice, async ({ attempt }) => {
              const values = [
                await step.do("first", () => ran.push(`first in ${attempt}`)),
                await step.do("second", () => ran.push(`second in ${attempt}`)),
              ];
              if (attempt < 3) throw new Error("no");
              return values;
            }),
          { repeatedStepNames, runner },
        );
        expect(await s.run()).toEqual({ status: "complete", output: [1, 2] });
        expect(ran).toEqual(["first in 1", "second in 1"]);
      },
    );
  });

  describe("steps within the bodies of steps", () => {
    test.each(["cached", "counted", "error"] as const)(
      "with %s names, the next owner finds the recorded inner steps",
      async (repeatedStepNames) => {
        const ran: string[] = [];
        let isDeadly = true;
        const s = await stage(
          on,
          async (_event, step) => {
            await step.do("before", () => 1);
            return step.do("outer", thrice, async () => {
              const value = await step.do("inner", () => {
                ran.push("inner");
                return "kept";
              });
              // The body of "deadly" begins once the result of "inner" is written.
              await step.do("deadly", async () => {
                if (!isDeadly) return;
                isDeadly = false;
                void s.h.crashRunner(s.lastRunner());
                await new Promise(() => {});
              });
              return value;
            });
          },
          { repeatedStepNames, runner: evicting },
        );
        const i = await s.create();
        await s.turn();
        s.addRunner();
        await s.clock.advance(hour);
        expect(await s.toEnd(i)).toEqual({ status: "complete", output: "kept" });
        expect(ran).toEqual(["inner"]);
      },
    );

    test("an attempt joins the inner step that the previous attempt began before it timed out", async () => {
      let charges = 0;
      const [charging, done] = [new Gate(), new Gate()];
      const s = await stage(on, (_event, step) =>
        step.do("order", { ...thrice, timeout: "1 minute" }, () =>
          step.do("charge", async () => {
            charges += 1;
            charging.open();
            await done.passed;
            return "ok";
          }),
        ),
      );
      const i = await s.create();
      const turn = s.turn();
      await charging.passed;
      await s.clock.advance("2 minutes");
      done.open();
      await turn;
      expect(await s.toEnd(i)).toEqual({ status: "complete", output: "ok" });
      expect(charges).toBe(1);
    });
  });
}

import { describe, expect, test } from "vitest";
import type { StoreFixture } from "../../src/testing/conformance/index.js";
import type { WorkflowStep } from "pawl";
import { aPart, aStep } from "../../src/testing/conformance/build.js";
import { webRuntime } from "../../src/runtime.js";
import type { Claimed } from "../../src/store/store.js";
import { until } from "../support/until.js";
import {
  evicting,
  Gate,
  macrotasks,
  stage,
  type Code,
  type Stage,
  type StageOptions,
} from "./stage.js";
import { holding } from "./store-wrappers.js";

/** Parks a run under the old code, then deploys: the old process is gone, and the new code goes on. */
async function deploy(
  on: StoreFixture,
  before: Code,
  after: Code,
  options: StageOptions & { onDivergence?: "continue" | "hold" } = {},
) {
  const s = await stage(on, before, options);
  const i = await s.start();
  await s.h.crashRunner(s.h.runner);
  const next = await s.peer(after);
  await s.clock.advance("1 hour");
  await next.h.runUntilIdle();
  return { s, i, next };
}

const hour = "1 hour";

const warnings = (s: Stage, event: string): object[] =>
  s.logs.filter((entry) => entry.level === "warn" && entry.event === event);

export function divergence(on: StoreFixture): void {
  describe("history that this code does not know", () => {
    test("holds the run if a recorded step has the type of newer code", async () => {
      let calls = 0;
      const s = await stage(on, async (_event, step) => {
        calls += 1;
        await step.do("a", () => 1);
        await step.sleep("nap", hour);
      });
      const i = await s.start();
      await s.h.crashRunner(s.h.runner);
      const recorded = await s.database.store.get({ workflow: "main", id: i.id });
      const runner = "newer";
      await s.database.store.register(runner, 1_000);
      const lanes = [{ queue: "default", handler: "main" }];
      await s.clock.advance(hour);
      const claim = await s.database.store.claim({ runner, lanes, limit: 1, reservedForNew: 0 });
      if (claim.kind !== "ok") throw new Error("the runner is dead");
      const [claimed] = claim.claimed as [Claimed];
      await s.database.store.commit([
        aPart(claimed, {
          steps: [aStep(3, { type: "teleport", seq: 3, calledAfter: 2 })],
          next: { kind: "release", inMs: 0, historyBytes: 0 },
        }),
      ]);
      expect(recorded?.iid).toBe(claimed.iid);
      calls = 0;
      s.addRunner();
      await s.h.tick();
      expect(calls).toBe(0);
      expect(warnings(s, "step.unknownType")).toMatchObject([{ fields: { type: "teleport" } }]);
      expect(await i.status()).toEqual({ status: "queued" });
    });
  });

  describe("a stop during a replay", () => {
    test("does not report steps as missing that the code had no time to call", async () => {
      const release = holding("commit", "request");
      const awaited = new Gate();
      let starts = 0;
      const s = await stage(
        on,
        async (_event, step) => {
          starts += 1;
          await step.do("a", () => 1);
          if (starts > 1) await awaited.passed;
          await step.do("b", () => 2);
          await step.sleep("nap", hour);
        },
        { around: release.around, runner: evicting },
      );
      await s.start();
      await s.clock.advance(hour);
      release.arm();
      const turn = s.turn();
      await until(() => starts === 2, "the replay begins");
      await macrotasks(3);
      const stopped = s.h.runner.stop(0);
      await release.reached;
      awaited.open();
      // Real time: a replay waits for a second before it gives a call up.
      await new Promise((resolve) => void webRuntime.scheduler.after(1_200, () => resolve(null)));
      await release.letGo();
      await stopped;
      await turn;
      expect(warnings(s, "step.missing")).toEqual([]);
    });
  });

  describe("changed code", () => {
    test("goes on: recorded steps return their results, and new ones run", async () => {
      const { i } = await deploy(
        on,
        async (_event, step) => {
          await step.do("a", () => "old a");
          await step.sleep("nap", hour);
        },
        async (_event, step) => {
          const a = await step.do("a", () => "new a");
          await step.sleep("nap", hour);
          return [a, await step.do("b", () => "new b")];
        },
      );
      expect(await i.status()).toEqual({ status: "complete", output: ["old a", "new b"] });
    });

    test("may add a step before recorded ones", async () => {
      const { i } = await deploy(
        on,
        async (_event, step) => {
          await step.do("a", () => 1);
          await step.sleep("nap", hour);
        },
        async (_event, step) => {
          const early = await step.do("early", () => 0);
          const a = await step.do("a", () => "again");
          await step.sleep("nap", hour);
          return [early, a];
        },
      );
      expect(await i.status()).toEqual({ status: "complete", output: [0, 1] });
    });

    test("that no longer calls recorded steps goes on, and the log names those steps", async () => {
      const { i, s } = await deploy(
        on,
        async (_event, step) => {
          await step.do("kept", () => 1);
          await step.do("removed", () => 2);
          await step.sleep("nap", hour);
        },
        async (_event, step) => {
          const kept = await step.do("kept", () => "again");
          await step.sleep("nap", hour);
          return [kept, await step.do("added", () => 3)];
        },
      );
      expect(await i.status()).toEqual({ status: "complete", output: [1, 3] });
      expect(warnings(s, "step.missing")).toContainEqual(
        expect.objectContaining({
          fields: expect.objectContaining({
            workflow: "main",
            id: i.id,
            steps: [{ name: "removed", type: "do" }],
          }),
        }),
      );
    });

    test("that calls a recorded name as another kind of step errors, with both kinds in the message", async () => {
      const { i } = await deploy(
        on,
        async (_event, step) => {
          await step.do("x", () => 1);
          await step.sleep("nap", hour);
        },
        async (_event, step) => {
          await step.waitForEvent("x", { type: "go" });
        },
      );
      const { status, error } = await i.status();
      expect(status).toBe("errored");
      expect(error?.name).toBe("StepMismatchError");
      expect(error?.message).toContain('"x"');
      expect(error?.message).toMatch(/recorded as do .*called as waitForEvent/);
    });

    test("that calls its racing steps only after replay gave up waiting for them still sees the same winner", async () => {
      const race = async (step: WorkflowStep): Promise<string> => {
        const winner = await Promise.race([
          step.sleep("long", 2_000).then(() => "long"),
          step.sleep("short", 1_000).then(() => "short"),
        ]);
        await step.sleep("nap", hour);
        return step.do("mark", () => winner);
      };
      const s = await stage(on, (_event, step) => race(step));
      const i = await s.start();
      await s.clock.advance("1 minute");
      await s.h.runUntilIdle();
      await s.h.crashRunner(s.h.runner);
      const next = await s.peer(async (_event, step) => {
        // Something that is not a step takes longer than replay waits for it.
        while (warnings(s, "step.missing").length < 2) await macrotasks(1);
        return race(step);
      });
      await s.clock.advance(hour);
      await next.h.runUntilIdle();
      expect(await i.status()).toEqual({ status: "complete", output: "short" });
    });

    test("is not suspected when a call left over from a step's body is missing: unchanged code is not held", async () => {
      const s = await stage(
        on,
        async (_event, step) => {
          let isOver = (): void => {};
          const over = new Promise<void>((resolve) => (isOver = resolve));
          const left = step.do("outer", async () => {
            void over.then(() => step.do("left over", () => 1));
          });
          await left;
          await step.do("next", () => isOver());
          await step.sleep("nap", hour);
          return step.do("end", () => "reached");
        },
        { onDivergence: "hold", runner: evicting },
      );
      const i = await s.start();
      await s.pass(hour);
      expect(await i.status()).toEqual({ status: "complete", output: "reached" });
    });

    test("may reorder its recorded steps", async () => {
      const { i } = await deploy(
        on,
        async (_event, step) => {
          await step.do("a", () => "a");
          await step.do("b", () => "b");
          await step.sleep("nap", hour);
        },
        async (_event, step) => {
          const b = await step.do("b", () => "again");
          const a = await step.do("a", () => "again");
          await step.sleep("nap", hour);
          return [a, b];
        },
      );
      expect(await i.status()).toEqual({ status: "complete", output: ["a", "b"] });
    });

    test("never gives one step's result to another, or runs a recorded step again", async () => {
      const again: string[] = [];
      const { i } = await deploy(
        on,
        async (_event, step) => {
          for (const name of ["a", "b", "c"]) await step.do(name, () => name);
          await step.sleep("nap", hour);
        },
        async (_event, step) => {
          const got = await Promise.all(
            ["c", "new", "a"].map((name) =>
              step.do(name, () => (again.push(name), `fresh ${name}`)),
            ),
          );
          await step.sleep("nap", hour);
          return got;
        },
      );
      expect(await i.status()).toEqual({ status: "complete", output: ["c", "fresh new", "a"] });
      expect(again).toEqual(["new"]);
    });

    test("keeps the end of a sleep that has begun, whatever its new length", async () => {
      const { i } = await deploy(
        on,
        (_event, step) => step.sleep("nap", hour),
        async (_event, step) => {
          await step.sleep("nap", "30 days");
          return "awake";
        },
      );
      expect(await i.status()).toEqual({ status: "complete", output: "awake" });
    });
  });

  describe('changed code with onDivergence: "hold"', () => {
    const before: Code = async (_event, step) => {
      await step.do("x", () => 1);
      await step.sleep("nap", hour);
      return "old code finished";
    };

    test.each([
      ["another kind of step", "step.mismatch", (_event, step) => step.sleep("x", 1)],
      ["a removed step, at its end", "step.missing", async () => "gone"],
      [
        "a removed step, at its next one",
        "step.missing",
        async (_event, step) => {
          await step.sleep("nap", hour);
          return "gone";
        },
      ],
    ] as [string, string, Code][])(
      "holds the run at %s, and corrected code goes on",
      async (_what, event, after) => {
        const { i, s, next } = await deploy(on, before, after, { onDivergence: "hold" });
        expect(["queued", "waiting"]).toContain((await i.status()).status);
        expect(warnings(s, event).length).toBeGreaterThan(0);
        await next.h.crashRunner(next.h.runner);
        const corrected = await s.peer(before);
        await s.clock.advance("5 minutes");
        await corrected.h.runUntilIdle();
        expect(await i.status()).toEqual({ status: "complete", output: "old code finished" });
      },
    );

    test("a held run is tried again with pauses, never in a hot loop, and does not end", async () => {
      const { i, s, next } = await deploy(on, before, (_event, step) => step.sleep("x", 1), {
        onDivergence: "hold",
      });
      const tries = (): number => warnings(s, "step.mismatch").length;
      const first = tries();
      const { nextWakeInMs } = await next.h.tick();
      expect(nextWakeInMs).toBeGreaterThan(1_000);
      expect(tries()).toBe(first);
      for (let n = 0; n < 10; n++) {
        await s.clock.advance("1 minute");
        await next.h.runUntilIdle();
      }
      expect(tries()).toBeGreaterThan(first);
      expect(tries()).toBeLessThanOrEqual(first + 11);
      expect(["queued", "waiting"]).toContain((await i.status()).status);
    });
  });
}

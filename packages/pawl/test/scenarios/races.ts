import { describe, expect, test } from "vitest";
import type { StoreFixture } from "../../src/testing/conformance/index.js";
import { evicting, Gate, memories, stage, type Code } from "./stage.js";

/** The same value, some microtasks later. */
async function deep<T>(levels: number, promise: Promise<T>): Promise<T> {
  return levels === 0 ? promise : await deep(levels - 1, promise);
}

const named = <T>(name: string, promise: Promise<T>): Promise<string> => promise.then(() => name);

const once = { retries: { limit: 0, delay: 0 } };
const fails = (message: string) => (): never => {
  throw new Error(message);
};

/** Each program ends by itself as time passes. */
const programs: readonly {
  readonly name: string;
  readonly code: Code;
  readonly expected: unknown;
}[] = [
  {
    name: "race of two sleeps: the shorter one wins, and the longer one still ends",
    code: async (_event, step) => {
      const long = named("long", step.sleep("long", 2_000));
      const winner = await Promise.race([long, named("short", step.sleep("short", 1_000))]);
      await step.do("mark", () => winner);
      return [winner, await long];
    },
    expected: ["short", "long"],
  },
  {
    name: "race of two steps through helpers of different depth",
    code: async (_event, step) => {
      const winner = await Promise.race([
        deep(
          20,
          named(
            "deep",
            step.do("a", () => 1),
          ),
        ),
        deep(
          0,
          named(
            "flat",
            step.do("b", () => 2),
          ),
        ),
      ]);
      await step.sleep("nap", 1_000);
      await step.do(`after ${winner}`, () => 1);
      await step.sleep("nap again", 1_000);
      return winner;
    },
    // Settlements are delivered one by one, each in a macrotask of its own, so the depth does not matter.
    expected: "deep",
  },
  {
    name: "race of a sleep and a step that needs retries",
    code: async (_event, step) => {
      const flaky = step.do(
        "flaky",
        { retries: { limit: 3, delay: 400, backoff: "constant" } },
        ({ attempt }) => {
          if (attempt < 3) throw new Error("no");
          return "flaky";
        },
      );
      const winner = await Promise.race([deep(7, flaky), named("sleep", step.sleep("s", 1_000))]);
      await step.sleep("end", 5_000);
      return winner;
    },
    expected: "flaky",
  },
  {
    name: "any: gives the first that succeeds, past those that fail",
    code: async (_event, step) => {
      const value = await Promise.any([
        step.do("fails", once, fails("a")),
        deep(5, named("slow", step.sleep("slow", 2_000))),
        deep(9, named("quick", step.sleep("quick", 1_000))),
      ]);
      await step.sleep("end", 5_000);
      return value;
    },
    expected: "quick",
  },
  {
    name: "any of failures only: throws an AggregateError with all of them in order",
    code: async (_event, step) => {
      const error = await Promise.any([
        step.do("a", once, fails("a")),
        step.waitForEvent("b", { type: "b", timeout: 2_000 }),
        step.do("c", once, fails("c")),
      ]).catch((caught: unknown) => caught as AggregateError);
      await step.sleep("end", 1_000);
      return (error as AggregateError).errors.map(
        (each: Error) => each.name + each.message.slice(0, 2),
      );
    },
    expected: ["Errora", "WaitTimeoutErrorno", "Errorc"],
  },
  {
    name: "allSettled over a step, a failing step, a sleep and a wait that times out",
    code: async (_event, step) => {
      const settled = await Promise.allSettled([
        step.do("ok", () => 1),
        step.do("fails", once, fails("no")),
        step.sleep("nap", 1_000),
        step.waitForEvent("wait", { type: "x", timeout: 2_000 }),
      ]);
      await step.sleep("end", 1_000);
      return settled.map((each) =>
        each.status === "fulfilled" ? each.value : each.reason.message,
      );
    },
    expected: [1, "no", undefined, 'no event of type "x" came for step "wait" in time'],
  },
  {
    name: "all that fails early: the others go on, and the catch sees the first failure",
    code: async (_event, step) => {
      const nap = named("napped", step.sleep("nap", 3_000));
      const caught = await Promise.all([
        nap,
        step.waitForEvent("wait", { type: "x", timeout: 1_000 }),
        step.sleep("b", 2_000).then(() => step.do("c", once, fails("later"))),
      ]).catch((error: Error) => error.name);
      return [caught, await nap];
    },
    expected: ["WaitTimeoutError", "napped"],
  },
  {
    name: "timers of the same millisecond settle in the order of their calls",
    code: async (_event, step) => {
      const order: string[] = [];
      await Promise.all(
        ["a", "b", "c"].map(async (name, n) => {
          await deep(10 - 5 * n, step.sleep(name, 1_000));
          order.push(name);
        }),
      );
      await step.sleep("end", 1_000);
      return order;
    },
    expected: ["a", "b", "c"],
  },
  {
    name: "branches with steps of their own, where the first branch to end decides the next step",
    code: async (_event, step) => {
      const branch = async (name: string, ms: number): Promise<string> => {
        for (let n = 0; n < 3; n++) {
          await step.sleep(`${name} ${n}`, ms);
          await step.do(`${name} step ${n}`, () => n);
        }
        return name;
      };
      const [x, y] = [branch("x", 300), branch("y", 200)];
      const first = await Promise.race([x, y]);
      const second = await step.do(`first was ${first}`, () => first.toUpperCase());
      return [first, second, await x, await y];
    },
    expected: ["y", "Y", "x", "y"],
  },
  {
    name: "a timeout built from a race, in a loop",
    code: async (_event, step) => {
      const seen: string[] = [];
      for (let n = 0; n < 3; n++) {
        seen.push(
          await Promise.race([
            step
              .waitForEvent<string>(`wait ${n}`, { type: "go", timeout: "1 hour" })
              .then(({ payload }) => payload),
            named("timeout", step.sleep(`limit ${n}`, 10_000)),
          ]),
        );
      }
      return seen;
    },
    expected: ["timeout", "timeout", "timeout"],
  },
];

export function races(on: StoreFixture): void {
  describe.each(memories)("races, %s", (_, runner) => {
    test.each(programs)("$name", async ({ code, expected }) => {
      const s = await stage(on, code, { runner });
      expect(await s.output()).toEqual(expected);
    });

    test.each([
      ["event", "deep", 12, 0],
      ["event", "flat", 0, 12],
    ])("an %s races a timer, and the earlier one wins (event %s)", async (_what, _how, a, b) => {
      const s = await stage(
        on,
        async (_event, step) => {
          const winner = await Promise.race([
            deep(a, named("event", step.waitForEvent("wait", { type: "go" }))),
            deep(b, named("timer", step.sleep("nap", 60_000))),
          ]);
          await step.sleep("end", "1 day");
          return winner;
        },
        { runner },
      );
      const early = await s.start();
      const late = await s.start();
      await s.clock.advance(59_999);
      await early.sendEvent({ type: "go" });
      await s.clock.advance(2);
      await late.sendEvent({ type: "go" });
      // Both runs are claimed only now, long after the event and the timer.
      expect(await s.toEnd(early)).toMatchObject({ output: "event" });
      expect(await s.toEnd(late)).toMatchObject({ output: "timer" });
    });

    test("a wait that has lost its race still takes the next event of its type", async () => {
      const s = await stage(
        on,
        async (_event, step) => {
          const first = step.waitForEvent("first", { type: "go" });
          await Promise.race([first, step.sleep("limit", 1_000)]);
          const second = await step.waitForEvent("second", { type: "go" });
          return [(await first).payload, second.payload];
        },
        { runner },
      );
      const i = await s.start();
      await s.pass(1_000);
      await i.sendEvent({ type: "go", payload: 1 });
      await s.h.runUntilIdle();
      expect(await i.status()).toEqual({ status: "waiting" });
      await i.sendEvent({ type: "go", payload: 2 });
      expect(await s.toEnd(i)).toMatchObject({ output: [1, 2] });
    });

    test("steps are replayed in the order in which they ended", async () => {
      const gates = { a: new Gate(), b: new Gate(), c: new Gate() };
      const orders: string[][] = [];
      const s = await stage(
        on,
        async (_event, step) => {
          const order: string[] = [];
          orders.push(order);
          await Promise.all(
            (["a", "b", "c"] as const).map(async (name, n) => {
              await deep(
                9 - 4 * n,
                step.do(name, () => gates[name].passed),
              );
              order.push(name);
            }),
          );
          await step.sleep("nap", 1_000);
          return order;
        },
        { runner },
      );
      const i = await s.create();
      const turn = s.turn();
      for (const name of ["c", "a", "b"] as const) {
        gates[name].open();
        await s.clock.advance(1);
      }
      await turn;
      expect(await s.toEnd(i)).toMatchObject({ output: ["c", "a", "b"] });
      expect(orders.length).toBe(runner === evicting ? 2 : 1);
      for (const order of orders) expect(order).toEqual(["c", "a", "b"]);
    });
  });

  describe("races", () => {
    test.each(programs)("taken over by a new process after every turn: $name", async (program) => {
      const s = await stage(on, program.code);
      const i = await s.create();
      let { runner } = s.h;
      for (let n = 0; n < 100; n++) {
        await s.h.runUntilIdle();
        const { status } = await i.status();
        if (status === "complete") break;
        const { nextWakeInMs } = await s.h.tick();
        await s.h.crashRunner(runner);
        runner = s.h.addRunner();
        await s.clock.advance(nextWakeInMs ?? 0);
      }
      expect(await i.result({ timeout: 0 })).toEqual(program.expected);
    });

    test("a parked run whose code goes on by itself is reopened, and replays the same way", async () => {
      const outside = new Gate();
      let marks = 0;
      const s = await stage(on, async (_event, step) => {
        const winner = await Promise.race([
          named("outside", outside.passed),
          named("sleep", step.sleep("nap", "1 hour")),
        ]);
        const told = await step.do("tell", () => (marks++, winner));
        await step.sleep("end", "2 hours");
        return told;
      });
      const i = await s.start();
      expect(await i.status()).toEqual({ status: "waiting" });
      outside.open();
      await s.clock.advance(1);
      expect((await s.steps(i)).map(({ name, status }) => [name, status])).toEqual([
        ["nap", "waiting"],
        ["tell", "completed"],
        ["end", "waiting"],
      ]);
      await s.h.crashRunner(s.h.runner);
      s.h.addRunner();
      expect(await s.toEnd(i)).toEqual({ status: "complete", output: "outside" });
      expect(marks).toBe(1);
    });
  });
}

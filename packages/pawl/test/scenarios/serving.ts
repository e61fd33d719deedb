import { createWorkflows, type Registry, type Workflows } from "pawl";
import { describe, expect, onTestFinished, test } from "vitest";
import type { StoreFixture } from "../../src/testing/conformance/index.js";
import { until } from "../support/until.js";
import { HeldBody, type Code, type Instance, type Stage } from "./stage.js";
import { counting } from "./store-wrappers.js";

/** So long that only hints can wake the dispatcher. */
const SELDOM_MS = 60_000;
/** Timers of runs that parked since the last claim are found by polling this often. */
const OFTEN_MS = 20;

/**
 * The smallest possible dispatcher. It starts what is due when woken, when something falls due, and now and
 * then.
 */
function dispatch({ runner }: Workflows<Registry, unknown>, pollMs: number): void {
  let timer: ReturnType<typeof setTimeout> | undefined;
  let isOver = false;
  const look = async (): Promise<void> => {
    clearTimeout(timer);
    const { done } = await runner.start();
    void done;
    const inMs = (await runner.nextWakeInMs()) ?? pollMs;
    if (!isOver) timer = setTimeout(wake, Math.min(inMs, pollMs));
  };
  const wake = (): void => void look().catch(() => {});
  runner.serve(wake);
  wake();
  onTestFinished(() => {
    isOver = true;
    clearTimeout(timer);
  });
}

async function serving(on: StoreFixture, code: Code, pollMs = SELDOM_MS) {
  const database = await on.open();
  const store = counting();
  const start = () => {
    const workflows = { MAIN: { name: "main", run: code } } as unknown as Registry;
    const options = { workflows, store: store.around(database.store) };
    const pawl = createWorkflows(options);
    const main = pawl.workflows["MAIN"] as unknown as Stage["workflows"][string];
    return { pawl, create: (params?: unknown): Promise<Instance> => main.create({ params }) };
  };
  const first = start();
  onTestFinished(async () => {
    await first.pawl.runner.stop(0);
    await database.destroy();
  });
  dispatch(first.pawl, pollMs);
  return { ...first, start, store };
}

export function served(on: StoreFixture): void {
  describe("a runner that serves, on the database's own clock", () => {
    test("runs instances to their results, with sleeps and retries", async () => {
      const { create } = await serving(
        on,
        async (event, step) => {
          const n = await step.do("n", () => event.payload + 1);
          await step.sleep("nap", 30);
          const retries = { limit: 2, delay: 5 };
          return step.do("flaky", { retries }, ({ attempt }) => {
            if (attempt < 3) throw new Error("no");
            return [n, attempt];
          });
        },
        OFTEN_MS,
      );
      const i = await create(1);
      expect(await i.result({ timeout: "20 seconds" })).toEqual([2, 3]);
    });

    test("starts new runs in place, without a claim", async () => {
      const { create, store } = await serving(on, (_event, step) => step.do("a", () => "ok"));
      await (await create()).result({ timeout: "20 seconds" });
      await until(() => store.calls["nextDueInMs"] ?? 0, "looked");
      const parts = store.parts.length;
      const i = await create();
      expect(await i.result({ timeout: "20 seconds" })).toBe("ok");
      expect(store.parts.slice(parts).map(({ claimNumber }) => claimNumber)).toEqual([1]);
    });

    test("delivers an event to a parked run", async () => {
      const { create } = await serving(on, async (_event, step) => {
        const { payload } = await step.waitForEvent("wait", { type: "go" });
        return payload;
      });
      const i = await create();
      await until(async () => (await i.status()).status === "waiting", "waiting");
      await i.sendEvent({ type: "go", payload: "hello" });
      expect(await i.result({ timeout: "20 seconds" })).toBe("hello");
    });

    test("does not let a slow step delay other runs", async () => {
      const slow = new HeldBody<string>();
      const { create } = await serving(on, (event, step) =>
        step.do("a", (context) => (event.payload === "slow" ? slow.body(context) : "quick")),
      );
      const first = await create("slow");
      await slow.entered.passed;
      const others = await Promise.all(Array.from({ length: 30 }, () => create("quick")));
      for (const i of others) expect(await i.result({ timeout: "20 seconds" })).toBe("quick");
      expect((await first.status()).status).toBe("running");
      slow.result.open("slow");
      expect(await first.result({ timeout: "20 seconds" })).toBe("slow");
    });

    test("aborts a running body at once when its instance is terminated", async () => {
      const body = new HeldBody<string>();
      const { create } = await serving(on, (_event, step) => step.do("a", body.body));
      const i = await create();
      await body.entered.passed;
      await i.terminate();
      await until(() => body.signal?.aborted, "aborted");
      body.result.open("late");
      expect(await i.status()).toEqual({ status: "terminated" });
    });

    test("drains on a stop, and the next process goes on with attempt 1", async () => {
      const body = new HeldBody<string>();
      const attempts: number[] = [];
      const { pawl, create, start } = await serving(on, async (_event, step) => {
        const a = await step.do("a", body.body);
        return [a, await step.do("b", ({ attempt }) => (attempts.push(attempt), attempt))];
      });
      const i = await create();
      await body.entered.passed;
      const stopped = pawl.runner.stop(20_000);
      body.result.open("a");
      await stopped;
      expect(attempts).toEqual([]);
      const next = start();
      onTestFinished(() => next.pawl.runner.stop(0));
      dispatch(next.pawl, SELDOM_MS);
      expect(await i.result({ timeout: "20 seconds" })).toEqual(["a", 1]);
      expect(body.entries).toBe(1);
    });
  });
}

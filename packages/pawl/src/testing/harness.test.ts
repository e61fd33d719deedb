import { DatabaseSync } from "@photostructure/sqlite";
import { afterEach, describe, expect, test, vi } from "vitest";
import {
  defineWorkflow,
  NonRetryableError,
  WorkflowEntrypoint,
  type WorkflowEvent,
  type WorkflowStep,
} from "../index.js";
import { sqliteStore } from "../sqlite.js";
import { createHarness, VirtualTime } from "./index.js";
import { openMemorySqlite } from "./memory-sqlite.js";

type Order = { readonly n: number };

/** The deeds of the bodies. They await `gate`. */
const log: string[] = [];
let gate: Promise<void> = Promise.resolve();

class OrderWorkflow extends WorkflowEntrypoint<unknown, Order> {
  async run({ payload }: WorkflowEvent<Order>, step: WorkflowStep): Promise<string> {
    const id = await step.do("reserve", async ({ attempt }) => {
      log.push(`reserve ${attempt}`);
      await gate;
      return `r${payload.n}`;
    });
    await step.sleep("cool down", "24 hours");
    const charge = await step.do("charge", () => {
      log.push("charge");
      return "paid";
    });
    return `${id} ${charge}`;
  }
}

const approval = defineWorkflow({
  name: "approval",
  run: async (_event, step): Promise<unknown> => {
    await step.sleep("think", "1 minute");
    try {
      const event = await step.waitForEvent<string>("wait", { type: "approve", timeout: "1 hour" });
      return event.payload;
    } catch (error) {
      return (error as Error).name;
    }
  },
});

const workflows = { ORDER: { name: "order", workflow: OrderWorkflow } } as const;

/** A workflow with one step, tried up to three times with an hour between. */
function flaky(body: () => unknown) {
  return defineWorkflow({
    name: "flaky",
    run: (_event, step): Promise<unknown> =>
      step.do("call", { retries: { limit: 2, delay: "1 hour", backoff: "constant" } }, body),
  });
}

const open: { close(): Promise<void> }[] = [];

const harnessed: typeof createHarness = async (options) => {
  const h = await createHarness(options);
  open.push(h);
  return h;
};

afterEach(async () => {
  for (const h of open.splice(0)) await h.close();
  log.length = 0;
  gate = Promise.resolve();
});

describe("time", () => {
  test("a day of sleep passes in milliseconds", async () => {
    const h = await harnessed({ workflows });
    const order = await h.workflows.ORDER.create({ id: "o1", params: { n: 7 } });
    const startedAt = Date.now();
    const before = h.clock.now();

    await h.runUntilIdle();
    expect(await h.status("order", "o1")).toEqual({ status: "waiting" });
    expect(h.clock.now()).toBe(before);
    await h.clock.advance("24 hours");
    expect(h.clock.now()).toBe(before + 86_400_000);
    await h.runUntilIdle();

    expect(await order.status()).toEqual({ status: "complete", output: "r7 paid" });
    expect(Date.now() - startedAt).toBeLessThan(1_000);
  });

  test("nothing wakes a millisecond too early", async () => {
    const h = await harnessed({ workflows });
    await h.workflows.ORDER.create({ id: "o1", params: { n: 7 } });
    await h.runUntilIdle();
    await h.clock.advance(86_400_000 - 1);
    await h.runUntilIdle();
    expect(await h.status("order", "o1")).toEqual({ status: "waiting" });
    await h.clock.advance(1);
    await h.runUntilIdle();
    expect(await h.status("order", "o1")).toMatchObject({ status: "complete" });
  });

  test("a step's timeout fires when the clock passes it", async () => {
    const h = await harnessed({
      workflows: {
        SLOW: defineWorkflow({
          name: "slow",
          run: (_event, step): Promise<unknown> =>
            step.do("hang", { timeout: "1 minute", retries: { limit: 0, delay: 0 } }, () => {
              return new Promise(() => {});
            }),
        }),
      },
    });
    await h.workflows.SLOW.create({ id: "s1" });
    await h.waitForStep("slow", "s1", "hang", "running");
    await h.clock.advance("1 minute");
    await h.runUntilIdle();
    expect(await h.status("slow", "s1")).toMatchObject({
      status: "errored",
      error: { name: "StepTimeoutError" },
    });
  });
});

describe("doubles", () => {
  test("a value stands in for a step, and the body is never called", async () => {
    const h = await harnessed({ workflows });
    h.mockStep("reserve", "mocked");
    h.disableSleeps();
    await h.workflows.ORDER.create({ id: "o1", params: { n: 7 } });
    await h.runUntilIdle();
    expect(await h.status("order", "o1")).toEqual({ status: "complete", output: "mocked paid" });
    expect(log).toEqual(["charge"]);
  });

  test("mocks with times apply one after the other, and then the body again", async () => {
    const h = await harnessed({ workflows: { FLAKY: flaky(() => "real") } });
    h.mockStep("call", new Error("first"), { times: 1 });
    h.mockStep("call", new Error("second"), { times: 1 });
    h.disableRetryDelays();
    await h.workflows.FLAKY.create({ id: "f1" });
    await h.runUntilIdle();
    expect(await h.status("flaky", "f1")).toEqual({ status: "complete", output: "real" });
    const { entries } = await h.history("flaky", "f1");
    expect(entries).toMatchObject([
      {
        name: "call",
        attempts: [
          { n: 1, error: { message: "first" } },
          { n: 2, error: { message: "second" } },
          { n: 3 },
        ],
      },
    ]);
  });

  test("a mock without times applies after those with times, and the newest one counts", async () => {
    const h = await harnessed({ workflows: { FLAKY: flaky(() => "real") } });
    h.mockStep("call", "old");
    h.mockStep("call", "lasting");
    h.mockStep("call", "once", { times: 1 });
    for (const id of ["f1", "f2", "f3"]) await h.workflows.FLAKY.create({ id });
    await h.runUntilIdle();
    const statuses = await Promise.all(["f1", "f2", "f3"].map((id) => h.status("flaky", id)));
    const outputs = statuses.map(({ output }) => String(output));
    expect(outputs.toSorted((a, b) => a.localeCompare(b))).toEqual(["lasting", "lasting", "once"]);
  });

  test("a function stands in for a body, and receives its attempt", async () => {
    const h = await harnessed({ workflows: { FLAKY: flaky(() => "real") } });
    h.disableRetryDelays();
    h.mockStep("call", ({ attempt, instanceId }) => {
      if (attempt === 1) throw new Error("not yet");
      return `${instanceId} ${attempt}`;
    });
    await h.workflows.FLAKY.create({ id: "f1" });
    await h.runUntilIdle();
    expect(await h.status("flaky", "f1")).toMatchObject({ output: "f1 2" });
  });

  test("an error that must not be retried ends the step at once", async () => {
    const h = await harnessed({ workflows: { FLAKY: flaky(() => "real") } });
    h.mockStep("call", new NonRetryableError("no"));
    await h.workflows.FLAKY.create({ id: "f1" });
    await h.runUntilIdle();
    expect(await h.status("flaky", "f1")).toMatchObject({
      status: "errored",
      error: { name: "NonRetryableError", message: "no" },
    });
  });

  test("times must be at least 1", async () => {
    const h = await harnessed({ workflows });
    expect(() => h.mockStep("charge", 1, { times: 0 })).toThrow("times must be a number from 1");
  });

  test("only the named sleeps are disabled", async () => {
    const h = await harnessed({
      workflows: {
        NAPS: defineWorkflow({
          name: "naps",
          run: async ({ timestamp }, step) => {
            await step.sleep("a", "1 hour");
            await step.sleepUntil("b", timestamp.getTime() + 86_400_000);
            await step.sleep("c", "1 hour");
          },
        }),
      },
    });
    h.disableSleeps(["a", "b"]);
    await h.workflows.NAPS.create({ id: "n1" });
    await h.waitForStep("naps", "n1", "c", "waiting");
    await h.waitForStep("naps", "n1", "b");
  });

  test("retry delays stay unless they are disabled", async () => {
    const body = vi.fn(() => {
      throw new Error("no");
    });
    const h = await harnessed({ workflows: { FLAKY: flaky(body) } });
    await h.workflows.FLAKY.create({ id: "f1" });
    await h.runUntilIdle();
    expect(body).toHaveBeenCalledTimes(1);
    h.disableRetryDelays();
    await h.clock.advance("1 hour");
    await h.runUntilIdle();
    expect(body).toHaveBeenCalledTimes(3);
    expect(await h.status("flaky", "f1")).toMatchObject({ status: "errored" });
  });

  test("forceTimeout fails the attempts of a step without calling its body", async () => {
    const body = vi.fn(() => "real");
    const h = await harnessed({ workflows: { FLAKY: flaky(body) } });
    h.forceTimeout("call");
    h.disableRetryDelays();
    await h.workflows.FLAKY.create({ id: "f1" });
    await h.runUntilIdle();
    expect(await h.status("flaky", "f1")).toMatchObject({
      status: "errored",
      error: { name: "StepTimeoutError" },
    });
    expect(body).not.toHaveBeenCalled();
    expect((await h.history("flaky", "f1")).entries).toMatchObject([
      { attempts: [{ n: 1 }, { n: 2 }, { n: 3 }] },
    ]);
  });

  test("forceTimeout with times lets the later attempts through", async () => {
    const h = await harnessed({ workflows: { FLAKY: flaky(() => "real") } });
    h.forceTimeout("call", { times: 2 });
    h.disableRetryDelays();
    await h.workflows.FLAKY.create({ id: "f1" });
    await h.runUntilIdle();
    expect(await h.status("flaky", "f1")).toMatchObject({ output: "real" });
  });

  test("forceTimeout ends a wait for an event at once, even if the event is there", async () => {
    const h = await harnessed({ workflows: { APPROVAL: approval } });
    h.forceTimeout("wait", { times: 1 });
    for (const id of ["a1", "a2"]) {
      await h.workflows.APPROVAL.create({ id });
      await h.sendEvent("approval", id, { type: "approve", payload: "yes" });
      await h.waitForStep("approval", id, "think", "waiting");
      await h.clock.advance("1 minute");
      await h.runUntilIdle();
    }
    expect(await h.status("approval", "a1")).toMatchObject({ output: "WaitTimeoutError" });
    expect(await h.status("approval", "a2")).toMatchObject({ output: "yes" });
  });

  test("events reach a run by the workflow's name", async () => {
    const h = await harnessed({ workflows: { APPROVAL: approval } });
    h.disableSleeps();
    await h.workflows.APPROVAL.create({ id: "a1" });
    await h.waitForStatus("approval", "a1", "waiting");
    await h.sendEvent("approval", "a1", { type: "approve", payload: "go" });
    const status = await h.waitForStatus("approval", "a1", "complete");
    expect(status.output).toBe("go");
    await expect(h.sendEvent("nobody", "a1", { type: "approve" })).rejects.toMatchObject({
      code: "WORKFLOW_NOT_FOUND",
    });
  });
});

describe("runners", () => {
  test("another runner finishes what a crashed one began, once its lease has run out", async () => {
    const h = await harnessed({ workflows, runner: { leaseMs: 30_000 } });
    h.disableSleeps();
    gate = new Promise(() => {});
    await h.workflows.ORDER.create({ id: "o1", params: { n: 7 } });
    await h.waitForStep("order", "o1", "reserve", "running");
    expect(log).toEqual(["reserve 1"]);

    gate = Promise.resolve();
    await h.crashRunner(h.runner);
    h.addRunner();
    await h.runUntilIdle();
    expect(await h.status("order", "o1")).toEqual({ status: "running" });
    await h.clock.advance("29 seconds");
    await h.runUntilIdle();
    expect(log).toEqual(["reserve 1"]);
    await h.clock.advance("4 seconds");
    await h.runUntilIdle();
    expect(await h.status("order", "o1")).toEqual({ status: "complete", output: "r7 paid" });
    expect(log).toEqual(["reserve 1", "reserve 2", "charge"]);
  });

  test("a crashed runner's body no longer has any effect", async () => {
    const h = await harnessed({ workflows });
    let release = (): void => {};
    gate = new Promise((resolve) => (release = resolve));
    await h.workflows.ORDER.create({ id: "o1", params: { n: 7 } });
    await h.waitForStep("order", "o1", "reserve", "running");
    await h.crashRunner(h.runner);
    release();
    await h.clock.advance("10 seconds");
    const { entries } = await h.history("order", "o1");
    expect(entries).toMatchObject([{ name: "reserve", status: "running" }]);
  });

  test("a body keeps its lease while the clock moves", async () => {
    const h = await harnessed({ workflows, runner: { leaseMs: 30_000 } });
    let release = (): void => {};
    gate = new Promise((resolve) => (release = resolve));
    h.addRunner();
    h.disableSleeps();
    await h.workflows.ORDER.create({ id: "o1", params: { n: 7 } });
    await h.waitForStep("order", "o1", "reserve", "running");
    await h.clock.advance("5 minutes");
    release();
    await h.runUntilIdle();
    expect(log).toEqual(["reserve 1", "charge"]);
  });

  test("nothing can run without a runner", async () => {
    const h = await harnessed({ workflows });
    await h.crashRunner(h.runner);
    await expect(h.runUntilIdle()).rejects.toThrow("no runner is left");
    await expect(h.tick()).rejects.toThrow("no runner is left");
    await expect(h.crashRunner(h.runner)).rejects.toThrow("no such runner");
  });

  test("a tick has the same bounds as in createWorkflows", async () => {
    const h = await harnessed({ workflows });
    await h.workflows.ORDER.create({ id: "o1", params: { n: 1 } });
    await h.workflows.ORDER.create({ id: "o2", params: { n: 2 } });
    expect(await h.tick({ maxInstances: 1 })).toEqual({ processed: 1, nextWakeInMs: 0 });
    expect(await h.tick()).toEqual({ processed: 1, nextWakeInMs: 86_400_000 });
    expect(await h.tick()).toEqual({ processed: 0, nextWakeInMs: 86_400_000 });
  });
});

describe("bounds", () => {
  test("runUntilIdle names the step that hangs, after some real time", async () => {
    const h = await harnessed({ workflows, timeoutMs: 100 });
    gate = new Promise(() => {});
    await h.workflows.ORDER.create({ id: "o1", params: { n: 7 } });
    await expect(h.runUntilIdle()).rejects.toThrow(
      'instance "o1" of workflow "order" runs step "reserve"',
    );
    // The harness is not idle now, either.
    await expect(h.runUntilIdle()).rejects.toThrow('step "reserve"');
  });

  test("runUntilIdle waits for bodies that need real time", async () => {
    const h = await harnessed({ workflows });
    gate = new Promise((resolve) => setTimeout(resolve, 50));
    await h.workflows.ORDER.create({ id: "o1", params: { n: 7 } });
    await h.runUntilIdle();
    expect(await h.status("order", "o1")).toEqual({ status: "waiting" });
  });

  test("runUntilIdle gives up on work that never ends", async () => {
    const h = await harnessed({
      workflows: {
        ENDLESS: defineWorkflow({
          name: "endless",
          run: (_event, step): Promise<unknown> =>
            step.do("again", { retries: { limit: Infinity, delay: "1 second" } }, () => {
              log.push("again");
              throw new Error("no");
            }),
        }),
      },
    });
    h.disableRetryDelays();
    await h.workflows.ENDLESS.create({ id: "e1" });
    await expect(h.runUntilIdle({ maxTicks: 20 })).rejects.toThrow(
      'still busy after 20 ticks: instance "e1" of workflow "endless"',
    );
    expect(log.length).toBeLessThan(30);
  });

  test("a store that does not answer is reported, with the verb", async () => {
    const clock = new VirtualTime();
    const store = sqliteStore(await openMemorySqlite(), { clock });
    let answer = (): void => {};
    const silence = new Promise<void>((resolve) => (answer = resolve));
    const claim: typeof store.claim = (request) => silence.then(() => store.claim(request));
    const h = await harnessed({ workflows, store: { ...store, claim }, clock, timeoutMs: 50 });
    await h.workflows.ORDER.create({ id: "o1", params: { n: 7 } });
    const driven = h.runUntilIdle();
    await expect(driven).rejects.toThrow("the store did not answer claim in time: ");
    answer();
  });

  test("waitForStatus says what the status is instead, without moving the clock", async () => {
    const h = await harnessed({ workflows });
    const before = h.clock.now();
    await h.workflows.ORDER.create({ id: "o1", params: { n: 7 } });
    await expect(h.waitForStatus("order", "o1", "complete")).rejects.toThrow(
      '"complete" was not reached, and nothing is due any more: instance "o1" of workflow "order" is "waiting"; ' +
        'step "cool down" (sleep) is waiting until 2023-11-15T22:13:20.000Z',
    );
    expect(h.clock.now()).toBe(before);
    await expect(h.waitForStatus("order", "nobody", "complete")).rejects.toThrow(
      'there is no instance "nobody"',
    );
  });

  test("waitForStatus shows the error of a run that failed", async () => {
    const h = await harnessed({ workflows });
    h.mockStep("reserve", new NonRetryableError("out of stock"));
    await h.workflows.ORDER.create({ id: "o1", params: { n: 7 } });
    await expect(h.waitForStatus("order", "o1", "complete")).rejects.toThrow(
      'is "errored" (NonRetryableError: out of stock)',
    );
  });

  test("waitForStep returns the step, or says where the run stands", async () => {
    const h = await harnessed({ workflows });
    await h.workflows.ORDER.create({ id: "o1", params: { n: 7 } });
    expect(await h.waitForStep("order", "o1", "reserve")).toMatchObject({
      type: "do",
      status: "completed",
      result: "r7",
    });
    await expect(h.waitForStep("order", "o1", "charge")).rejects.toThrow(
      'step "charge" did not become "completed", and nothing is due any more: ' +
        'instance "o1" of workflow "order" is "waiting"',
    );
  });

  test("history includes all pages", async () => {
    const h = await harnessed({
      limits: { pageSizeMax: 3, pageSizeDefault: 3 },
      workflows: {
        MANY: defineWorkflow({
          name: "many",
          run: async (_event, step) => {
            for (let n = 1; n <= 8; n++) await step.do(`s${n}`, () => n);
          },
        }),
      },
    });
    await h.workflows.MANY.create({ id: "m1" });
    await h.runUntilIdle();
    const names = (await h.history("many", "m1")).entries.map((e) => "name" in e && e.name);
    expect(names).toEqual(["s1", "s2", "s3", "s4", "s5", "s6", "s7", "s8"]);
    const exported = await h.exportHistory("many", "m1");
    expect(exported.steps.map(({ name }) => name)).toEqual(names);
  });
});

describe("the store", () => {
  test("may be made on the harness's clock", async () => {
    const h = await harnessed({
      workflows,
      store: (clock) => sqliteStore(new DatabaseSync(":memory:"), { clock }),
    });
    await h.workflows.ORDER.create({ id: "o1", params: { n: 7 } });
    await h.waitForStatus("order", "o1", "waiting");
  });

  test("may come with its clock", async () => {
    const clock = new VirtualTime(5_000);
    const store = sqliteStore(new DatabaseSync(":memory:"), { clock });
    const h = await harnessed({ workflows, store, clock });
    expect(h.clock.now()).toBe(5_000);
    await h.clock.advance("1 second");
    expect(clock.now()).toBe(6_000);
  });

  test("is refused if it goes by another clock", async () => {
    const store = sqliteStore(new DatabaseSync(":memory:"));
    await expect(createHarness({ workflows, store })).rejects.toThrow("(clock) => store");
    await expect(createHarness({ workflows, store: () => store })).rejects.toThrow(
      "does not go by the harness's clock",
    );
  });

  test("in memory needs a driver, and the error says which", async () => {
    const missing = openMemorySqlite(() => Promise.reject(new Error("no such module")));
    await expect(missing).rejects.toThrow("npm install --save-dev @photostructure/sqlite");
  });

  test("in memory uses the first driver that is there", async () => {
    const opened: string[] = [];
    function Database(file: string): void {
      opened.push(file);
    }
    const modules: Record<string, unknown> = { "better-sqlite3": { default: Database } };
    await openMemorySqlite(async (module) => {
      opened.push(module);
      return modules[module] ?? {};
    });
    expect(opened).toEqual(["node:sqlite", "@photostructure/sqlite", "better-sqlite3", ":memory:"]);
  });
});

test("close cuts off whatever hangs, and can be called at any time", async () => {
  const h = await createHarness({ workflows });
  gate = new Promise(() => {});
  await h.workflows.ORDER.create({ id: "o1", params: { n: 7 } });
  await h.waitForStep("order", "o1", "reserve", "running");
  const startedAt = Date.now();
  await h.close();
  expect(Date.now() - startedAt).toBeLessThan(1_000);
  await expect(h.status("order", "o1")).rejects.toThrow("closed");
});

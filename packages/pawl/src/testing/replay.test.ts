import { afterEach, describe, expect, test, vi } from "vitest";
import {
  defineWorkflow,
  WorkflowEntrypoint,
  type RepeatedStepNames,
  type WorkflowEvent,
  type WorkflowStep,
} from "../index.js";
import type { SqliteHandle } from "../sqlite.js";
import {
  createHarness,
  DivergenceError,
  replay,
  type ExportedHistory,
  type Harness,
  type ReplayOptions,
} from "./index.js";

type Code = (step: WorkflowStep, event: WorkflowEvent) => Promise<unknown>;

const workflow = (code: Code) =>
  defineWorkflow({
    name: "order",
    run: (event: WorkflowEvent, step): Promise<unknown> => code(step, event),
  });

const open: { close(): Promise<void> }[] = [];
afterEach(async () => {
  for (const h of open.splice(0)) await h.close();
});

type Registered = { readonly ORDER: ReturnType<typeof workflow> };
type Recording = {
  readonly params?: unknown;
  readonly names?: RepeatedStepNames;
  readonly meanwhile?: (h: Harness<Registered, SqliteHandle>) => Promise<void>;
};

/** Runs the code, and returns its history as if it had been kept in a file. */
async function record(code: Code, { params, names, meanwhile }: Recording = {}) {
  const h = await createHarness({
    workflows: { ORDER: workflow(code) },
    repeatedStepNames: names,
  });
  open.push(h);
  await h.workflows.ORDER.create({ id: "o1", params });
  await h.runUntilIdle();
  await meanwhile?.(h);
  return JSON.parse(JSON.stringify(await h.exportHistory("order", "o1"))) as ExportedHistory;
}

async function divergence(history: ExportedHistory, code: Code, options: ReplayOptions = {}) {
  const error: unknown = await replay(history, workflow(code), { patienceMs: 30, ...options }).then(
    () => "it passed",
    (thrown: unknown) => thrown,
  );
  expect(error).toBeInstanceOf(DivergenceError);
  return error as DivergenceError;
}

const passes = (history: ExportedHistory, code: Code, options: ReplayOptions = {}) =>
  replay(history, workflow(code), { patienceMs: 30, ...options });

const abc: Code = async (step) => {
  const a = await step.do("a", () => 1);
  const b = await step.do("b", () => 2);
  const c = await step.do("c", () => 3);
  return a + b + c;
};

describe("replay passes", () => {
  test("for the code that was recorded, without calling a body", async () => {
    const body = vi.fn(() => 7);
    const code: Code = async (step, { payload }) => {
      const a = await step.do("a", body);
      await step.sleep("nap", 0);
      return [a, payload];
    };
    const history = await record(code, { params: new Map([[1, 2n]]) });
    expect(body).toHaveBeenCalledTimes(1);
    expect(await passes(history, code)).toEqual({
      status: "complete",
      output: [7, new Map([[1, 2n]])],
      added: [],
    });
    expect(body).toHaveBeenCalledTimes(1);
  });

  test("for a class, or its entry in a registry", async () => {
    class Order extends WorkflowEntrypoint<{ readonly rate: number }> {
      async run({ instanceId }: WorkflowEvent, step: WorkflowStep): Promise<unknown> {
        return `${instanceId} ${(await step.do("a", () => 2)) * this.env.rate}`;
      }
    }
    const history = await record((step) => step.do("a", () => 2));
    const env = { rate: 10 };
    expect((await replay(history, Order, { env })).output).toBe("o1 20");
    const entry = { name: "order", workflow: Order };
    expect((await replay(history, entry, { env })).output).toBe("o1 20");
  });

  test("for code with more steps after the recorded ones", async () => {
    const history = await record(abc);
    const result = await passes(history, async (step) => {
      await abc(step, {} as never);
      await step.do("d", () => 4);
    });
    expect(result).toEqual({
      status: "open",
      added: [{ name: "d", count: 1, type: "do", position: 4 }],
    });
  });

  test("for a run that is still waiting, which stays open", async () => {
    const code: Code = async (step) => {
      await step.do("a", () => 1);
      await step.sleep("nap", "1 hour");
      throw new Error("not in a replay");
    };
    const history = await record(code, {
      meanwhile: async (h) => {
        await h.clock.advance("2 hours");
      },
    });
    expect(history.status).toBe("waiting");
    expect(await passes(history, code)).toEqual({ status: "open", added: [] });
  });

  test("with events and errors as they were recorded, whichever won", async () => {
    const code: Code = async (step) => {
      const failed = await step
        .do("no", { retries: { limit: 0, delay: 0 } }, () => {
          throw new TypeError("no");
        })
        .catch((error: Error) => `${error.name} ${error.message}`);
      const winner = await Promise.race([
        step.sleep("slow", "1 hour").then(() => "slow"),
        step.waitForEvent<string>("go", { type: "go" }).then(({ payload }) => payload),
      ]);
      return [failed, winner];
    };
    const history = await record(code, {
      meanwhile: async (h) => {
        await h.sendEvent("order", "o1", { type: "go", payload: "event" });
        await h.runUntilIdle();
      },
    });
    const { output } = await passes(history, code);
    expect(output).toEqual(["TypeError no", "event"]);
  });

  test("for parallel steps that are called in another order", async () => {
    const history = await record((step) => {
      return Promise.all([step.do("a", () => 1), step.do("b", () => 2)]);
    });
    const { output } = await passes(history, (step) => {
      return Promise.all([step.do("b", () => 0), step.do("a", () => 0)]);
    });
    expect(output).toEqual([2, 1]);
  });

  test("for a step that was in flight and has no row yet", async () => {
    const code: Code = (step) =>
      Promise.all([step.do("a", () => 1), step.do("b", () => new Promise<number>(() => {}))]);
    const h = await createHarness({ workflows: { ORDER: workflow(code) } });
    open.push(h);
    await h.workflows.ORDER.create({ id: "o1" });
    await h.waitForStep("order", "o1", "a");
    const history = await h.exportHistory("order", "o1");
    expect(history.steps.map(({ name }) => name)).toEqual(["a"]);
    expect(await passes(history, code)).toMatchObject({ status: "open", added: [{ name: "b" }] });
  });

  test("for code that awaits other things between its steps", async () => {
    const history = await record(abc);
    const { output } = await passes(
      history,
      async (step) => {
        const a = await step.do("a", () => 0);
        await new Promise((resolve) => setTimeout(resolve, 20));
        const b = await step.do("b", () => 0);
        await new Promise((resolve) => setTimeout(resolve, 20));
        return a + b + (await step.do("c", () => 0));
      },
      { patienceMs: 2_000 },
    );
    expect(output).toBe(6);
  });

  test("with counted step names, because the history says so", async () => {
    const code: Code = async (step) => {
      const results: number[] = [];
      for (let n = 0; n < 3; n++) results.push(await step.do("again", () => n));
      return results;
    };
    const history = await record(code, { names: "counted" });
    expect((await passes(history, code)).output).toEqual([0, 1, 2]);
    const { message } = await divergence(history, async (step) => {
      await step.do("again", () => 0);
      await step.do("again", () => 0);
    });
    expect(message).toBe(
      'step 3 of 3 is recorded as do "again" (call 3), and the code returns without calling it',
    );
  });

  test("for an earlier run of an instance", async () => {
    const history = await record(abc);
    let first: ExportedHistory | undefined;
    await record(abc, {
      meanwhile: async (h) => {
        await (await h.workflows.ORDER.get("o1")).restart();
        h.mockStep("a", 100);
        await h.runUntilIdle();
        first = await h.exportHistory("order", "o1", { runNumber: 1 });
        const second = await h.exportHistory("order", "o1");
        expect((await passes(second, abc)).output).toBe(105);
      },
    });
    expect(first?.runNumber).toBe(1);
    expect((await passes(first as ExportedHistory, abc)).output).toBe(6);
    expect(history.iid).not.toBe(first?.iid);
  });

  test("with the same ids for children that were created outside of a step", async () => {
    const code: Code = async (step) => step.do("a", () => 1);
    const history = await record(code);
    class Parent extends WorkflowEntrypoint {
      async run(_event: WorkflowEvent, step: WorkflowStep): Promise<unknown> {
        const child = await this.workflows["ORDER"]?.create();
        await step.do("a", () => 1);
        return child?.id;
      }
    }
    const ids = [await replay(history, Parent), await replay(history, Parent)];
    expect(ids[0]?.output).toContain(history.iid);
    expect(ids[0]?.output).toBe(ids[1]?.output);
  });
});

describe("replay reports the first divergence", () => {
  test("a step of a type that only newer code knows", async () => {
    const { steps, ...history } = await record(abc);
    const newer = steps.map((step) => (step.name === "c" ? { ...step, type: "spawn" } : step));
    const error = await divergence({ ...history, steps: newer }, abc);
    expect(error.message).toBe(
      'step 3 of 3 is recorded as spawn "c", a type that this version of Pawl does not know',
    );
    expect(error.recorded).toMatchObject({ name: "c", position: 3 });
  });

  test("a step that is missing at the end", async () => {
    const error = await divergence(await record(abc), async (step) => {
      await step.do("a", () => 0);
      await step.do("b", () => 0);
    });
    expect(error.message).toBe(
      'step 3 of 3 is recorded as do "c", and the code returns without calling it',
    );
    expect(error.recorded).toEqual({ name: "c", count: 1, type: "do", position: 3 });
    expect(error.requested).toBeNull();
  });

  test("a step that is missing in between", async () => {
    const error = await divergence(await record(abc), async (step) => {
      await step.do("a", () => 0);
      await step.do("c", () => 0);
    });
    expect(error.message).toBe(
      'step 2 of 3 is recorded as do "b", and the code calls do "c" instead, which is step 3',
    );
    expect(error.requested).toEqual({ name: "c", count: 1, type: "do", position: 2 });
  });

  test("a step that is called by another name", async () => {
    const error = await divergence(await record(abc), async (step) => {
      await step.do("a", () => 0);
      await step.do("B", () => 0);
      await step.do("c", () => 0);
    });
    expect(error.message).toBe(
      'step 2 of 3 is recorded as do "b", and the code calls do "B" instead, which is not recorded',
    );
  });

  test("steps in another order", async () => {
    const error = await divergence(await record(abc), async (step) => {
      await step.do("a", () => 0);
      await step.do("c", () => 0);
      await step.do("b", () => 0);
    });
    expect(error.message).toBe(
      'step 2 of 3 is recorded as do "b", and the code calls do "c" instead, which is step 3',
    );
  });

  test("a new step before recorded ones", async () => {
    const error = await divergence(await record(abc), async (step) => {
      await step.do("a", () => 0);
      await step.sleep("new", "1 hour");
      await step.do("b", () => 0);
      await step.do("c", () => 0);
    });
    expect(error.message).toBe(
      'step 2 of 3 is recorded as do "b", and the code calls sleep "new" instead, which is not recorded',
    );
    expect(error.requested).toEqual({ name: "new", count: 1, type: "sleep", position: 2 });
  });

  test("a step of another type", async () => {
    const error = await divergence(await record(abc), async (step) => {
      await step.do("a", () => 0);
      await step.sleep("b", "1 hour");
      await step.do("c", () => 0);
    });
    expect(error.message).toBe('step 2 of 3 is recorded as do "b", and the code calls it as sleep');
    expect(error).toMatchObject({ recorded: { type: "do" }, requested: { type: "sleep" } });
  });

  test("a wait that the run is in and that the code does not call", async () => {
    const history = await record(async (step) => {
      await step.do("a", () => 1);
      await step.sleep("nap", "1 hour");
    });
    const error = await divergence(history, async (step) => {
      await step.do("a", () => 1);
      await step.sleep("long nap", "2 hours");
    });
    expect(error.message).toBe(
      'step 2 of 2 is recorded as sleep "nap", and the code calls sleep "long nap" instead, which is not recorded',
    );
  });

  test("code that calls steps in sequence that were called in parallel", async () => {
    const history = await record((step) => {
      return Promise.all([step.do("a", () => 1), step.do("b", () => 2)]);
    });
    const error = await divergence(history, async (step) => {
      await step.do("a", () => 0);
      await step.do("b", () => 0);
    });
    expect(error.message).toBe('step 2 of 2 is recorded as do "b", and the code does not call it');
  });

  test("code that throws before it comes to a step", async () => {
    const failure = new TypeError("no such thing");
    const error = await divergence(await record(abc), async (step) => {
      await step.do("a", () => 0);
      throw failure;
    });
    expect(error.message).toBe(
      'step 2 of 3 is recorded as do "b", and the code throws without calling it: TypeError: no such thing',
    );
    expect(error.cause).toBe(failure);
  });

  test("code that throws where the run was complete", async () => {
    const error = await divergence(await record(abc), async (step) => {
      await abc(step, {} as never);
      throw new Error("late");
    });
    expect(error.message).toBe("the recorded run is complete, and the code throws Error: late");
  });

  test("code that hangs before it comes to a step, or where the run ended", async () => {
    const history = await record(abc);
    const hangs = (): Promise<never> => new Promise(() => {});
    const before = await divergence(history, async (step) => {
      await step.do("a", () => 0);
      await hangs();
    });
    expect(before.message).toBe('step 2 of 3 is recorded as do "b", and the code does not call it');
    const after = await divergence(history, async (step) => {
      await abc(step, {} as never);
      await hangs();
    });
    expect(after.message).toBe(
      "the recorded run ended here (complete), and the code awaits something that is not a step",
    );
  });
});

test("replay refuses a value that is not a history", async () => {
  await expect(replay({} as ExportedHistory, workflow(abc))).rejects.toThrow("exportHistory()");
});

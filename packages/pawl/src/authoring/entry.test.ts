import { type } from "arktype";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { ValidationError } from "../model/errors.js";
import { defaultLimits } from "../model/limits.js";
import { defineWorkflow } from "./define-workflow.js";
import { WorkflowEntrypoint, type WorkflowEvent } from "./entrypoint.js";
import { entriesOf, type StartedRun, type WorkflowEntry } from "./entry.js";
import type { Registry } from "./registry.js";
import type { WorkflowStep } from "./step.js";

const event: WorkflowEvent = {
  payload: {},
  timestamp: new Date(0),
  instanceId: "a",
  workflowName: "order",
  runNumber: 1,
};
const run: StartedRun = {
  event,
  step: {} as WorkflowStep,
  env: { region: "eu" },
  workflows: { CHILD: "the binding" },
};

class Order extends WorkflowEntrypoint<{ region: string }, unknown, { CHILD: string }> {
  // Field initialisers run after the base constructor has set both.
  seen = [this.env.region, this.workflows.CHILD];

  override async run(given: WorkflowEvent, step: WorkflowStep) {
    return { seen: this.seen, self: this, given, step };
  }
}

function only(registry: unknown): WorkflowEntry {
  const [entry] = entriesOf(registry as Registry, defaultLimits).values();
  if (entry === undefined) throw new Error("no entry");
  return entry;
}

describe("a class", () => {
  const entry = only({ ORDER: { name: "order", workflow: Order } });

  test("has its name, its binding and the default queue", () => {
    expect(entry).toMatchObject({ name: "order", binding: "ORDER", queue: "default" });
  });

  test("knows env and workflows before its fields are initialised", async () => {
    expect(await entry.start(run)).toMatchObject({
      seen: ["eu", "the binding"],
      given: run.event,
      step: run.step,
    });
  });

  test("is made anew for every start", async () => {
    const [first, second] = [await entry.start(run), await entry.start(run)];
    expect((first as { self: Order }).self).not.toBe((second as { self: Order }).self);
  });

  test("rejects if its constructor throws", async () => {
    class Broken extends Order {
      constructor(ctx: object, env: { region: string }) {
        super(ctx, env);
        throw new Error("no luck");
      }
    }
    const started = only({ B: { name: "b", workflow: Broken } }).start(run);
    await expect(started).rejects.toThrow("no luck");
  });

  test("is recognised even from a second copy of this package", async () => {
    class Foreign {
      async run() {
        return 1;
      }
    }
    expect(await only({ F: { name: "f", workflow: Foreign } }).start(run)).toBe(1);
  });
});

describe("a definition", () => {
  test("is called with event, step and tools", async () => {
    const entry = only({
      PING: defineWorkflow({
        name: "ping",
        run: (given, step, { env, workflows }) => ({ given, step, env, workflows }),
      }),
    });
    expect(entry).toMatchObject({ name: "ping", binding: "PING" });
    const { step, env, workflows } = run;
    expect(await entry.start(run)).toEqual({ given: event, step, env, workflows });
  });

  test("rejects if it throws synchronously", async () => {
    const entry = only({
      PING: defineWorkflow({
        name: "ping",
        run: () => {
          throw new Error("at once");
        },
      }),
    });
    await expect(entry.start(run)).rejects.toThrow("at once");
  });
});

test("an entry keeps its schemas", () => {
  const schemas = { params: z.string(), output: type("string"), events: { go: z.number() } };
  expect(only({ A: { name: "a", workflow: Order, ...schemas } })).toMatchObject(schemas);
  expect(only({ A: { name: "a", workflow: Order } })).not.toHaveProperty("params");
});

test("entries are mapped by name", () => {
  const entries = entriesOf(
    { A: { name: "first", workflow: Order }, B: { name: "second", workflow: Order } },
    defaultLimits,
  );
  expect([...entries.keys()]).toEqual(["first", "second"]);
});

abstract class WithoutRun extends WorkflowEntrypoint {}

const named = (name: unknown) => ({ A: { name, workflow: Order } });

test.each<[string, unknown, string]>([
  ["nothing", undefined, "workflows must be an object, got undefined"],
  ["an empty registry", {}, "workflows must have at least one workflow"],
  [
    "a class alone",
    { A: Order },
    "workflows.A must be { name, workflow } or made by defineWorkflow(), got a function: write { name, workflow: Order }",
  ],
  [
    "null",
    { A: null },
    "workflows.A must be { name, workflow } or made by defineWorkflow(), got null",
  ],
  ["no name", named(undefined), "workflows.A: workflow name must be a string, got undefined"],
  ["a name that no URL can carry", named(".."), 'workflows.A: workflow name must not be ".."'],
  [
    "a long name",
    named("x".repeat(65)),
    "workflows.A: workflow name must have at most 64 characters",
  ],
  ["no code", { A: { name: "a" } }, "workflows.A has neither a workflow class nor a run function"],
  [
    "not a class",
    { A: { name: "a", workflow: "Order" } },
    'workflows.A.workflow must be a class that extends WorkflowEntrypoint, got "Order"',
  ],
  [
    "an arrow function",
    { A: { name: "a", workflow: () => {} } },
    "workflows.A.workflow must be a class",
  ],
  [
    "a class without run",
    { A: { name: "a", workflow: WithoutRun } },
    "workflows.A.workflow must be a class",
  ],
  ["another class", { A: { name: "a", workflow: Date } }, "workflows.A.workflow must be a class"],
  [
    "the same name twice",
    { ...named("a"), B: { name: "a", workflow: Order } },
    'workflows.B and workflows.A have the same name, "a"',
  ],
  [
    "a params schema that is none",
    { A: { name: "a", workflow: Order, params: {} } },
    "workflows.A.params must be a Standard Schema",
  ],
  [
    "an output schema that is none",
    { A: { name: "a", workflow: Order, output: "string" } },
    "workflows.A.output must be a Standard Schema",
  ],
  [
    "events that are no object",
    { A: { name: "a", workflow: Order, events: "go" } },
    "workflows.A.events must be schemas by event type",
  ],
  [
    "an event schema that is none",
    { A: { name: "a", workflow: Order, events: { go: 1 } } },
    "workflows.A.events.go must be a Standard Schema",
  ],
  [
    "a misspelt option",
    { A: { name: "a", workflow: Order, event: {} } },
    'workflows.A: unknown option "event"; the options are name, workflow, params, output, events',
  ],
  [
    "a misspelt option of a function",
    { A: { name: "a", run: () => 1, schema: {} } },
    'workflows.A: unknown option "schema"; the options are name, params, output, events, run',
  ],
  [
    "a bad event type",
    { A: { name: "a", workflow: Order, events: { "a b": z.string() } } },
    "workflows.A.events: event type may only have letters",
  ],
])("refuses %s", (_what, registry, message) => {
  const attempt = () => entriesOf(registry as Registry, defaultLimits);
  expect(attempt).toThrow(ValidationError);
  expect(attempt).toThrow(message);
});

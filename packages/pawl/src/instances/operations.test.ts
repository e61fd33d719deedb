import { DatabaseSync } from "@photostructure/sqlite";
import { createWorkflows, defineWorkflow } from "pawl";
import { createClient } from "pawl/client";
import { operationEntries, type InstanceMethods, type OperationName } from "pawl/operations";
import { sqliteStore } from "pawl/sqlite";
import { beforeAll, describe, expect, test } from "vitest";
import { string } from "../model/schema.js";
import { performNamed } from "./perform.js";
import { optionsForm } from "./wire-forms.js";

const names = operationEntries.map(([name]) => name);
const controls = operationEntries.filter(([, { group }]) => group === "manage");

function engine() {
  return createWorkflows({
    workflows: { ORDER: defineWorkflow({ name: "order", run: () => 1 }) },
    store: sqliteStore(new DatabaseSync(":memory:")),
  });
}

describe("every operation of the table", () => {
  const pawl = engine();
  const client = createClient<typeof pawl>({
    baseUrl: "http://pawl.test/api",
    fetch: (url, init) => pawl.fetch(new Request(url, init)),
  });
  beforeAll(() => pawl.migrate());

  /** The answer of the operation, and the status of the instance afterwards. */
  async function done(instance: InstanceMethods & { readonly id: string }, name: OperationName) {
    const answer: unknown = await instance[name]();
    const { status } = await instance.status();
    const { runNumber } = await pawl.history("order", instance.id);
    return { answer, status, runNumber };
  }

  test.each(names)("%s does the same in process and over HTTP", async (name) => {
    const here = await pawl.workflows.ORDER.create();
    const there = await client.workflows.ORDER.create();
    expect(await done(there, name)).toEqual(await done(here, name));
  });

  test.each(names)("%s is a method of its own name, on the prototype", async (name) => {
    const instance = await pawl.workflows.ORDER.create();
    expect(instance[name].name).toBe(name);
    expect(Object.keys(instance)).toEqual(["id"]);
  });

  test.each(controls)(
    "%s asks for an operation id if and only if it says `once`",
    async (...of) => {
      const [name, { once = false }] = of;
      const asked: unknown[] = [];
      const store = {
        control: async (_: unknown, request: object) => {
          asked.push("operationId" in request ? request.operationId : "none");
          return { kind: "ok", status: "queued", owner: null };
        },
      };
      await performNamed(
        name,
        {
          context: { store, codec: null } as never,
          target: { workflow: "order", id: "a" },
          newOperationId: () => "an operation",
        },
        undefined,
      );
      expect(asked).toEqual([once ? "an operation" : "none"]);
    },
  );
});

test("options are described field by field, and travel as they are", () => {
  const { schema, toWire, fromWire } = optionsForm<{ readonly reason?: string | undefined }>(
    "PauseOptions",
    { reason: string({ description: "Why." }) },
  );
  expect(schema.name).toBe("PauseOptions");
  expect(schema.json.properties).toEqual({ reason: { type: "string", description: "Why." } });
  expect(fromWire(toWire({ reason: "a reason" }, "a"))).toEqual({ reason: "a reason" });
});

import { DatabaseSync } from "@photostructure/sqlite";
import { createWorkflows, defineWorkflow, type Logger } from "pawl";
import { operationEntries, type InstanceMethods, type OperationName } from "pawl/operations";
import { sqliteStore } from "pawl/sqlite";
import { beforeAll, describe, expect, test } from "vitest";
import { workflowsBinding } from "./binding.js";
import { answerCall, type RpcCall } from "./calls.js";
import type { WorkflowsNamespace } from "./namespace.js";

const workflows = { ORDER: defineWorkflow({ name: "order", run: () => 1 }) };
const silent: Logger = { debug() {}, info() {}, warn() {}, error() {} };

const pawl = createWorkflows({ workflows, store: sqliteStore(new DatabaseSync(":memory:")) });

/** A namespace whose one object is the engine above. Calls are cloned, as they are between workers. */
const sent: RpcCall[] = [];
const namespace = {
  idFromName: (name: string) => name,
  get: () => ({
    call: (call: RpcCall) => {
      sent.push(structuredClone(call));
      return answerCall(pawl.workflows, structuredClone(call), silent);
    },
  }),
} as unknown as WorkflowsNamespace;

describe("every operation of an instance", () => {
  const remote = workflowsBinding<typeof workflows>(namespace);
  beforeAll(() => pawl.migrate());

  async function done(instance: InstanceMethods & { readonly id: string }, name: OperationName) {
    const answer: unknown = await instance[name]();
    const { status } = await instance.status();
    const { runNumber } = await pawl.history("order", instance.id);
    return { answer, status, runNumber };
  }

  test.each(operationEntries)("%s does the same by a call as in process", async (name) => {
    const here = await pawl.workflows.ORDER.create();
    const there = await remote.ORDER.create();
    expect(await done(there, name)).toEqual(await done(here, name));
  });

  test.each(operationEntries)("%s is a call of that name, as in earlier versions", async (name) => {
    const { id } = await pawl.workflows.ORDER.create();
    const instance = await remote.ORDER.get(id);
    sent.length = 0;
    await instance[name]();
    expect(sent).toEqual([{ binding: "ORDER", id, method: name }]);
  });

  test("refuses what is no operation", async () => {
    const { id } = await pawl.workflows.ORDER.create();
    for (const method of ["toString", "constructor", "unknown"]) {
      const call = { binding: "ORDER", id, method } as unknown as RpcCall;
      expect(JSON.stringify(await answerCall(pawl.workflows, call, silent))).toContain(
        "there is no such method",
      );
    }
  });
});

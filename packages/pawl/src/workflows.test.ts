import { expect, test } from "vitest";
import { defineWorkflow } from "./authoring/define-workflow.js";
import { createClient } from "./client/index.js";
import { sqliteStore } from "./sqlite.js";
import { createHarness } from "./testing/index.js";
import { openMemorySqlite } from "./testing/memory-sqlite.js";
import { createWorkflows } from "./workflows.js";

// As from JavaScript: the compiler would refuse all of it.
const misspelt = { workflow: 1, onDivergance: "hold" } as object;

test("options that there are not are refused, with those that there are", async () => {
  const workflows = { A: defineWorkflow({ name: "a", run: () => 1 }) };
  const store = sqliteStore(await openMemorySqlite());
  expect(() => createWorkflows({ workflows, store, ...misspelt })).toThrow(
    'createWorkflows: there is no "workflow"; there are workflows, env, limits, stepDefaults, ' +
      "repeatedStepNames, onDivergence, codec, logger, hooks, basePath, authorize, tick, store",
  );
  expect(() => createWorkflows(undefined as never)).toThrow("createWorkflows must be an object");
  const harness = createHarness({ workflows, ...({ clocks: 1 } as object) });
  await expect(harness).rejects.toThrow('createHarness: there is no "clocks"');
  const definition = { name: "a", run: () => 1, retries: 3 } as const;
  expect(() => defineWorkflow(definition)).toThrow(
    'defineWorkflow: there is no "retries"; there are name, params, output, events, run',
  );
  const client = { baseUrl: "http://127.0.0.1", header: {} };
  expect(() => createClient(client)).toThrow(
    'createClient: there is no "header"; there are baseUrl, basePath, headers, fetch',
  );
});

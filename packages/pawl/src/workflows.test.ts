import { describe, expect, test } from "vitest";
import { defineWorkflow } from "./authoring/define-workflow.js";
import { createClient, type ClientFetch } from "./client/index.js";
import { sqliteStore, type SqliteHandle } from "./sqlite.js";
import type { Store } from "./store/store.js";
import { createHarness } from "./testing/index.js";
import { openMemorySqlite } from "./testing/memory-sqlite.js";
import { createWorkflows } from "./workflows.js";

// This is as from JavaScript, because the compiler would refuse all of it.
const misspelt = { workflow: 1, onDivergance: "hold" } as object;

test("unknown options are refused, with a list of the known ones", async () => {
  const workflows = { A: defineWorkflow({ name: "a", run: () => 1 }) };
  const store = sqliteStore(await openMemorySqlite());
  expect(() => createWorkflows({ workflows, store, ...misspelt })).toThrow(
    'createWorkflows: unknown option "workflow"; the options are workflows, env, limits, stepDefaults, ' +
      "repeatedStepNames, onDivergence, codec, logger, hooks, basePath, authorize, tick, store",
  );
  expect(() => createWorkflows(undefined as never)).toThrow("createWorkflows must be an object");
  const harness = createHarness({ workflows, ...({ clocks: 1 } as object) });
  await expect(harness).rejects.toThrow('createHarness: unknown option "clocks"');
  const definition = { name: "a", run: () => 1, retries: 3 } as const;
  expect(() => defineWorkflow(definition)).toThrow(
    'defineWorkflow: unknown option "retries"; the options are name, params, output, events, run',
  );
  const client = { baseUrl: "http://127.0.0.1", header: {} };
  expect(() => createClient(client)).toThrow(
    'createClient: unknown option "header"; the options are baseUrl, basePath, headers, fetch',
  );
});

test("a store may be an instance of a class, whose methods are not own properties", async () => {
  const inner = sqliteStore(await openMemorySqlite());
  // As `new StoreOfAClass()` would be: all members are its prototype's.
  const store = Object.create(inner) as Store<SqliteHandle>;
  expect(Object.keys(store)).toEqual([]);
  const workflows = { A: defineWorkflow({ name: "a", run: (_, step) => step.do("one", () => 1) }) };
  const pawl = createWorkflows({ workflows, store });
  await pawl.migrate();
  const instance = await pawl.workflows.A.create();
  await pawl.tick();
  expect(await instance.result()).toBe(1);
  await pawl.close();
});

describe("unknown keys are refused alike, in process and by the client", () => {
  // This, too, is as from JavaScript.
  type Callable = (...given: unknown[]) => Promise<unknown>;
  type Binding = Record<"create" | "createBatch" | "get", Callable>;
  type Caller = Record<"list" | "history" | "tick", Callable> & {
    readonly workflows: Record<"A", Binding>;
  };
  type Instance = Record<"sendEvent" | "result", Callable>;
  const instance = (caller: Caller) => caller.workflows.A.get("there") as Promise<Instance>;

  const refused: readonly [string, (caller: Caller) => Promise<unknown>, string][] = [
    [
      "create",
      ({ workflows }) => workflows.A.create({ id: "a", retention: {} }),
      'what create takes has no "retention"; it may have id, params',
    ],
    [
      "createBatch",
      ({ workflows }) => workflows.A.createBatch([{ id: "a" }, { id: "b", param: 1 }]),
      'instances[1] has no "param"; it may have id, params',
    ],
    [
      "createBatch of none",
      ({ workflows }) => workflows.A.createBatch({ id: "a" }),
      "a batch must be an array, got",
    ],
    [
      "options of create",
      ({ workflows }) => workflows.A.create({ id: "a" }, { transaction: {} }),
      'has no "transaction"; it may have',
    ],
    ["list", ({ list }) => list("a", { state: "running" }), 'has no "state"'],
    ["history", ({ history }) => history("a", "there", { run: 1 }), 'has no "run"'],
    [
      "sendEvent",
      async (caller) => (await instance(caller)).sendEvent({ type: "go", data: 1 }),
      'an event has no "data"; it may have type, payload, id',
    ],
    [
      "result",
      async (caller) => (await instance(caller)).result({ timeoutMs: 1 }),
      'options of result has no "timeoutMs"; it may have timeout, signal',
    ],
    ["tick", ({ tick }) => tick({ maxInstance: 1 }), 'has no "maxInstance"'],
    ["the numbers of tick", ({ tick }) => tick({ maxSteps: 0 }), "maxSteps must be a whole number"],
  ];

  test.each(refused)("%s", async (_what, call, message) => {
    const handle = await openMemorySqlite();
    const pawl = createWorkflows({
      workflows: { A: defineWorkflow({ name: "a", run: () => 1 }) },
      store: sqliteStore(handle),
      tick: { enabled: true, insecure: true },
    });
    await pawl.migrate();
    await pawl.workflows.A.create({ id: "there" });
    const send: ClientFetch = (url, init) => pawl.fetch(new Request(url, init));
    const client = createClient<typeof pawl>({ baseUrl: "http://pawl", fetch: send });
    for (const caller of [pawl, client]) {
      await expect(call(caller as unknown as Caller)).rejects.toMatchObject({
        name: "WorkflowError",
        code: "INVALID_REQUEST",
        message: expect.stringContaining(message),
      });
    }
    expect((await pawl.list("a")).instances.map(({ id }) => id)).toEqual(["there"]);
    await pawl.close();
    handle.close();
  });
});

test("a client refuses a transaction, which it could not keep", async () => {
  const client = createClient({ baseUrl: "http://127.0.0.1:1" });
  await expect(client.workflows["A"]!.create({}, { tx: {} as never })).rejects.toMatchObject({
    code: "INVALID_REQUEST",
    message: 'options of a request has no "tx"; it may have signal',
  });
});

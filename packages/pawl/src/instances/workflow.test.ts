import { beforeEach, describe, expect, test } from "vitest";
import { z } from "zod";
import { instancesWorld, type InstancesWorld } from "../../test/support/instances.js";
import type { InstanceTypes, Workflow } from "../authoring/bindings.js";
import { defineWorkflow } from "../authoring/define-workflow.js";
import type { SqliteHandle } from "../sqlite.js";

const registry = {
  ORDER: defineWorkflow({ name: "order", run: () => 1 }),
  CHECKED: defineWorkflow({
    name: "checked",
    params: z.object({
      at: z.string().transform((text) => new Date(text)),
      n: z.number().default(1),
    }),
    run: () => 1,
  }),
};

type Binding = Workflow<unknown, InstanceTypes, SqliteHandle>;
let world: InstancesWorld;
let order: Binding;
let checked: Binding;

beforeEach(async () => {
  world = await instancesWorld(registry, { batchMaxInstances: 5, paramsMaxBytes: 100 });
  order = world.workflows["ORDER"] as Binding;
  checked = world.workflows["CHECKED"] as Binding;
});

const stored = async (id: string, workflow = "order") => world.store.get({ workflow, id });

describe("create", () => {
  test("stores a queued instance and sends a wake", async () => {
    const instance = await order.create({ id: "a", params: { n: 1n } });
    expect(instance.id).toBe("a");
    expect(await instance.status()).toEqual({ status: "queued" });
    expect(await stored("a")).toMatchObject({
      params: world.context.codec.encode({ n: 1n }, { what: "", maxBytes: 100 }),
      origin: null,
    });
    expect(world.hints.wakes).toBe(1);
  });

  test("generates ids that pass its own rules", async () => {
    const made = await Promise.all(Array.from({ length: 20 }, () => order.create()));
    expect(new Set(made.map(({ id }) => id)).size).toBe(20);
    for (const { id } of made) expect((await order.get(id)).id).toBe(id);
    expect((await stored(made[0]?.id ?? ""))?.params).toBeNull();
  });

  test("stores what the schema makes of the params", async () => {
    await checked.create({ id: "a", params: { at: "2026-01-01T00:00:00Z" } });
    const { params } = (await stored("a", "checked")) ?? {};
    expect(world.context.codec.decode(params ?? "")).toEqual({
      at: new Date("2026-01-01T00:00:00Z"),
      n: 1,
    });
  });

  test("refuses a taken id, and only within its workflow", async () => {
    await order.create({ id: "a" });
    await expect(order.create({ id: "a" })).rejects.toMatchObject({
      code: "INSTANCE_ID_ALREADY_EXISTS",
      status: 409,
      message: 'workflow "order" has an instance "a" already',
    });
    await checked.create({ id: "a", params: { at: "2026-01-01" } });
    expect(world.rows()).toBe(2);
  });

  test.each<[string, unknown, string]>([
    ["a bad id", { id: "-a" }, "INVALID_INSTANCE_ID"],
    ["an id that is null", { id: null }, "INVALID_INSTANCE_ID"],
    ["a number as options", 1, "INVALID_REQUEST"],
    ["null as options", null, "INVALID_REQUEST"],
    ["params that cannot be stored", { params: () => 1 }, "INVALID_PARAMS"],
    ["params too large", { params: "x".repeat(200) }, "PAYLOAD_TOO_LARGE"],
  ])("refuses %s without a row", async (_what, options, code) => {
    await expect(order.create(options as object)).rejects.toMatchObject({
      name: "WorkflowError",
      code,
    });
    expect(world.rows()).toBe(0);
    expect(world.hints.wakes).toBe(0);
  });

  test("refuses params that the schema refuses, and says where", async () => {
    await expect(checked.create({ params: { at: 1 } })).rejects.toMatchObject({
      code: "INVALID_PARAMS",
      message: expect.stringMatching(/^params: at: /),
    });
    await expect(checked.create()).rejects.toMatchObject({ code: "INVALID_PARAMS" });
    expect(world.rows()).toBe(0);
  });

  test("lives and dies with the caller's transaction", async () => {
    world.hints.runner = "runner";
    world.handle.exec("BEGIN");
    await order.create({ id: "a" }, { tx: world.handle });
    await order.createBatch([{ id: "b" }], { tx: world.handle });
    world.handle.exec("ROLLBACK");
    expect(world.rows()).toBe(0);
    expect(world.hints).toMatchObject({ wakes: 0, reserved: 0, started: [] });
  });
});

describe("createBatch", () => {
  test("creates each id once, and leaves out ids that exist", async () => {
    await order.create({ id: "b" });
    world.hints.wakes = 0;
    const created = await order.createBatch([
      { id: "a", params: 1 },
      { id: "b" },
      { id: "a", params: 2 },
      { id: "c" },
    ]);
    expect(created.map(({ id }) => id)).toEqual(["a", "c"]);
    expect((await stored("a"))?.params).toBe("1");
    expect(world.hints.wakes).toBe(1);
    expect(await order.createBatch([{ id: "a" }])).toEqual([]);
    expect(world.hints.wakes).toBe(1);
  });

  test("returns nothing for an empty batch, and does not call the store", async () => {
    world.handle.exec("DROP TABLE pawl_instance");
    expect(await order.createBatch([])).toEqual([]);
  });

  test.each<[string, unknown, string]>([
    ["no array", { id: "a" }, "INVALID_REQUEST"],
    ["too many", Array.from({ length: 6 }, (_, i) => ({ id: `${i}` })), "INVALID_REQUEST"],
    ["an item that is no object", [{ id: "a" }, "b"], "INVALID_REQUEST"],
    ["an item without id", [{ id: "a" }, {}], "INVALID_INSTANCE_ID"],
    ["bad params", [{ id: "a" }, { id: "b", params: Symbol("no") }], "INVALID_PARAMS"],
  ])("refuses %s without a row", async (_what, batch, code) => {
    await expect(order.createBatch(batch as [])).rejects.toMatchObject({ code });
    expect(world.rows()).toBe(0);
  });
});

describe("get", () => {
  test("refuses an unknown id and a bad one", async () => {
    await expect(order.get("a")).rejects.toMatchObject({
      code: "INSTANCE_NOT_FOUND",
      message: 'workflow "order" has no instance "a"',
    });
    await expect(order.get("a b")).rejects.toMatchObject({ code: "INVALID_INSTANCE_ID" });
  });
});

describe("eager start", () => {
  beforeEach(() => {
    world.hints.runner = "runner";
  });

  test("leases the new run to a runner with a free slot, which needs no wake", async () => {
    const instance = await order.create({ id: "a", params: 1 });
    expect(world.hints.started).toEqual([
      {
        iid: (await stored("a"))?.iid,
        workflow: "order",
        id: "a",
        params: "1",
        createdAt: world.clock.now(),
      },
    ]);
    expect(await instance.status()).toEqual({ status: "running" });
    expect(world.hints).toMatchObject({ wakes: 0, reserved: 0 });
  });

  test("gives back the slots of a batch that were not used", async () => {
    await order.create({ id: "a" });
    await order.createBatch([{ id: "a" }, { id: "b" }, { id: "c" }]);
    expect(world.hints.started.map(({ id }) => id)).toEqual(["a", "b", "c"]);
    expect(world.hints.reserved).toBe(0);
  });

  test("gives back the slot after a duplicate, a refusal and a failure", async () => {
    await order.create({ id: "a" });
    await expect(order.create({ id: "a" })).rejects.toThrow();
    await expect(order.create({ params: Symbol("no") })).rejects.toThrow();
    world.handle.exec("DROP TABLE pawl_ticket");
    await expect(order.create({ id: "b" })).rejects.toThrow();
    expect(world.hints.reserved).toBe(0);
    expect(world.hints.started).toHaveLength(1);
  });

  test("falls back to the queue if the runner is dead", async () => {
    world.hints.runner = "unknown";
    const instance = await order.create({ id: "a" });
    expect(await instance.status()).toEqual({ status: "queued" });
    expect(world.hints).toMatchObject({ wakes: 1, reserved: 0, started: [] });
  });
});

describe("inside a run", () => {
  /** A run that is at the same place again after every restart of its step. */
  function parent(log: string[] = [], run = "p") {
    let nth = 0;
    return {
      barrier: async () => {
        await Promise.resolve();
        log.push(`barrier, ${world.rows()} rows`);
      },
      nextOrigin: () => {
        nth += 1;
        return { origin: `${run}/1/step/${nth}`, id: `${run}-${nth}` };
      },
    };
  }
  const inside = (run?: string) => world.inside(parent([], run))["ORDER"] as Binding;

  test("a child has its origin, and an id derived from it", async () => {
    const workflows = inside();
    expect((await workflows.create()).id).toBe("p-1");
    expect((await workflows.create({ id: "own" })).id).toBe("own");
    expect((await stored("p-1"))?.origin).toBe("p/1/step/1");
    expect((await stored("own"))?.origin).toBe("p/1/step/2");
  });

  test("creating the same child again returns the same child", async () => {
    await inside().create({ id: "own" });
    const again = await inside().create({ id: "own" });
    expect(again.id).toBe("own");
    const batch = [{ id: "x" }, { id: "y" }];
    expect(await inside("q").createBatch(batch)).toHaveLength(2);
    expect((await inside("q").createBatch(batch)).map(({ id }) => id)).toEqual(["x", "y"]);
    expect(world.rows()).toBe(3);
  });

  test("creating a child with someone else's id is refused", async () => {
    await order.create({ id: "own" });
    await expect(inside().create({ id: "own" })).rejects.toMatchObject({
      code: "INSTANCE_ID_ALREADY_EXISTS",
    });
    await inside().create({ id: "mine" });
    await expect(inside("other").create({ id: "mine" })).rejects.toMatchObject({
      code: "INSTANCE_ID_ALREADY_EXISTS",
    });
  });

  test("origins follow the order of the calls", async () => {
    const workflows = world.inside(parent())["CHECKED"] as Binding;
    const [slow, quick] = await Promise.all([
      workflows.createBatch([
        { id: "a", params: { at: "2026-01-01" } },
        { id: "b", params: { at: "2026-01-01" } },
      ]),
      workflows.create({ params: { at: "2026-01-01" } }),
    ]);
    expect([...slow.map(({ id }) => id), quick.id]).toEqual(["a", "b", "p-3"]);
    expect((await stored("b", "checked"))?.origin).toBe("p/1/step/2");
  });

  test("every call waits until what led to it is durable", async () => {
    await order.create({ id: "a" });
    const log: string[] = [];
    const workflows = world.inside(parent(log))["ORDER"] as Binding;
    await workflows.create();
    expect(log).toEqual(["barrier, 1 rows"]);
    await workflows.createBatch([{ id: "b" }]);
    const instance = await workflows.get("a");
    await instance.status();
    await instance.sendEvent({ type: "go" });
    await instance.pause();
    await instance.resume();
    await instance.restart();
    await instance.terminate();
    await instance.result().catch(() => {});
    expect(log).toHaveLength(10);
  });
});

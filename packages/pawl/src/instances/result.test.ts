import { beforeEach, expect, test } from "vitest";
import { instancesWorld, type InstancesWorld } from "../../test/support/instances.js";
import type { Workflow, WorkflowInstance } from "../authoring/bindings.js";
import { defineWorkflow } from "../authoring/define-workflow.js";
import { encodeError } from "../model/error-codec.js";
import { InstanceTerminatedError, NonRetryableError, ResultTimeoutError } from "../model/errors.js";

const target = { workflow: "order", id: "a" };
let world: InstancesWorld;
let instance: WorkflowInstance;

beforeEach(async () => {
  world = await instancesWorld({ ORDER: defineWorkflow({ name: "order", run: () => 1 }) });
  instance = await (world.workflows["ORDER"] as Workflow).create({ id: "a" });
});

const complete = (output: string | null) => world.turn(target, { kind: "complete", output });

test("is the output", async () => {
  await complete('{"n":1}');
  expect(await instance.result()).toEqual({ n: 1 });
});

test("is undefined where nothing was returned", async () => {
  await complete(null);
  expect(await instance.result()).toBeUndefined();
});

test("throws the instance's error, as the class it was", async () => {
  const error = new NonRetryableError("no", "CardRefused");
  await world.turn(target, { kind: "fail", error: encodeError(error) });
  const thrown = await instance.result().catch((caught: unknown) => caught);
  expect(thrown).toBeInstanceOf(NonRetryableError);
  expect(thrown).toMatchObject({ name: "CardRefused", message: "no" });
});

test("throws for a terminated instance, and for one that is gone", async () => {
  await instance.terminate();
  expect(world.hints.ends).toEqual([target]);
  await expect(instance.result()).rejects.toBeInstanceOf(InstanceTerminatedError);
  world.handle.exec("DELETE FROM pawl_instance");
  await expect(instance.result()).rejects.toMatchObject({ code: "INSTANCE_NOT_FOUND" });
});

test("of a run that is here comes with its end: nothing is read", async () => {
  world.handle.exec("DELETE FROM pawl_instance");
  world.hints.meanwhile = () => {};
  world.hints.isRunHere = true;
  world.hints.end = { status: "complete", output: '{"n":1}', error: null };
  expect(await instance.result()).toEqual({ n: 1 });
  world.hints.end = { status: "errored", output: null, error: encodeError(new Error("no")) };
  await expect(instance.result()).rejects.toThrow("no");
  expect(world.hints.waits).toEqual([10_000, 10_000]);
});

test("of a run that leaves without an end is looked for", async () => {
  world.hints.isRunHere = true;
  world.hints.meanwhile = async () => {
    world.hints.isRunHere = false;
    if (world.hints.waits.length === 2) await complete("1");
  };
  expect(await instance.result()).toBe(1);
  expect(world.hints.waits).toEqual([10_000, 25]);
});

test("of an instance that was created just now is not looked for before its end is told", async () => {
  await new Promise(setImmediate);
  world.hints.areOthersHeard = true;
  const created = await (world.workflows["ORDER"] as Workflow).create({ id: "b" });
  world.handle.exec("DELETE FROM pawl_instance");
  world.hints.meanwhile = () => {};
  world.hints.end = { status: "complete", output: '{"n":1}', error: null };
  expect(await created.result()).toEqual({ n: 1 });
  await new Promise(setImmediate);
  await expect(created.result()).rejects.toMatchObject({ code: "INSTANCE_NOT_FOUND" });
});

test("of an instance that was created just now, and has left this process, is looked for at once", async () => {
  await new Promise(setImmediate);
  world.hints.areOthersHeard = true;
  world.hints.isRunHere = true;
  const created = await (world.workflows["ORDER"] as Workflow).create({ id: "b" });
  world.hints.meanwhile = () => {
    world.hints.isRunHere = false;
    return created.terminate();
  };
  await expect(created.result()).rejects.toBeInstanceOf(InstanceTerminatedError);
  expect(world.hints.waits).toEqual([10_000]);
});

test("hears of an end from before its look on, and leaves no ear open", async () => {
  const { store } = world;
  const get = store.get.bind(store);
  let whenRead = -1;
  store.get = (wanted) => {
    whenRead = world.hints.listeners - world.hints.closed;
    return get(wanted);
  };
  world.hints.meanwhile = () => complete("1");
  expect(await instance.result()).toBe(1);
  expect(whenRead).toBe(1);
  expect(world.hints.closed).toBe(world.hints.listeners);
});

test("of an instance that was created just now is looked for where nobody may wait", async () => {
  await new Promise(setImmediate);
  world.hints.areOthersHeard = true;
  const created = await (world.workflows["ORDER"] as Workflow).create({ id: "b" });
  await expect(created.result({ timeout: 0 })).rejects.toThrow("it is queued");
});

test("of a child that an earlier attempt created is looked for at once", async () => {
  const parent = { barrier: async () => {}, nextOrigin: () => ({ origin: "of it", id: "child" }) };
  const children = world.inside(parent)["ORDER"] as Workflow;
  await children.create();
  await world.turn({ workflow: "order", id: "child" }, { kind: "complete", output: "1" });
  world.hints.areOthersHeard = true;
  const again = await children.create();
  expect(await again.result()).toBe(1);
  expect(world.hints.waits).toEqual([]);
});

test("waits longer and longer, until the run has ended", async () => {
  world.hints.meanwhile = async () => {
    if (world.hints.waits.length === 9) await complete("1");
  };
  expect(await instance.result()).toBe(1);
  expect(world.hints.waits).toEqual([25, 50, 100, 200, 400, 800, 1_600, 2_000, 2_000]);
});

test("looks seldom where other processes tell of ends", async () => {
  world.hints.areOthersHeard = true;
  world.hints.meanwhile = async () => {
    if (world.hints.waits.length === 8) await complete("1");
  };
  expect(await instance.result()).toBe(1);
  expect(world.hints.waits).toEqual([100, 1_000, 2_000, 4_000, 8_000, 10_000, 10_000, 10_000]);
});

test("after a restart, waits for the current run", async () => {
  await complete('"first"');
  await instance.restart();
  world.hints.meanwhile = () => complete('"second"');
  expect(await instance.result()).toBe("second");
});

test("gives up after its timeout, to the millisecond", async () => {
  world.hints.meanwhile = (ms) => world.clock.advance(ms);
  const result = instance.result({ timeout: "60 ms" });
  await expect(result).rejects.toBeInstanceOf(ResultTimeoutError);
  expect(world.hints.waits).toEqual([25, 35]);
});

test("looks once, whatever the timeout", async () => {
  await expect(instance.result({ timeout: 0 })).rejects.toThrow(
    'instance "a" did not end in time: it is queued',
  );
  await complete("1");
  expect(await instance.result({ timeout: 0 })).toBe(1);
});

test("stops when its signal fires", async () => {
  const controller = new AbortController();
  world.hints.meanwhile = () => controller.abort(new Error("enough"));
  await expect(instance.result({ signal: controller.signal })).rejects.toThrow("enough");
  expect(world.hints.waits).toEqual([25]);
  await expect(instance.result({ signal: controller.signal })).rejects.toThrow("enough");
  expect(world.hints.waits).toEqual([25]);
});

test("refuses a timeout that is no duration", async () => {
  await expect(instance.result({ timeout: "soon" })).rejects.toMatchObject({
    code: "INVALID_REQUEST",
    message: expect.stringContaining("timeout must be a duration"),
  });
});

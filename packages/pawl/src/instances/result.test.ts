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

test("result is the output", async () => {
  await complete('{"n":1}');
  expect(await instance.result()).toEqual({ n: 1 });
});

test("result is undefined if nothing was returned", async () => {
  await complete(null);
  expect(await instance.result()).toBeUndefined();
});

test("result throws the instance's error, with its class", async () => {
  const error = new NonRetryableError("no", "CardRefused");
  await world.turn(target, { kind: "fail", error: encodeError(error) });
  const thrown = await instance.result().catch((caught: unknown) => caught);
  expect(thrown).toBeInstanceOf(NonRetryableError);
  expect(thrown).toMatchObject({ name: "CardRefused", message: "no" });
});

test("result throws for a terminated instance, and for one that is gone", async () => {
  await instance.terminate();
  expect(world.hints.ends).toEqual([target]);
  await expect(instance.result()).rejects.toBeInstanceOf(InstanceTerminatedError);
  world.handle.exec("DELETE FROM pawl_instance");
  await expect(instance.result()).rejects.toMatchObject({ code: "INSTANCE_NOT_FOUND" });
});

test("result of a run in this process comes with its end, without a read", async () => {
  world.handle.exec("DELETE FROM pawl_instance");
  world.hints.meanwhile = () => {};
  world.hints.isRunHere = true;
  world.hints.end = { status: "complete", output: '{"n":1}', error: null };
  expect(await instance.result()).toEqual({ n: 1 });
  world.hints.end = { status: "errored", output: null, error: encodeError(new Error("no")) };
  await expect(instance.result()).rejects.toThrow("no");
  expect(world.hints.waits).toEqual([10_000, 10_000]);
});

test("result polls if a run leaves this process without an end", async () => {
  world.hints.isRunHere = true;
  world.hints.meanwhile = async () => {
    world.hints.isRunHere = false;
    if (world.hints.waits.length === 2) await complete("1");
  };
  expect(await instance.result()).toBe(1);
  expect(world.hints.waits).toEqual([10_000, 25]);
});

test("result of an instance just created does not read before its end is told", async () => {
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

test("result of an instance just created reads at once when its run has left this process", async () => {
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

test("result listens for an end before it reads, and leaves no listener open", async () => {
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

test("result of an instance just created reads if it may not wait", async () => {
  await new Promise(setImmediate);
  world.hints.areOthersHeard = true;
  const created = await (world.workflows["ORDER"] as Workflow).create({ id: "b" });
  await expect(created.result({ timeout: 0 })).rejects.toThrow("it is queued");
});

test("result of a child that an earlier attempt created reads at once", async () => {
  const parent = { barrier: async () => {}, nextOrigin: () => ({ origin: "of it", id: "child" }) };
  const children = world.inside(parent)["ORDER"] as Workflow;
  await children.create();
  await world.turn({ workflow: "order", id: "child" }, { kind: "complete", output: "1" });
  world.hints.areOthersHeard = true;
  const again = await children.create();
  expect(await again.result()).toBe(1);
  expect(world.hints.waits).toEqual([]);
});

test("result waits longer and longer, until the run has ended", async () => {
  world.hints.meanwhile = async () => {
    if (world.hints.waits.length === 9) await complete("1");
  };
  expect(await instance.result()).toBe(1);
  expect(world.hints.waits).toEqual([25, 50, 100, 200, 400, 800, 1_600, 2_000, 2_000]);
});

test("result polls seldom if other processes tell of ends", async () => {
  world.hints.areOthersHeard = true;
  world.hints.meanwhile = async () => {
    if (world.hints.waits.length === 8) await complete("1");
  };
  expect(await instance.result()).toBe(1);
  expect(world.hints.waits).toEqual([100, 1_000, 2_000, 4_000, 8_000, 10_000, 10_000, 10_000]);
});

test("result waits for the current run after a restart", async () => {
  await complete('"first"');
  await instance.restart();
  world.hints.meanwhile = () => complete('"second"');
  expect(await instance.result()).toBe("second");
});

test("result gives up after its timeout, to the millisecond", async () => {
  world.hints.meanwhile = (ms) => world.clock.advance(ms);
  const result = instance.result({ timeout: "60 ms" });
  await expect(result).rejects.toBeInstanceOf(ResultTimeoutError);
  expect(world.hints.waits).toEqual([25, 35]);
});

test("result reads once, whatever the timeout", async () => {
  await expect(instance.result({ timeout: 0 })).rejects.toThrow(
    'instance "a" did not end in time: it is queued',
  );
  await complete("1");
  expect(await instance.result({ timeout: 0 })).toBe(1);
});

test("result stops when its signal fires", async () => {
  const controller = new AbortController();
  world.hints.meanwhile = () => controller.abort(new Error("enough"));
  await expect(instance.result({ signal: controller.signal })).rejects.toThrow("enough");
  expect(world.hints.waits).toEqual([25]);
  await expect(instance.result({ signal: controller.signal })).rejects.toThrow("enough");
  expect(world.hints.waits).toEqual([25]);
});

test("result refuses a timeout that is not a duration", async () => {
  await expect(instance.result({ timeout: "soon" })).rejects.toMatchObject({
    code: "INVALID_REQUEST",
    message: expect.stringContaining("timeout must be a duration"),
  });
});

import { beforeEach, describe, expect, test } from "vitest";
import { z } from "zod";
import { instancesWorld, type InstancesWorld } from "../../test/support/instances.js";
import type { InstanceTypes, Workflow, WorkflowInstance } from "../authoring/bindings.js";
import { defineWorkflow } from "../authoring/define-workflow.js";
import { encodeError } from "../model/error-codec.js";
import type { SqliteHandle } from "../sqlite.js";
import { waitMaskOf } from "../model/wait-mask.js";
import { history } from "./history.js";

const registry = {
  ORDER: defineWorkflow({
    name: "order",
    events: {
      pay: z.object({ amount: z.string().transform(Number) }),
      other: z.unknown(),
    },
    run: () => 1,
  }),
};

const target = { workflow: "order", id: "a" };
let world: InstancesWorld;
let instance: WorkflowInstance<InstanceTypes, SqliteHandle>;

beforeEach(async () => {
  world = await instancesWorld(registry, { eventPayloadMaxBytes: 100 });
  const order = world.workflows["ORDER"] as Workflow<unknown, InstanceTypes, SqliteHandle>;
  instance = await order.create({ id: "a" });
  world.hints.wakes = 0;
});

const finish = (output: string | null = "1") => world.turn(target, { kind: "complete", output });
const hold = () => world.turn(target, { kind: "continue" });
const gone = () => world.handle.exec("DELETE FROM pawl_instance; DELETE FROM pawl_ticket");

describe("status", () => {
  test("shows the output", async () => {
    await finish(world.context.codec.encode({ at: new Date(0) }, { what: "", maxBytes: 100 }));
    expect(await instance.status()).toEqual({ status: "complete", output: { at: new Date(0) } });
  });

  test("has no output if nothing was returned", async () => {
    await finish(null);
    expect(await instance.status()).toEqual({ status: "complete" });
  });

  test("shows the error", async () => {
    const error = Object.assign(new TypeError("no"), { code: "E_NO" });
    await world.turn(target, { kind: "fail", error: encodeError(error) });
    expect(await instance.status()).toEqual({
      status: "errored",
      error: { name: "TypeError", message: "no", code: "E_NO" },
    });
  });

  test("throws for an instance that is gone", async () => {
    gone();
    await expect(instance.status()).rejects.toMatchObject({ code: "INSTANCE_NOT_FOUND" });
  });
});

describe("control", () => {
  test("pauses and resumes a queued run", async () => {
    await instance.pause();
    expect(await instance.status()).toEqual({ status: "paused" });
    expect(world.hints.wakes).toBe(0);
    await instance.resume();
    expect(await instance.status()).toEqual({ status: "queued" });
    expect(world.hints).toMatchObject({ wakes: 1, pokes: [] });
  });

  test.each(["pause", "resume", "terminate", "restart"] as const)(
    "%s tells the runner that holds the run",
    async (command) => {
      await hold();
      await instance[command]();
      expect(world.hints.pokes).toEqual([["runner", target]]);
    },
  );

  test("terminate ends the instance", async () => {
    await instance.terminate();
    expect(await instance.status()).toEqual({ status: "terminated" });
  });

  test("restart begins a new run and sends a wake", async () => {
    await finish();
    await instance.restart();
    expect(await instance.status()).toEqual({ status: "queued" });
    expect((await world.store.get(target))?.runNumber).toBe(2);
    expect(world.hints.wakes).toBe(1);
    await instance.restart();
    expect((await world.store.get(target))?.runNumber).toBe(3);
  });

  test.each(["pause", "terminate"] as const)("%s refuses an ended instance", async (command) => {
    await finish();
    await expect(instance[command]()).rejects.toMatchObject({
      code: "INSTANCE_TERMINAL",
      message: 'instance "a" has ended: complete',
    });
  });

  test.each(["pause", "resume", "terminate", "restart"] as const)(
    "%s refuses an instance that is gone",
    async (command) => {
      gone();
      await expect(instance[command]()).rejects.toMatchObject({ code: "INSTANCE_NOT_FOUND" });
    },
  );
});

describe("sendEvent", () => {
  const events = async () => (await history(world.context, "order", "a")).entries;

  test("stores what the declared schema makes of the payload", async () => {
    await instance.sendEvent({ type: "pay", payload: { amount: "12" } });
    await instance.sendEvent({ type: "other", payload: "anything" });
    await instance.sendEvent({ type: "other" });
    expect(await events()).toMatchObject([
      { type: "pay", payload: { amount: 12 } },
      { type: "other", payload: "anything" },
      { type: "other" },
    ]);
  });

  test("wakes a run that waits for that type, and no other", async () => {
    const waitMask = waitMaskOf(["pay"]);
    await world.turn(target, { kind: "park", waitMask, wake: null, historyBytes: 0 });
    await instance.sendEvent({ type: "other" });
    expect(world.hints.wakes).toBe(0);
    await instance.sendEvent({ type: "pay", payload: { amount: "1" } });
    expect(world.hints).toMatchObject({ wakes: 1, pokes: [] });
  });

  test("tells the runner that holds the run", async () => {
    await hold();
    await instance.sendEvent({ type: "other" });
    expect(world.hints).toMatchObject({ wakes: 0, pokes: [["runner", target]] });
  });

  test("ignores an event with the same id as before", async () => {
    await instance.sendEvent({ type: "other", id: "once", payload: 1 });
    await instance.sendEvent({ type: "other", id: "once", payload: 2 });
    expect(await events()).toMatchObject([{ payload: 1 }]);
  });

  test("lives and dies with the caller's transaction", async () => {
    await hold();
    world.handle.exec("BEGIN");
    await instance.sendEvent({ type: "other" }, { tx: world.handle });
    world.handle.exec("ROLLBACK");
    expect(await world.store.moveInbox(10)).toBe(0);
    world.handle.exec("BEGIN");
    await instance.sendEvent({ type: "other" }, { tx: world.handle });
    world.handle.exec("COMMIT");
    expect(await world.store.moveInbox(10)).toBe(1);
    expect(world.hints).toMatchObject({ wakes: 0, pokes: [] });
  });

  test.each<[string, unknown, string]>([
    ["no event", undefined, "INVALID_REQUEST"],
    ["no type", { payload: 1 }, "INVALID_EVENT_TYPE"],
    ["a bad type", { type: "a b" }, "INVALID_EVENT_TYPE"],
    ["a type that is not declared", { type: "payed" }, "INVALID_EVENT_TYPE"],
    ["an inherited name", { type: "toString" }, "INVALID_EVENT_TYPE"],
    ["a bad id", { type: "other", id: "" }, "INVALID_REQUEST"],
    ["a payload the schema refuses", { type: "pay", payload: 1 }, "INVALID_EVENT_PAYLOAD"],
    [
      "a payload that cannot be stored",
      { type: "other", payload: () => 1 },
      "INVALID_EVENT_PAYLOAD",
    ],
    ["a payload too large", { type: "other", payload: "x".repeat(200) }, "PAYLOAD_TOO_LARGE"],
  ])("refuses %s without a row", async (_what, event, code) => {
    await expect(instance.sendEvent(event as { type: string })).rejects.toMatchObject({ code });
    expect(await events()).toEqual([]);
  });

  test("names the declared types, even in a transaction", async () => {
    const refused = {
      code: "INVALID_EVENT_TYPE",
      message: 'workflow "order" has no event "payed"; it declares pay, other',
    };
    await expect(instance.sendEvent({ type: "payed" })).rejects.toMatchObject(refused);
    world.handle.exec("BEGIN");
    const sent = instance.sendEvent({ type: "payed" }, { tx: world.handle });
    await expect(sent).rejects.toMatchObject(refused);
    world.handle.exec("COMMIT");
    expect(await world.store.moveInbox(10)).toBe(0);
  });

  test("refuses an ended instance, and one that is gone", async () => {
    await finish();
    const event = { type: "other" };
    await expect(instance.sendEvent(event)).rejects.toMatchObject({ code: "INSTANCE_TERMINAL" });
    gone();
    await expect(instance.sendEvent(event)).rejects.toMatchObject({ code: "INSTANCE_NOT_FOUND" });
  });
});

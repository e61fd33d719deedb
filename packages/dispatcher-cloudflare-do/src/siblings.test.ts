import type { ControlRequest, InstanceStore, Target } from "pawl/durable-object";
import { expect, test } from "vitest";
import { answerSibling, siblingStore, type SiblingCall } from "./siblings.js";
import type { WorkflowsObject } from "./namespace.js";

const target: Target = { workflow: "order", id: "a" };
const silent = { debug() {}, info() {}, warn() {}, error() {} };

/** A store that remembers what it is asked to control. */
function recording() {
  const asked: ControlRequest[] = [];
  const store = {
    control: async (_: Target, request: ControlRequest) => {
      asked.push(request);
      return { kind: "notFound" };
    },
  } as unknown as InstanceStore<never>;
  return { asked, store };
}

test("a control request arrives as it was sent", async () => {
  const { asked, store } = recording();
  const calls: SiblingCall[] = [];
  const object = {
    sibling: (call: SiblingCall) => {
      calls.push(structuredClone(call));
      return answerSibling(store, structuredClone(call), silent);
    },
  } as unknown as WorkflowsObject;
  const requests: ControlRequest[] = [
    { command: "pause" },
    { command: "restart", operationId: "operation" },
  ];
  for (const request of requests) {
    expect(await siblingStore(() => object).control(target, request)).toEqual({ kind: "notFound" });
  }
  expect(asked).toEqual(requests);
  // Objects with older code look at the verb and the first two arguments only.
  expect(calls.map(({ verb, args }) => [verb, ...args.slice(0, 2)])).toEqual([
    ["pause", target, undefined],
    ["restart", target, "operation"],
  ]);
});

test("requests of objects with older code are understood", async () => {
  const { asked, store } = recording();
  await answerSibling(store, { verb: "resume", args: [target] }, silent);
  await answerSibling(store, { verb: "terminate", args: [target, "operation"] }, silent);
  expect(asked).toEqual([
    { command: "resume" },
    { command: "terminate", operationId: "operation" },
  ]);
});

import { defineWorkflow } from "pawl";
import { expect, test } from "vitest";
import { layoutOf, type Sharding } from "./layout.js";

const workflows = {
  ORDER: defineWorkflow({ name: "order", run: () => 1 }),
  PING: defineWorkflow({ name: "ping", run: () => 1 }),
};

test("there is one object unless more are asked for, always under the same names", () => {
  expect(layoutOf({}).names).toEqual(["pawl"]);
  expect(layoutOf({ shards: 1 }).spread).toBe(layoutOf({}).spread);
  expect(layoutOf({ shards: 3 }).names).toEqual(["pawl", "pawl-1", "pawl-2"]);
  expect(layoutOf({ shardBy: "workflow", workflows }).names).toEqual([
    "pawl",
    "pawl:order",
    "pawl:ping",
  ]);
});

test("by workflow, an unknown workflow gets no object of its own", () => {
  const layout = layoutOf({ shardBy: "workflow", workflows });
  expect(layout.nameOf({ workflow: "ping", id: "a" })).toBe("pawl:ping");
  expect(layout.nameOf({ workflow: "nobody", id: "a" })).toBe("pawl");
});

test.each<[unknown, string]>([
  [{ shards: 0 }, "shards must be a whole number from 1 to 64, got 0"],
  [{ shards: 65 }, "shards must be a whole number from 1 to 64, got 65"],
  [{ shards: 1.5 }, "shards must be a whole number from 1 to 64, got 1.5"],
  [{ shards: "4" }, 'shards must be a whole number from 1 to 64, got "4"'],
  [{ shardBy: "id" }, 'shardBy must be "instance" or "workflow", got "id"'],
  [{ shardBy: "workflow", shards: 2, workflows }, "leave out shards"],
  [{ shardBy: "workflow" }, "needs workflows"],
])("refuses %o", (given, message) => {
  expect(() => layoutOf(given as Sharding)).toThrow(message);
});

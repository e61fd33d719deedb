import { expect, test } from "vitest";
import { sharedMacrotask } from "./runtime.js";

test("callbacks share a macrotask, and one that throws keeps no other from its turn", () => {
  const macrotasks: (() => void)[] = [];
  const defer = sharedMacrotask((callback) => void macrotasks.push(callback));
  const called: string[] = [];
  const next = (): void => macrotasks.shift()?.();

  defer(() => void called.push("a"));
  defer(() => {
    defer(() => void called.push("later"));
    throw new Error("no");
  });
  defer(() => void called.push("b"));
  expect(macrotasks.length).toBe(1);
  expect(next).toThrow("no");
  expect(called).toEqual(["a"]);
  expect(macrotasks.length).toBe(1);
  next();
  expect(called.toSorted()).toEqual(["a", "b", "later"]);
  expect(macrotasks).toEqual([]);
});

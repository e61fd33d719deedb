import { expect, test } from "vitest";
import { sharedMacrotask, webRuntime } from "./runtime.js";

test("callbacks share a macrotask, and one that throws does not cost another its turn", () => {
  const macrotasks: (() => void)[] = [];
  const defer = sharedMacrotask((callback) => void macrotasks.push(callback), 1);
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

test("a chain of callbacks has macrotasks asked for ahead, until one has nothing to do", () => {
  const macrotasks: (() => void)[] = [];
  const defer = sharedMacrotask((callback) => void macrotasks.push(callback), 4);
  const asked: number[] = [];
  let left = 10;
  const chain = (): void => {
    left -= 1;
    if (left > 0) defer(chain);
  };
  const ask = (callback: () => void): void => {
    defer(callback);
    asked.push(macrotasks.length);
  };
  ask(chain);
  let run = 0;
  for (; macrotasks.length > 0; run++) macrotasks.shift()?.();
  expect(left).toBe(0);
  // 1 + 2 + 4 + 4: the last macrotask was idle.
  expect(run).toBe(11);
  ask(() => {});
  expect(asked).toEqual([1, 1]);
});

test("the code's reaction to one callback is over before the next, however often it awaits", async () => {
  const log: string[] = [];
  await new Promise<void>((resolve) => {
    const go = (n: number): void => {
      log.push(`called ${n}`);
      void (async () => {
        for (let hop = 0; hop < 20; hop++) await Promise.resolve();
        log.push(`reacted ${n}`);
      })();
      webRuntime.scheduler.macrotask(n === 50 ? resolve : () => go(n + 1));
    };
    go(1);
  });
  const expected = Array.from({ length: 50 }, (_, n) => [`called ${n + 1}`, `reacted ${n + 1}`]);
  expect(log).toEqual(expected.flat());
});

test("a stride lasts as long as there are microtasks, and no longer", async () => {
  const { scheduler } = webRuntime;
  const macrotask = (): Promise<void> => new Promise((resolve) => void setImmediate(resolve));
  await macrotask();
  const stride = scheduler.stride();
  const laterStrides: boolean[] = [];
  const timer = new Promise<void>((resolve) => {
    setTimeout(() => {
      laterStrides.push(stride.isOver);
      resolve();
    }, 1);
  });
  const until = performance.now() + 5;
  while (performance.now() < until);
  for (let hop = 0; hop < 100; hop++) await Promise.resolve();
  expect(stride.isOver).toBe(false);
  expect(scheduler.stride()).toBe(stride);
  await timer;
  expect(laterStrides).toEqual([true]);
  expect(scheduler.stride().isOver).toBe(false);
  expect(scheduler.stride()).not.toBe(stride);
});

test("strides end even if a test has replaced queueMicrotask", async () => {
  await new Promise(setImmediate);
  const real = globalThis.queueMicrotask;
  globalThis.queueMicrotask = () => {};
  const stride = webRuntime.scheduler.stride();
  globalThis.queueMicrotask = real;
  await new Promise(setImmediate);
  expect(stride.isOver).toBe(true);
});

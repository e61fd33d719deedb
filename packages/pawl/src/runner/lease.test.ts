import { expect, test } from "vitest";
import type { Scheduler } from "../model/seams.js";
import { webRuntime } from "../runtime.js";
import type { HeartbeatAnswer, Store } from "../store/store.js";
import { Lease } from "./lease.js";

const LEASE_MS = 30_000;

/** A lease on a store whose heartbeats are answered when the test says so, and timers that fire when time is moved. */
function setUp() {
  let now = 0;
  const timers = new Map<object, { readonly atMs: number; readonly fire: () => void }>();
  const scheduler: Pick<Scheduler, "after"> = {
    after(ms, fire) {
      const timer = {};
      timers.set(timer, { atMs: now + ms, fire });
      return () => void timers.delete(timer);
    },
  };
  const beats: number[] = [];
  let answer: (() => void) | null = null;
  let isHeld = false;
  const store: Pick<Store, "register" | "heartbeat"> = {
    register: async () => {},
    heartbeat: () => {
      beats.push(now);
      const ok: HeartbeatAnswer = { kind: "ok", now, owned: [] };
      if (!isHeld) return Promise.resolve(ok);
      return new Promise((resolve) => (answer = () => resolve(ok)));
    },
  };
  const runtime = { ...webRuntime, clock: { now: () => now }, scheduler: scheduler as Scheduler };
  const events = { beat() {}, died() {}, failed() {} };
  const lease = new Lease(LEASE_MS, store as Store, runtime, () => "runner", events);
  return {
    lease,
    beats,
    timers: () => timers.size,
    holdAnswers: () => void (isHeld = true),
    answer: () => answer?.(),
    /** Moves time in steps, so that timers that are set meanwhile fire too. */
    pass: async (ms: number): Promise<void> => {
      for (const end = now + ms; now < end;) {
        now += 100;
        for (const [timer, { atMs, fire }] of timers) {
          if (atMs > now) continue;
          timers.delete(timer);
          fire();
        }
        await new Promise((resolve) => setImmediate(resolve));
      }
    },
  };
}

test("a lease that is old when it is needed again is renewed at once", async () => {
  const { lease, beats, pass } = setUp();
  await lease.ensure();
  await pass(23_000);
  lease.keepAlive(true);
  await pass(100);
  expect(beats).toEqual([23_100]);
});

test("a lease that is needed now and then is renewed as if it were needed all the time", async () => {
  const { lease, beats, pass } = setUp();
  await lease.ensure();
  for (let n = 0; n < 12; n++) {
    lease.keepAlive(true);
    await pass(4_000);
    lease.keepAlive(false);
    await pass(1_000);
  }
  const gaps = [...beats, 60_000].map((atMs, n) => atMs - (beats[n - 1] ?? 0));
  expect(Math.max(...gaps)).toBeLessThan(LEASE_MS / 2);
});

test("a lease that becomes needed during a beat has one timer, and none once it is not needed", async () => {
  const world = setUp();
  const { lease, pass, timers } = world;
  await lease.ensure();
  lease.keepAlive(true);
  world.holdAnswers();
  await pass(10_000);
  lease.keepAlive(false);
  lease.keepAlive(true);
  world.answer();
  await pass(100);
  expect(timers()).toBe(1);
  lease.keepAlive(false);
  expect(timers()).toBe(0);
});

test("a process without a lease sends no heartbeats, and does not spin", async () => {
  const { lease, beats, pass, timers } = setUp();
  lease.keepAlive(true);
  await pass(60_000);
  expect(beats).toEqual([]);
  expect(timers()).toBe(1);
});

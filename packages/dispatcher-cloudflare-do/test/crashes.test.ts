import { describe, test } from "vitest";
import { aHost } from "./support/host.js";

const PATIENCE = { timeout: 40_000, interval: 50 };

describe.concurrent("a Durable Object that ends", () => {
  test("after an eviction a new activation takes over at once, for one attempt", async ({
    expect,
    onTestFinished,
  }) => {
    const host = await aHost({ onTestFinished });
    await host.do("create", { binding: "LONG", id: "long", params: { ms: 500 } });
    await expect.poll(() => host.ledger, PATIENCE).toEqual(["long began 1"]);
    const evictedAtMs = Date.now();
    await host.do("evict");
    expect(await host.do("result", { binding: "LONG", id: "long" })).toBe(2);
    // A lease is 30 seconds: nobody waited for it.
    expect(Date.now() - evictedAtMs).toBeLessThan(15_000);
    expect(host.ledger).toEqual(["long began 1", "long began 2", "long ended 2"]);
  });

  test("an alarm alone wakes a run whose object was evicted in a body", async ({
    expect,
    onTestFinished,
  }) => {
    const host = await aHost({ onTestFinished });
    await host.do("create", { binding: "LONG", id: "alone", params: { ms: 500 } });
    await expect.poll(() => host.ledger, PATIENCE).toEqual(["alone began 1"]);
    await host.do("evict");
    // No request comes: the heartbeat's alarm brings the object back.
    await expect
      .poll(() => host.ledger, PATIENCE)
      .toEqual(["alone began 1", "alone began 2", "alone ended 2"]);
  });

  test("a heartbeat keeps the object alive while a body runs for longer than workerd waits", async ({
    expect,
    onTestFinished,
  }) => {
    const host = await aHost({ onTestFinished });
    await host.do("create", { binding: "LONG", id: "patient", params: { ms: 14_000 } });
    // No request comes meanwhile: it would keep the object alive too.
    await expect.poll(() => host.ledger, PATIENCE).toEqual(["patient began 1", "patient ended 1"]);
    await expect.poll(() => host.do("alarmAt"), PATIENCE).toBe(null);
  });

  test("a sleeping run goes on by itself when workerd comes back, with no request", async ({
    expect,
    onTestFinished,
  }) => {
    const host = await aHost({ onTestFinished });
    await host.do("create", { binding: "SLEEPER", id: "night", params: { ms: 2_000 } });
    await expect
      .poll(() => host.do("status", { binding: "SLEEPER", id: "night" }), PATIENCE)
      .toMatchObject({ status: "waiting" });
    await host.stop();
    await host.start();
    await expect.poll(() => host.ledger, PATIENCE).toEqual(["night woke"]);
  });
});

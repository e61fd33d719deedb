import { describe, test } from "vitest";
import { aHost } from "./support/host.js";

const PATIENCE = { timeout: 40_000, interval: 50 };

describe.concurrent("a Durable Object that ends", () => {
  test("is taken over by a new activation at once after an eviction, at the cost of one attempt", async ({
    expect,
    onTestFinished,
  }) => {
    const host = await aHost({ onTestFinished });
    await host.do("create", { binding: "LONG", id: "long", params: { ms: 500 } });
    await expect.poll(() => host.ledger, PATIENCE).toEqual(["long began 1"]);
    const evictedAtMs = Date.now();
    await host.do("evict");
    expect(await host.do("result", { binding: "LONG", id: "long" })).toBe(2);
    // A lease is 30 seconds, so nobody waited for it.
    expect(Date.now() - evictedAtMs).toBeLessThan(15_000);
    expect(host.ledger).toEqual(["long began 1", "long began 2", "long ended 2"]);
  });

  test("is brought back by its alarm alone when it was evicted during a body", async ({
    expect,
    onTestFinished,
  }) => {
    const host = await aHost({ onTestFinished });
    await host.do("create", { binding: "LONG", id: "alone", params: { ms: 500 } });
    await expect.poll(() => host.ledger, PATIENCE).toEqual(["alone began 1"]);
    await host.do("evict");
    // No request comes. The heartbeat's alarm brings the object back.
    await expect
      .poll(() => host.ledger, PATIENCE)
      .toEqual(["alone began 1", "alone began 2", "alone ended 2"]);
  });

  test("stays alive by its heartbeat while a body runs for longer than workerd waits", async ({
    expect,
    onTestFinished,
  }) => {
    const host = await aHost({ onTestFinished });
    await host.do("create", { binding: "LONG", id: "patient", params: { ms: 14_000 } });
    // No request comes meanwhile, because that would keep the object alive, too.
    await expect.poll(() => host.ledger, PATIENCE).toEqual(["patient began 1", "patient ended 1"]);
    await expect.poll(() => host.do("alarmAt"), PATIENCE).toBe(null);
  });

  test("lets a sleeping run go on when workerd comes back, without a request", async ({
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

import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { HostProcess } from "./support/host.js";

describe("the engine in a Durable Object, in workerd", () => {
  let host: HostProcess;

  beforeAll(async () => {
    host = await HostProcess.start();
  });
  afterAll(() => host.end());

  test("an instance runs its steps", async () => {
    await host.do("create", { binding: "STEPS", id: "ten", params: { steps: 10 } });
    expect(await host.do("result", { binding: "STEPS", id: "ten" })).toBe(55);
  });

  test("an alarm ends a sleep, on time", async () => {
    await host.do("create", { binding: "SLEEPER", id: "nap", params: { ms: 1_500 } });
    const { sleptMs } = await host.do<{ sleptMs: number }>("result", {
      binding: "SLEEPER",
      id: "nap",
    });
    expect(sleptMs).toBeGreaterThanOrEqual(1_500);
    expect(sleptMs).toBeLessThan(4_000);
  });

  test("an alarm starts the next attempt", async () => {
    await host.do("create", { binding: "RETRIES", id: "again" });
    expect(await host.do("result", { binding: "RETRIES", id: "again" })).toBe(3);
  });

  test("events arrive, and values keep their types on the way there and back", async () => {
    await host.do("create", { binding: "WAITER", id: "word" });
    expect(await host.do("word", { id: "word" })).toBe(true);
  });

  test("an author's error reaches the caller with its class, name and message", async () => {
    await host.do("create", { binding: "FAILS", id: "custom", params: { how: "custom" } });
    expect(await host.do("thrown", { id: "custom" })).toMatchObject({
      isNonRetryable: true,
      name: "CustomName",
      message: "never",
    });
  });

  test("a caller's mistake is a WorkflowError with its code", async () => {
    const refused = (binding: string, method: string, id: unknown) =>
      host.do("refused", { binding, method, id });
    expect(await refused("STEPS", "get", "nobody")).toEqual({
      isWorkflowError: true,
      code: "INSTANCE_NOT_FOUND",
    });
    expect(await refused("STEPS", "create", { id: "ten" })).toMatchObject({
      code: "INSTANCE_ID_ALREADY_EXISTS",
    });
    expect(await refused("STEPS", "create", { id: "no spaces" })).toMatchObject({
      code: "INVALID_INSTANCE_ID",
    });
    expect(await refused("NOBODY", "get", "x")).toMatchObject({ code: "WORKFLOW_NOT_FOUND" });
    expect(await refused("toString", "get", "x")).toMatchObject({ code: "WORKFLOW_NOT_FOUND" });
  });

  test("the HTTP API is the engine's own", async () => {
    const made = await host.fetch("/api/workflows/steps/instances", {
      method: "POST",
      body: JSON.stringify({ id: "over-http", params: { steps: 2 } }),
    });
    expect({ status: made.status, body: await made.json() }).toMatchObject({
      body: { id: "over-http" },
    });
    expect(await host.do("result", { binding: "STEPS", id: "over-http" })).toBe(3);
    const page = await host.fetch("/api/workflows/steps/instances?pageSize=100");
    expect(JSON.stringify(await page.json())).toContain("over-http");
  });

  test("there is no alarm while nothing is due", async () => {
    await expect.poll(() => host.do("alarmAt"), { timeout: 20_000, interval: 200 }).toBe(null);
  });
});

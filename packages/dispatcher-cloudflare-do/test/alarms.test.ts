import { expect, test } from "vitest";
import { bundled, worker, workerd } from "./support/workerd.js";

type Count = { readonly begun: number };

test("the alarm of a crowd starts at most 200 runs itself, and the rest begin after it", async ({
  onTestFinished,
}) => {
  const server = workerd(await bundled(worker("alarms")), "Host");
  onTestFinished(() => server.dispose());
  const told = async () => {
    const answer = await server.dispatchFetch("http://host/");
    return (await answer.json()) as { all: Count; handlers: Count[] };
  };
  const body = JSON.stringify({ count: 1_000, until: Date.now() + 6_000 });
  await server.dispatchFetch("http://host/", { method: "POST", body });
  expect((await told()).all.begun).toBe(0);
  const patience = { timeout: 40_000, interval: 50 };
  await expect.poll(async () => (await told()).all.begun, patience).toBe(1_000);
  // A handler starts at most the runs of a claim that was on its way and of one of its own, 100 each.
  expect(Math.max(...(await told()).handlers.map(({ begun }) => begun))).toBeLessThanOrEqual(200);
});

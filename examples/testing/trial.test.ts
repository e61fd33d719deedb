import { createHarness } from "pawl/testing";
import { expect, test } from "vitest";
import { TRIAL } from "./trial.js";

test("a customer who chooses a plan keeps it", async () => {
  const h = await createHarness({ workflows: { TRIAL } });
  h.mockStep("welcome", "sent");
  const trial = await h.workflows.TRIAL.create({ params: { email: "ada@example.org" } });
  await h.runUntilIdle();
  await h.clock.advance("14 days");
  await trial.sendEvent({ type: "chose", payload: { plan: "pro" } });
  await h.runUntilIdle();
  expect(await trial.status()).toEqual({ status: "complete", output: { plan: "pro" } });
  await h.close();
});

test("a customer who chooses none gets a goodbye", async () => {
  const h = await createHarness({ workflows: { TRIAL } });
  h.mockStep("welcome", "sent");
  h.mockStep("goodbye", "sent");
  const trial = await h.workflows.TRIAL.create({ params: { email: "ada@example.org" } });
  for (const wait of ["0 days", "14 days", "3 days"]) {
    await h.clock.advance(wait);
    await h.runUntilIdle();
  }
  expect(await trial.status()).toEqual({ status: "complete", output: { plan: "none" } });
  await h.close();
});

test("a mail server that comes back in time costs nothing but time", async () => {
  const h = await createHarness({ workflows: { TRIAL } });
  h.mockStep("welcome", new Error("away"), { times: 2 });
  h.mockStep("welcome", "sent");
  h.disableRetryDelays();
  const trial = await h.workflows.TRIAL.create({ params: { email: "ada@example.org" } });
  await h.runUntilIdle();
  const { entries } = await h.history("trial", trial.id);
  expect(entries[0]).toMatchObject({ name: "welcome", status: "completed", result: "sent" });
  await h.close();
});

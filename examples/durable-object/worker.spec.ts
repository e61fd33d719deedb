import { workflowsBinding } from "@pawl/dispatcher-cloudflare-do";
import { runDurableObjectAlarm, SELF } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { expect, test } from "vitest";
import type { registry } from "./workflows.js";

const { ORDER } = workflowsBinding<typeof registry>(env.PAWL);

test("an order is charged, cools off, and is approved", async () => {
  const order = await ORDER.create({ params: { customer: "Ada" } });
  await order.sendEvent({ type: "approved", payload: { by: "Grace" } });
  expect(await order.result({ timeout: "20 seconds" })).toEqual({
    payment: "charged Ada",
    approvedBy: "Grace",
  });
});

test("a sleeping order has set the alarm", async () => {
  const order = await ORDER.create({ params: { customer: "Lin" } });
  await expect.poll(() => order.status(), { timeout: 10_000 }).toEqual({ status: "waiting" });
  const object = env.PAWL.get(env.PAWL.idFromName("pawl"));
  expect(await runDurableObjectAlarm(object)).toBe(true);
});

test("the API wants the token", async () => {
  const answer = await SELF.fetch("http://orders/api/workflows");
  expect(answer.status).toBe(401);
});

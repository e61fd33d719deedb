import { defineWorkflow } from "pawl";
import { z } from "zod";

export const ORDER = defineWorkflow({
  name: "order",
  params: z.object({ orderId: z.number(), email: z.string() }),
  events: { paid: z.object({ amount: z.number() }) },
  async run(event, step) {
    const { orderId, email } = event.payload;
    const paid = await step.waitForEvent("payment", { type: "paid", timeout: "3 days" });
    await step.do("send a receipt", () => `${paid.payload.amount} for ${orderId}, to ${email}`);
    return { orderId, amount: paid.payload.amount };
  },
});

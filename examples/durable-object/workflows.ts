import { defineRegistry, WorkflowEntrypoint, type WorkflowEvent, type WorkflowStep } from "pawl";

type Order = { readonly customer: string };

class OrderWorkflow extends WorkflowEntrypoint<unknown, Order> {
  override async run(event: WorkflowEvent<Order>, step: WorkflowStep) {
    const payment = await step.do("charge", async () => `charged ${event.payload.customer}`);
    await step.sleep("cool off", "1 second");
    const { payload } = await step.waitForEvent<{ by: string }>("approval", {
      type: "approved",
      timeout: "7 days",
    });
    return { payment, approvedBy: payload.by };
  }
}

export const registry = defineRegistry({ ORDER: { name: "order", workflow: OrderWorkflow } });

import {
  workflowsBinding,
  workflowsDurableObject,
  workflowsFetch,
} from "@pawl/dispatcher-cloudflare-do";
import { defineRegistry, WorkflowEntrypoint, type WorkflowEvent, type WorkflowStep } from "pawl";
import { bearerToken } from "pawl/auth";

type Env = { readonly PAWL: DurableObjectNamespace; readonly API_TOKEN: string };
type Order = { readonly customer: string };

class OrderWorkflow extends WorkflowEntrypoint<Env, Order> {
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

const registry = defineRegistry({ ORDER: { name: "order", workflow: OrderWorkflow } });
export type Orders = typeof registry;

export const PawlHost = workflowsDurableObject((env: Env) => ({
  workflows: registry,
  authorize: { all: bearerToken(env.API_TOKEN) },
}));

export default {
  async fetch(request, env) {
    const { pathname } = new URL(request.url);
    if (pathname.startsWith("/api/")) return workflowsFetch(env.PAWL, request);

    const { ORDER } = workflowsBinding<typeof registry>(env.PAWL);
    const order = await ORDER.create({ params: { customer: "Ada" } });
    return Response.json({ id: order.id });
  },
} satisfies ExportedHandler<Env>;

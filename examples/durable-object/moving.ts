import { workflowsBinding, workflowsDurableObject } from "@pawl/dispatcher-cloudflare-do";
import { WorkflowEntrypoint as CloudflareEntrypoint } from "cloudflare:workers";
import type {
  WorkflowEvent as CloudflareEvent,
  WorkflowStep as CloudflareStep,
} from "cloudflare:workers";
import {
  defineRegistry,
  WorkflowEntrypoint,
  WorkflowError,
  type WorkflowEvent,
  type WorkflowStep,
} from "pawl";

type Order = { readonly customer: string };

// #region code
/** The options of both engines. */
type Steps = Pick<CloudflareStep & WorkflowStep, "sleep"> & {
  do(name: string, body: () => Promise<string>): Promise<string>;
};

async function fulfil({ customer }: Order, step: Steps): Promise<string> {
  const payment = await step.do("charge", async () => `charged ${customer}`);
  await step.sleep("cool off", "1 second");
  return payment;
}
// #endregion

// #region both
type Env = { readonly OLD_ORDERS: Workflow<Order>; readonly PAWL: DurableObjectNamespace };

/** Orders that began with Cloudflare's engine end there. */
export class OldOrders extends CloudflareEntrypoint<Env, Order> {
  override run(event: CloudflareEvent<Order>, step: CloudflareStep) {
    return fulfil(event.payload, step);
  }
}

class Orders extends WorkflowEntrypoint<Env, Order> {
  override run(event: WorkflowEvent<Order>, step: WorkflowStep) {
    return fulfil(event.payload, step);
  }
}

const registry = defineRegistry({ ORDER: { name: "order", workflow: Orders } });
export const PawlHost = workflowsDurableObject({ workflows: registry });

async function orderOf(env: Env, id: string) {
  const { ORDER } = workflowsBinding<typeof registry>(env.PAWL);
  try {
    return await ORDER.get(id);
  } catch (error) {
    if (!(error instanceof WorkflowError && error.code === "INSTANCE_NOT_FOUND")) throw error;
    return env.OLD_ORDERS.get(id);
  }
}
// #endregion

export default {
  async fetch(request, env) {
    const url = new URL(request.url);
    const id = url.searchParams.get("id") ?? "";
    const params = { customer: "Ada" };
    switch (url.pathname) {
      case "/old":
        await env.OLD_ORDERS.create({ id, params });
        break;
      case "/new":
        await workflowsBinding<typeof registry>(env.PAWL).ORDER.create({ id, params });
        break;
    }
    return Response.json(await (await orderOf(env, id)).status());
  },
} satisfies ExportedHandler<Env>;

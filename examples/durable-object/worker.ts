import {
  workflowsBinding,
  workflowsDurableObject,
  workflowsFetch,
} from "@pawl/dispatcher-cloudflare-do";
import { bearerToken } from "pawl/auth";
import { registry } from "./workflows.js";

type Env = { readonly PAWL: DurableObjectNamespace; readonly API_TOKEN: string };

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

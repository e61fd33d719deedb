import { workflowsDurableObject } from "@pawl/dispatcher-cloudflare-do";
import { defineRegistry, defineWorkflow } from "pawl";

const workflows = defineRegistry({ PING: defineWorkflow({ name: "ping", run: () => "pong" }) });

export class Host extends workflowsDurableObject({ workflows }) {}

function messageOf(options: object): string {
  try {
    workflowsDurableObject({ workflows, ...options });
    return "taken";
  } catch (error) {
    return String(error);
  }
}

export default {
  fetch: async (request) => Response.json(messageOf(await request.json())),
} satisfies ExportedHandler;

import { workflowsBinding, workflowsDurableObject } from "@pawl/dispatcher-cloudflare-do";
import { defineRegistry, defineWorkflow } from "pawl";

type Env = { readonly OBJECTS: DurableObjectNamespace };

type Count = { begun: number };

const all: Count = { begun: 0 };
/** How many bodies began while each alarm's handler ran. */
const handlers: Count[] = [];
const counting = new Set([all]);

const registry = defineRegistry({
  CROWD: defineWorkflow({
    name: "crowd",
    async run(event, step) {
      const { until } = event.payload as { until: number };
      await step.sleepUntil("all at once", new Date(until));
      return step.do("body", () => {
        for (const count of counting) count.begun += 1;
      });
    },
  }),
});

export class Host extends workflowsDurableObject<typeof registry, Env>({ workflows: registry }) {
  override async alarm(): Promise<void> {
    const count: Count = { begun: 0 };
    handlers.push(count);
    counting.add(count);
    await super.alarm?.();
    counting.delete(count);
  }
}

/** GET tells what was counted, POST creates instances that wake at the same time. */
export default {
  async fetch(request, { OBJECTS }) {
    if (request.method === "GET") return Response.json({ all, handlers });
    const { count, until } = (await request.json()) as { count: number; until: number };
    const { CROWD } = workflowsBinding<typeof registry>(OBJECTS);
    const batch = Array.from({ length: count }, (_, n) => ({ id: `c${n}`, params: { until } }));
    for (let from = 0; from < count; from += 100) {
      await CROWD.createBatch(batch.slice(from, from + 100));
    }
    return new Response(null, { status: 204 });
  },
} satisfies ExportedHandler<Env>;

import { workflowsBinding, workflowsDurableObject } from "@pawl/dispatcher-cloudflare-do";
import { defineRegistry, defineWorkflow } from "pawl";

type Env = { readonly OBJECTS: DurableObjectNamespace };

let begun = 0;
/** How many bodies began while each alarm's handler ran. */
const begunWhile: number[] = [];

const registry = defineRegistry({
  CROWD: defineWorkflow({
    name: "crowd",
    async run(event, step) {
      const { until } = event.payload as { until: number };
      await step.sleepUntil("all at once", new Date(until));
      return step.do("body", () => void (begun += 1));
    },
  }),
});

export class Host extends workflowsDurableObject<typeof registry, Env>({ workflows: registry }) {
  override async alarm(): Promise<void> {
    const before = begun;
    await super.alarm?.();
    begunWhile.push(begun - before);
  }
}

/** GET tells what was counted, POST creates instances that wake at the same time. */
export default {
  async fetch(request, { OBJECTS }) {
    if (request.method === "GET") return Response.json({ begun, begunWhile });
    const { count, until } = (await request.json()) as { count: number; until: number };
    const { CROWD } = workflowsBinding<typeof registry>(OBJECTS);
    const batch = Array.from({ length: count }, (_, n) => ({ id: `c${n}`, params: { until } }));
    for (let from = 0; from < count; from += 100) {
      await CROWD.createBatch(batch.slice(from, from + 100));
    }
    return new Response(null, { status: 204 });
  },
} satisfies ExportedHandler<Env>;

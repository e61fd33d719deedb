import {
  createWorkflows,
  defineWorkflow,
  WorkflowEntrypoint,
  type AuthorizeRequest,
  type History,
  type InstanceList,
  type InstanceStatus,
  type Workflow,
  type WorkflowEvent,
  type WorkflowStep,
} from "pawl";
import { bearerToken } from "pawl/auth";
import { createClient, type ClientInstance } from "pawl/client";
import * as v from "valibot";
import { same } from "../same.js";
import { store, type Handle } from "../store.js";

type Params = { readonly orderId: string };

class OrderWorkflow extends WorkflowEntrypoint<unknown, Params> {
  override async run(_event: WorkflowEvent<Params>, _step: WorkflowStep) {
    return { shipped: true };
  }
}

const pawl = createWorkflows({
  workflows: {
    ORDER: { name: "order", workflow: OrderWorkflow },
    PING: defineWorkflow({
      name: "ping",
      params: v.optional(v.object({ to: v.string() })),
      events: { go: v.object({ n: v.number() }) },
      run: async () => 5,
    }),
  },
  store,
  basePath: "/v1",
  authorize: {
    all: bearerToken(["a", "b"]),
    create: async ({ headers, params, route, body }: AuthorizeRequest) => {
      same<Headers>()(headers);
      same<string | undefined>()(params["workflowName"]);
      same<string | null>()(route);
      same<unknown>()(await body());
      return new Response(null, { status: 402 });
    },
    read: () => {},
    // @ts-expect-error a policy says no by throwing
    manage: () => false,
  },
  tick: { enabled: true, insecure: true },
});

// This is what frameworks and runtimes want.
const handler: (request: Request) => Promise<Response> = pawl.fetch;
export default { fetch: pawl.fetch };
void handler;

export async function typed(signal: AbortSignal, tx: Handle) {
  const client = createClient<typeof pawl>({
    baseUrl: "https://example.org/api",
    headers: async () => ({ authorization: "Bearer a" }),
    fetch: (url, init) => fetch(url, init),
  });
  const order = await client.workflows.ORDER.create({ params: { orderId: "1" } }, { signal });
  same<InstanceStatus<{ shipped: boolean }>>()(await order.status({ signal }));
  same<{ shipped: boolean }>()(await order.result({ timeout: "1 minute", signal }));
  const [first] = await client.workflows.ORDER.createBatch([{ id: "a", params: { orderId: "1" } }]);
  same<typeof order | undefined>()(first);
  same<void>()(await order.pause({ signal }));
  const ping = await client.workflows.PING.create();
  same<number>()(await ping.result());
  await ping.sendEvent({ type: "go", payload: { n: 1 } }, { signal });
  same<InstanceList>()(await client.list("order", { status: "running" }, { signal }));
  same<History>()(await client.history("order", "a"));

  // @ts-expect-error params are required
  await client.workflows.ORDER.create();
  // @ts-expect-error of the right type
  await client.workflows.ORDER.create({ params: { orderId: 1 } });
  // @ts-expect-error a transaction does not cross the network
  await client.workflows.ORDER.create({ params: { orderId: "1" } }, { tx });
  // @ts-expect-error as declared
  await ping.sendEvent({ type: "stop" });
  // @ts-expect-error as declared
  await ping.sendEvent({ type: "go", payload: {} });
  // @ts-expect-error no such binding
  void client.workflows.OTHER;

  // Code that starts workflows need not know how.
  const start = (workflow: Workflow<Params>) => workflow.create({ params: { orderId: "1" } });
  await start(client.workflows.ORDER);
  await start(pawl.workflows.ORDER);
}

export async function untyped() {
  const client = createClient({ baseUrl: "/api" });
  same<ClientInstance | undefined>()(await client.workflows["ANY"]?.create({ params: 1 }));
}

import {
  createWorkflows,
  defineRegistry,
  defineWorkflow,
  WorkflowEntrypoint,
  type InstanceStatus,
  type Workflow,
  type WorkflowEvent,
  type WorkflowStep,
} from "pawl";
import { same } from "../same.js";
import { store, type Handle } from "../store.js";

type Params = { readonly orderId: string };

class OrderWorkflow extends WorkflowEntrypoint<unknown, Params> {
  override async run(event: WorkflowEvent<Params>, step: WorkflowStep) {
    same<string>()(event.payload.orderId);
    same<string>()(event.instanceId);
    same<string>()(event.workflowName);
    same<number>()(event.runNumber);
    same<Date>()(event.timestamp);
    // @ts-expect-error the payload is the caller's: read only
    event.payload.orderId = "other";

    same<number>()(await step.do("number", () => 1));
    same<{ a: number }>()(await step.do("object", async () => ({ a: 1 })));
    same<void>()(await step.do("nothing", async () => {}));
    same<string | null>()(await step.do("union", async (): Promise<string | null> => null));
    const config = {
      retries: { limit: 2, delay: "5 seconds", backoff: "linear", jitter: { min: 0, max: "1 s" } },
      timeout: 1_000,
    } as const;
    const attempt = await step.do(
      "config",
      config,
      async ({ attempt: n, signal, step: of, config: effective }) => {
        same<AbortSignal>()(signal);
        same<{ readonly name: string; readonly count: number }>()(of);
        same<number>()(effective.retries.limit);
        return n;
      },
    );
    same<number>()(attempt);
    await step.do(
      "rest",
      { retries: { limit: Infinity, delay: 1, jitter: true, maxDelay: "1 h" } },
      () => 1,
    );
    await step.do("own rule", { retries: { limit: 1, delay: 1, retryable: () => false } }, () => 1);
    // @ts-expect-error no such backoff
    await step.do("wrong", { retries: { limit: 1, delay: 1, backoff: "random" } }, () => 1);
    // @ts-expect-error a step has a callback
    await step.do("empty", {});

    same<void>()(await step.sleep("wait", "1 hour"));
    same<void>()(await step.sleepUntil("until", event.timestamp));
    const approval = await step.waitForEvent<{ ok: boolean }>("wait", { type: "approval" });
    same<Readonly<{ ok: boolean }>>()(approval.payload);
    same<Date>()(approval.timestamp);
    const anything = await step.waitForEvent("wait", { type: "any", timeout: "1 day" });
    // @ts-expect-error nobody said what it is
    void anything.payload.ok;

    // Nothing is registered here, so any binding may be there.
    same<Workflow | undefined>()(this.workflows["CHILD"]);
    await this.workflows["CHILD"]?.create({ params: 1 });
    return { shipped: true };
  }
}

class Anything extends WorkflowEntrypoint {
  override async run() {}
}

const registry = defineRegistry({
  ORDER: { name: "order", workflow: OrderWorkflow },
  ANY: { name: "any", workflow: Anything },
});
const { workflows } = createWorkflows({ workflows: registry, store });

export async function bindings(tx: Handle) {
  const order = await workflows.ORDER.create({ id: "a", params: { orderId: "1" } }, { tx });
  same<string>()(order.id);
  same<{ shipped: boolean }>()(
    await order.result({ timeout: "1 minute", signal: new AbortController().signal }),
  );
  same<InstanceStatus<{ shipped: boolean }>>()(await order.status());
  same<{ shipped: boolean } | undefined>()((await order.status()).output);
  await order.sendEvent({ type: "anything", payload: 1, id: "1" }, { tx });
  await order.sendEvent({ type: "anything" });
  const [first] = await workflows.ORDER.createBatch([{ id: "a", params: { orderId: "1" } }], {
    tx,
  });
  same<typeof order | undefined>()(first);
  same<typeof order>()(await workflows.ORDER.get("a"));
  await workflows.ANY.create();
  await workflows.ANY.create({ params: ["anything"] });
  same<void>()(await (await workflows.ANY.create()).result());

  // @ts-expect-error params are required
  await workflows.ORDER.create({ id: "a" });
  // @ts-expect-error and options with them
  await workflows.ORDER.create();
  // @ts-expect-error of the right type
  await workflows.ORDER.create({ params: { orderId: 1 } });
  // @ts-expect-error no other options
  await workflows.ORDER.create({ params: { orderId: "1" }, name: "a" });
  // @ts-expect-error a batch needs ids
  await workflows.ORDER.createBatch([{ params: { orderId: "1" } }]);
  // @ts-expect-error not a transaction of this store
  await workflows.ORDER.create({ params: { orderId: "1" } }, { tx: "tx" });
  // @ts-expect-error an event has a type
  await order.sendEvent({ payload: 1 });
  // @ts-expect-error no such binding
  void workflows.OTHER;

  // A function may ask for only what it needs.
  const start = (workflow: Workflow<Params>) => workflow.create({ params: { orderId: "1" } });
  await start(workflows.ORDER);
}

const annotated = defineWorkflow({
  name: "annotated",
  run: async (event: WorkflowEvent<Params>, step) => {
    // A helper takes any step.
    const wait = (any: WorkflowStep) => any.sleep("wait", 1);
    await wait(step);
    return event.payload.orderId;
  },
});

export async function functions() {
  const { FN } = createWorkflows({ workflows: { FN: annotated }, store }).workflows;
  same<string>()(await (await FN.create({ params: { orderId: "1" } })).result());
  // @ts-expect-error as annotated
  await FN.create({ params: { orderId: 1 } });
}

// @ts-expect-error not a workflow class
defineRegistry({ DATE: { name: "date", workflow: Date } });
// @ts-expect-error no name
defineRegistry({ ORDER: { workflow: OrderWorkflow } });
// @ts-expect-error a class alone has no name
defineRegistry({ ORDER: OrderWorkflow });

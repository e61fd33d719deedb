import {
  workflowsBinding,
  workflowsDurableObject,
  workflowsFetch,
} from "@pawl/dispatcher-cloudflare-do";
import { defineRegistry, defineWorkflow, NonRetryableError, WorkflowError } from "pawl";

type Env = { readonly OBJECTS: DurableObjectNamespace; readonly LEDGER: Fetcher };

/** Tells the test, outside of workerd, that something has begun. */
async function note(env: Env, line: string): Promise<void> {
  await env.LEDGER.fetch("http://ledger/", { method: "POST", body: line });
}

const registry = defineRegistry({
  STEPS: defineWorkflow({
    name: "steps",
    async run(event, step, { env }) {
      const { steps = 1 } = event.payload as { steps?: number };
      let sum = 0;
      for (let n = 1; n <= steps; n++) {
        sum += await step.do(`step ${n}`, async ({ attempt }) => {
          await note(env as Env, `${event.instanceId} ${n} ${attempt}`);
          return n;
        });
      }
      return sum;
    },
  }),
  SLEEPER: defineWorkflow({
    name: "sleeper",
    async run(event, step, { env }) {
      const { ms } = event.payload as { ms: number };
      const sleptFrom = await step.do("before", () => Date.now());
      await step.sleep("nap", ms);
      const wokeAt = await step.do("after", async () => {
        await note(env as Env, `${event.instanceId} woke`);
        return Date.now();
      });
      return { sleptMs: wokeAt - sleptFrom };
    },
  }),
  RETRIES: defineWorkflow({
    name: "retries",
    run: (_, step) =>
      step.do(
        "flaky",
        { retries: { limit: 3, delay: 200, backoff: "constant" } },
        ({ attempt }) => {
          if (attempt < 3) throw new Error(`attempt ${attempt}`);
          return attempt;
        },
      ),
  }),
  WAITER: defineWorkflow({
    name: "waiter",
    async run(_, step) {
      const { payload } = await step.waitForEvent("the word", { type: "word" });
      return payload;
    },
  }),
  LONG: defineWorkflow({
    name: "long",
    async run(event, step, { env }) {
      const { ms } = event.payload as { ms: number };
      return step.do("body", { retries: { limit: 2, delay: 10 } }, async ({ attempt }) => {
        await note(env as Env, `${event.instanceId} began ${attempt}`);
        await scheduler.wait(ms);
        await note(env as Env, `${event.instanceId} ended ${attempt}`);
        return attempt;
      });
    },
  }),
  FAILS: defineWorkflow({
    name: "fails",
    async run(event, step) {
      const { how } = event.payload as { how: string };
      await step.do("fail", () => {
        if (how === "type") throw new TypeError("no such thing", { cause: new RangeError("deep") });
        throw new NonRetryableError("never", "CustomName");
      });
    },
  }),
});

export class Host extends workflowsDurableObject<typeof registry, Env>({ workflows: registry }) {
  /** Evicts the object, as if the machine had gone. For the tests alone. */
  async evict(): Promise<void> {
    this.ctx.abort("evicted");
  }

  async alarmAt(): Promise<number | null> {
    return this.ctx.storage.getAlarm();
  }
}

type Script = { readonly [name: string]: (env: Env, input: never) => Promise<unknown> };

/** The requests of tests to the worker, about its bindings. */
const actions: Script = {
  async create(
    { OBJECTS },
    { binding, ...options }: { binding: "STEPS"; id: string; params: unknown },
  ) {
    return (await workflowsBinding<typeof registry>(OBJECTS)[binding].create(options)).id;
  },
  async createBatch({ OBJECTS }, { ids }: { ids: string[] }) {
    const made = await workflowsBinding<typeof registry>(OBJECTS).STEPS.createBatch(
      ids.map((id) => ({ id, params: { steps: 1 } })),
    );
    return made.map(({ id }) => id);
  },
  async status({ OBJECTS }, { binding, id }: { binding: "STEPS"; id: string }) {
    return (await workflowsBinding<typeof registry>(OBJECTS)[binding].get(id)).status();
  },
  async result({ OBJECTS }, { binding, id }: { binding: "STEPS"; id: string }) {
    const instance = await workflowsBinding<typeof registry>(OBJECTS)[binding].get(id);
    return instance.result({ timeout: "30 seconds" });
  },
  async control(
    { OBJECTS },
    { binding, id, does }: { binding: "STEPS"; id: string; does: "pause" },
  ) {
    await (await workflowsBinding<typeof registry>(OBJECTS)[binding].get(id))[does]();
  },
  /** Sends a value there and back that JSON would lose. */
  async word({ OBJECTS }, { id }: { id: string }) {
    const { WAITER } = workflowsBinding<typeof registry>(OBJECTS);
    const instance = await WAITER.get(id);
    await instance.sendEvent({ type: "word", payload: new Map([["at", new Date(5)]]) });
    const output = (await instance.result({ timeout: 10_000 })) as Map<string, Date>;
    return output instanceof Map && output.get("at")?.getTime() === 5;
  },
  async thrown({ OBJECTS }, { id }: { id: string }) {
    const instance = await workflowsBinding<typeof registry>(OBJECTS).FAILS.get(id);
    const error: unknown = await instance.result({ timeout: 10_000 }).catch((e: unknown) => e);
    return {
      isTypeError: error instanceof TypeError,
      isNonRetryable: error instanceof NonRetryableError,
      name: (error as Error).name,
      message: (error as Error).message,
      causeIsRangeError: (error as Error).cause instanceof RangeError,
    };
  },
  async refused({ OBJECTS }, input: { binding: string; id: string; method: string }) {
    const bindings = workflowsBinding<typeof registry>(OBJECTS) as Record<string, any>;
    const binding = bindings[input.binding];
    const error: unknown = await binding[input.method](input.id).catch((e: unknown) => e);
    return { isWorkflowError: error instanceof WorkflowError, code: (error as WorkflowError).code };
  },
  evict: ({ OBJECTS }) =>
    hostIn(OBJECTS)
      .evict()
      .catch(() => {}),
  alarmAt: ({ OBJECTS }) => hostIn(OBJECTS).alarmAt(),
};

function hostIn(OBJECTS: DurableObjectNamespace): Pick<Host, "evict" | "alarmAt"> {
  return OBJECTS.get(OBJECTS.idFromName("pawl")) as unknown as Host;
}

export default {
  async fetch(request, env) {
    const { pathname } = new URL(request.url);
    if (pathname.startsWith("/api/")) return workflowsFetch(env.OBJECTS, request);
    try {
      const action = actions[pathname.slice(1)];
      const value = await action?.(env, await request.json());
      return Response.json({ value: value ?? null });
    } catch (error) {
      const { name, message, code } = error as WorkflowError;
      return Response.json({ name, message, code }, { status: 500 });
    }
  },
} satisfies ExportedHandler<Env>;

import {
  workflowsBinding,
  workflowsDurableObject,
  workflowsFetch,
  type Sharding,
  type SpreadOptions,
  type WorkflowsObject,
} from "@pawl/dispatcher-cloudflare-do";
import { defineRegistry, defineWorkflow, WorkflowEntrypoint } from "pawl";
import type { WorkflowError, WorkflowEvent, WorkflowStep } from "pawl";

type Env = {
  readonly OBJECTS: DurableObjectNamespace;
  readonly LEDGER: Fetcher;
  /** The sharding, as JSON. */
  readonly SHARDING: string;
  /** If set, the objects are not told of their namespace. */
  readonly NAMELESS?: string;
  /** If set, SLEEPER is not among the workflows. */
  readonly SLEEPLESS?: string;
};

async function note(env: Env, line: string): Promise<void> {
  await env.LEDGER.fetch("http://ledger/", { method: "POST", body: line });
}

type Family = {
  readonly children: number;
  readonly ids?: readonly string[];
  readonly how?: string;
};
type Maker = { create(options: { id?: string; params?: unknown }): Promise<{ id: string }> };

class Parent extends WorkflowEntrypoint<Env, Family> {
  override async run({ payload, instanceId }: WorkflowEvent<Family>, step: WorkflowStep) {
    const { CHILD } = this.workflows as unknown as { CHILD: Maker };
    return step.do("make", { retries: { limit: 3, delay: 10 } }, async ({ attempt }) => {
      const made: string[] = [];
      for (let n = 0; n < payload.children; n++) {
        const id = payload.ids?.[n];
        const child = await CHILD.create({ params: n, ...(id === undefined ? {} : { id }) });
        made.push(child.id);
      }
      await note(this.env, `${instanceId} made ${attempt}`);
      if (attempt === 1 && payload.how === "throws") throw new Error("after it has made them");
      if (attempt === 1 && payload.how === "hangs") await new Promise(() => {});
      return made;
    });
  }
}

const even = {
  "~standard": {
    version: 1 as const,
    vendor: "test",
    validate: (value: unknown) =>
      Number(value) % 2 === 0 ? { value } : { issues: [{ message: "must be even" }] },
  },
};

const registry = defineRegistry({
  PARENT: { name: "parent", workflow: Parent },
  CHILD: defineWorkflow({
    name: "child",
    run: (event, step, { env }) =>
      step.do("ran", async () => {
        await note(env as Env, `${event.instanceId} ran`);
        return event.payload;
      }),
  }),
  WAITER: defineWorkflow({
    name: "waiter",
    async run(_, step) {
      return (await step.waitForEvent("the word", { type: "word" })).payload;
    },
  }),
  SLEEPER: defineWorkflow({
    name: "sleeper",
    async run(event, step, { env }) {
      await step.sleep("nap", "2 seconds");
      await step.do("wake", () => note(env as Env, `${event.instanceId} woke`));
    },
  }),
  EVEN: defineWorkflow({ name: "even", params: even, run: (event) => event.payload }),
});

function optionsOf(env: Env): SpreadOptions<typeof registry> {
  const { SLEEPER, ...sleepless } = registry;
  const workflows = env.SLEEPLESS === undefined ? { SLEEPER, ...sleepless } : sleepless;
  return {
    workflows: workflows as typeof registry,
    ...(JSON.parse(env.SHARDING) as Sharding),
  };
}

type Sibling = WorkflowsObject["sibling"];

export class Host extends workflowsDurableObject<typeof registry, Env>((env) => ({
  ...optionsOf(env),
  namespace: env.NAMELESS === undefined ? env.OBJECTS : undefined,
  logger: {
    debug() {},
    info() {},
    warn: (event) => void note(env, event),
    error: (event) => void note(env, event),
  },
  hooks: { onInstanceFinished: ({ instanceId }) => note(env, `${instanceId} finished`) },
})) {
  #lost = 0;

  override async sibling(call: Parameters<Sibling>[0]): ReturnType<Sibling> {
    const answer = await super.sibling(call);
    if (this.#lost === 0) return answer;
    this.#lost -= 1;
    throw new Error("what was asked is done, and the answer is lost");
  }

  // These methods are for the tests alone.
  async lose(answers: number): Promise<void> {
    this.#lost = answers;
  }

  async alarmAt(): Promise<number | null> {
    return this.ctx.storage.getAlarm();
  }

  async evict(): Promise<void> {
    this.ctx.abort("evicted");
  }

  async ids(): Promise<string[]> {
    const query = "SELECT id FROM pawl_instance";
    return this.ctx.storage.sql
      .exec<{ id: string }>(query)
      .toArray()
      .map(({ id }) => id);
  }
}

type Input = {
  readonly binding: "CHILD";
  readonly id: string;
  readonly params?: unknown;
  readonly batch: { id: string; params?: unknown }[];
  readonly method: "pause";
  readonly object: string;
  readonly answers: number;
  readonly letter: string;
  readonly count: number;
  /** Whether to act as a caller that does not know of shards. */
  readonly unrouted?: boolean;
};

const actions: {
  readonly [name: string]: (env: Env, input: Input) => Promise<unknown>;
} = {
  create: async (env, { binding, id, params, unrouted }) =>
    (await bindingsOf(env, unrouted)[binding].create({ ...(id && { id }), params })).id,
  createBatch: async (env, { binding, batch, unrouted }) =>
    (await bindingsOf(env, unrouted)[binding].createBatch(batch)).map(({ id }) => id),
  /** Creates instances whose params have a megabyte each. */
  createLarge: async (env, { id, letter, count }) => {
    const params = letter.repeat(letter > "\xff" ? 500_000 : 1_000_000);
    const batch = Array.from({ length: count }, (_, n) => ({ id: `${id}-${n}`, params }));
    return (await bindingsOf(env).CHILD.createBatch(batch)).length;
  },
  control: async (env, { binding, id, method, unrouted }) =>
    (await bindingsOf(env, unrouted)[binding].get(id))[method](),
  send: async (env, { binding, id, params, unrouted }) =>
    (await bindingsOf(env, unrouted)[binding].get(id)).sendEvent({ type: "word", payload: params }),
  result: async (env, { binding, id, unrouted }) =>
    (await bindingsOf(env, unrouted)[binding].get(id)).result({ timeout: "30 seconds" }),
  ids: (env, { object }) => objectOf(env, object).ids(),
  alarmAt: (env, { object }) => objectOf(env, object).alarmAt(),
  lose: (env, { object, answers }) => objectOf(env, object).lose(answers),
  evict: (env, { object }) =>
    objectOf(env, object)
      .evict()
      .catch(() => {}),
};

function bindingsOf(env: Env, unrouted = false) {
  return unrouted
    ? workflowsBinding<typeof registry>(env.OBJECTS)
    : workflowsBinding(env.OBJECTS, optionsOf(env));
}

function objectOf(
  { OBJECTS }: Env,
  name: string,
): Pick<Host, "ids" | "alarmAt" | "lose" | "evict"> {
  return OBJECTS.get(OBJECTS.idFromName(name)) as unknown as Host;
}

export default {
  async fetch(request, env) {
    const { pathname } = new URL(request.url);
    if (pathname.startsWith("/api/")) {
      const isUnrouted = request.headers.has("x-unrouted");
      return workflowsFetch(env.OBJECTS, request, isUnrouted ? undefined : optionsOf(env));
    }
    try {
      const value = await actions[pathname.slice(1)]?.(env, await request.json());
      return Response.json({ value: value ?? null });
    } catch (error) {
      const { message, code } = error as WorkflowError;
      const name = error instanceof Error ? error.constructor.name : "nothing";
      return Response.json({ name, message, code }, { status: 500 });
    }
  },
} satisfies ExportedHandler<Env>;

import { type } from "arktype";
import {
  createWorkflows,
  defineRegistry,
  defineWorkflow,
  WorkflowEntrypoint,
  type WorkflowEvent,
  type WorkflowStep,
} from "pawl";
import * as v from "valibot";
import { z } from "zod";
import { same } from "../same.js";
import { store } from "../store.js";

const withZod = defineWorkflow({
  name: "zod",
  params: z.object({
    at: z.string().transform((text) => new Date(text)),
    n: z.number().default(1),
  }),
  output: z.object({ sum: z.number().transform(String) }),
  events: { approval: z.object({ ok: z.boolean() }), cancel: z.undefined() },
  async run(event, step) {
    same<Date>()(event.payload.at);
    same<number>()(event.payload.n);
    const approval = await step.waitForEvent("wait", { type: "approval", timeout: "1 hour" });
    same<Readonly<{ ok: boolean }>>()(approval.payload);
    const other = await step.waitForEvent<{ why: string }>("other", { type: "other" });
    same<Readonly<{ why: string }>>()(other.payload);
    // @ts-expect-error not in the schema
    void approval.payload.no;
    return { sum: 1 };
  },
});

// @ts-expect-error the output does not fit its schema
defineWorkflow({ name: "bad", output: z.string(), run: async () => 1 });

defineWorkflow({
  name: "bad",
  params: z.object({ n: z.number() }),
  // @ts-expect-error the schema gives something else
  run: async (event: WorkflowEvent<{ text: string }>) => event.payload.text,
});

const withValibot = defineWorkflow({
  name: "valibot",
  params: v.pipe(v.string(), v.transform(Number)),
  run: async (event) => {
    same<number>()(event.payload.valueOf());
    return "done" as const;
  },
});

const withArktype = defineWorkflow({
  name: "arktype",
  params: type({ size: "number" }),
  events: { resize: type({ to: "number" }) },
  run: async (event, step) => {
    same<number>()(event.payload.size);
    return (await step.waitForEvent("wait", { type: "resize" })).payload.to;
  },
});

const goes = { go: z.object({ far: z.boolean() }) };

class Typed extends WorkflowEntrypoint<unknown, { at: Date }> {
  override async run(event: WorkflowEvent<{ at: Date }>, step: WorkflowStep<typeof goes>) {
    same<boolean>()((await step.waitForEvent("wait", { type: "go" })).payload.far);
    return event.payload.at.getTime();
  }
}
const atSchema = z.object({ at: z.string().transform((text) => new Date(text)) });

const registry = defineRegistry({
  ZOD: withZod,
  VALIBOT: withValibot,
  ARKTYPE: withArktype,
  CLASS: {
    name: "class",
    workflow: Typed,
    params: atSchema,
    output: z.number(),
    events: goes,
  },
});
// @ts-expect-error the schema gives something else than the class takes
defineRegistry({ CLASS: { name: "class", workflow: Typed, params: z.object({ at: z.string() }) } });
// @ts-expect-error also when there is no registry of its own
createWorkflows({ store, workflows: { C: { name: "c", workflow: Typed, params: z.string() } } });

const { workflows } = createWorkflows({ workflows: registry, store });

export async function bindings() {
  const one = await workflows.ZOD.create({ params: { at: "2026-01-01" } });
  same<{ sum: string }>()(await one.result());
  await one.sendEvent({ type: "approval", payload: { ok: true } });
  await one.sendEvent({ type: "cancel" });
  // @ts-expect-error the schema's input, not its output
  await workflows.ZOD.create({ params: { at: new Date(0) } });
  // @ts-expect-error not what the schema takes
  await one.sendEvent({ type: "approval", payload: { ok: 1 } });
  // @ts-expect-error a payload is required
  await one.sendEvent({ type: "approval" });
  // @ts-expect-error not declared
  await one.sendEvent({ type: "aproval", payload: { ok: true } });

  same<"done">()(await (await workflows.VALIBOT.create({ params: "1" })).result());
  // @ts-expect-error a string
  await workflows.VALIBOT.create({ params: 1 });

  const three = await workflows.ARKTYPE.create({ params: { size: 1 } });
  same<number>()(await three.result());
  await three.sendEvent({ type: "resize", payload: { to: 2 } });
  // @ts-expect-error a number
  await three.sendEvent({ type: "resize", payload: { to: "2" } });

  const four = await workflows.CLASS.create({ params: { at: "2026-01-01" } });
  same<number>()(await four.result());
  await four.sendEvent({ type: "go", payload: { far: true } });
  // @ts-expect-error declared beside the class
  await four.sendEvent({ type: "go", payload: { far: 1 } });
}

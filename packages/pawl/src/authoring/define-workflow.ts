import { checkOptions, type Known } from "../model/known-options.js";
import type { WorkflowEvent } from "./entrypoint.js";
import type { RegisteredBindings, RegisteredEnv } from "./register.js";
import type { EventSchemas, Schema, SchemaInput, SchemaOutput } from "./schema.js";
import type { WorkflowStep } from "./step.js";
import type { types } from "./types.js";

/** The third argument of a `run` function. */
export type WorkflowTools<Env, B = RegisteredBindings> = {
  /** The `env` that was given to `createWorkflows`. */
  readonly env: Env;
  /** The bindings of all registered workflows, to start and find other instances from here. */
  readonly workflows: B;
};

/** A workflow made by `defineWorkflow`. `create` takes `Params`, and `result` resolves to `Output`. */
export interface WorkflowDefinition<
  Params = unknown,
  Output = unknown,
  Events = unknown,
  Env = unknown,
> {
  readonly [types]?: {
    readonly params: Params;
    readonly output: Output;
    readonly events: Events;
    readonly env: Env;
  };
  /** The name under which instances are stored. Renaming a workflow leaves its instances behind. */
  readonly name: string;
  /** Checks the params of `create`. */
  readonly params?: Schema | undefined;
  /** Checks the value that `run` returns. */
  readonly output?: Schema | undefined;
  /** Checks the payloads of `sendEvent`, by event type. Other types are refused. */
  readonly events?: EventSchemas | undefined;
  run(
    event: WorkflowEvent<never>,
    step: WorkflowStep<never>,
    tools: WorkflowTools<never, never>,
  ): unknown;
}

export const definitionOptions: Known<Omit<WorkflowDefinition, typeof types>> = {
  name: true,
  params: true,
  output: true,
  events: true,
  run: true,
};

type Optional<S> = S | undefined;

/**
 * Defines a workflow as a function, for the registry of `createWorkflows`. The types of params, output and events come
 * from their schemas. Throws `ValidationError` if the definition has an unknown key; everything else is checked by
 * `createWorkflows`.
 *
 * Give `run` a return type if it uses `workflows`: TypeScript cannot infer it from bindings that the workflow itself is
 * a part of.
 *
 * @example
 * ```ts
 * const approval = defineWorkflow({
 *   name: "approval",
 *   params: z.object({ amount: z.number() }),
 *   events: { decision: z.object({ ok: z.boolean() }) },
 *   async run(event, step) {
 *     if (event.payload.amount < 100) return { approved: true };
 *     const { payload } = await step.waitForEvent("decision", { type: "decision" });
 *     return { approved: payload.ok };
 *   },
 * });
 * ```
 */
export function defineWorkflow<
  ParamsSchema extends Optional<Schema> = undefined,
  OutputSchema extends Optional<Schema> = undefined,
  Events extends Optional<EventSchemas> = undefined,
  Params = unknown,
  Output extends (OutputSchema extends Schema ? SchemaInput<OutputSchema> : unknown) =
    OutputSchema extends Schema ? SchemaInput<OutputSchema> : unknown,
  Env = RegisteredEnv,
>(definition: {
  /** The name under which instances are stored. Renaming a workflow leaves its instances behind. */
  readonly name: string;
  /**
   * Checks the params of `create`; what does not fit is refused with `INVALID_PARAMS`. `run` gets the schema's output.
   */
  readonly params?: ParamsSchema;
  /** Checks the value that `run` returns; one that does not fit ends the instance with a `ValidationError`. */
  readonly output?: OutputSchema;
  /** Checks the payloads of `sendEvent`, by event type. Other types are refused with `INVALID_EVENT_TYPE`. */
  readonly events?: Events;
  /** The workflow's code. It is called again for every replay, so effects belong in steps. */
  run(
    event: WorkflowEvent<ParamsSchema extends Schema ? SchemaOutput<ParamsSchema> : Params>,
    step: WorkflowStep<Events>,
    tools: WorkflowTools<Env>,
  ): Output | Promise<Output>;
}): WorkflowDefinition<
  ParamsSchema extends Schema ? SchemaInput<ParamsSchema> : Params,
  OutputSchema extends Schema ? SchemaOutput<OutputSchema> : Output,
  Events,
  Env
> {
  return checkOptions("defineWorkflow", definition, definitionOptions);
}

import { checkOptions, type Known } from "../model/known-options.js";
import type { WorkflowEvent } from "./entrypoint.js";
import type { RegisteredBindings, RegisteredEnv } from "./register.js";
import type { EventSchemas, Schema, SchemaInput, SchemaOutput } from "./schema.js";
import type { WorkflowStep } from "./step.js";
import type { types } from "./types.js";

export type WorkflowTools<Env, B = RegisteredBindings> = {
  readonly env: Env;
  /** The host's bindings, for children. */
  readonly workflows: B;
};

/** What `defineWorkflow` makes. `Params` is what `create` takes, `Output` what `result` gives. */
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
  readonly name: string;
  readonly params?: Schema | undefined;
  readonly output?: Schema | undefined;
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

/** A schema, or none. */
type Optional<S> = S | undefined;

/**
 * A workflow written as a function. Give `run` a return type if it uses `workflows`: TypeScript cannot infer it
 * from bindings that the workflow itself is a part of.
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
  readonly name: string;
  readonly params?: ParamsSchema;
  readonly output?: OutputSchema;
  readonly events?: Events;
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

import type { Known } from "../model/known-options.js";
import type { WorkflowDefinition } from "./define-workflow.js";
import type { EventSchemas, Schema, SchemaInput, SchemaOutput } from "./schema.js";
import type { types } from "./types.js";

/** Any class that extends `WorkflowEntrypoint`. */
export type WorkflowClass = new (
  ctx: never,
  env: never,
) => { readonly [types]: { readonly env: unknown; readonly params: unknown } };

/** Registers a workflow that is written as a class. */
export type ClassEntry = {
  /** The name under which instances are stored. Renaming a workflow leaves its instances behind. */
  readonly name: string;
  readonly workflow: WorkflowClass;
  /**
   * Checks the params of `create`; what does not fit is refused with `INVALID_PARAMS`. `run` gets the schema's output.
   */
  readonly params?: Schema | undefined;
  /** Checks the value that `run` returns; one that does not fit ends the instance with a `ValidationError`. */
  readonly output?: Schema | undefined;
  /** Checks the payloads of `sendEvent`, by event type. Other types are refused with `INVALID_EVENT_TYPE`. */
  readonly events?: EventSchemas | undefined;
};

export const classOptions: Known<ClassEntry> = {
  name: true,
  workflow: true,
  params: true,
  output: true,
  events: true,
};

/** Workflows by binding key. */
export type Registry = { readonly [binding: string]: ClassEntry | WorkflowDefinition };

/**
 * Returns the given registry with its exact type, which `Register` can then name. It is checked by `createWorkflows`.
 */
export function defineRegistry<const R extends Registry>(registry: R & Checked<R>): R {
  return registry;
}

/** Makes the compiler refuse a params schema whose output is not what the class takes. */
export type Checked<R> = {
  readonly [Key in keyof R]: R[Key] extends {
    readonly workflow: infer Class;
    readonly params: infer S extends Schema;
  }
    ? SchemaOutput<S> extends TypesOfClass<Class>["params"]
      ? unknown
      : { readonly params: Schema<unknown, TypesOfClass<Class>["params"]> }
    : unknown;
};

type TypesOfClass<Class> = Class extends { readonly prototype: { readonly [types]: infer T } }
  ? T extends { readonly env: unknown; readonly params: unknown }
    ? T
    : never
  : never;

type DefinedTypes<Entry> =
  Entry extends WorkflowDefinition<infer Params, infer Output, infer Events, infer Env>
    ? { params: Params; output: Output; events: Events; env: Env }
    : never;

/** The params that `create` takes. */
export type ParamsOf<Entry> = Entry extends { readonly workflow: infer Class }
  ? Entry extends { readonly params: infer S extends Schema }
    ? SchemaInput<S>
    : TypesOfClass<Class>["params"]
  : DefinedTypes<Entry>["params"];

/** The output that `result` resolves to. */
export type OutputOf<Entry> = Entry extends { readonly workflow: infer Class }
  ? Entry extends { readonly output: infer S extends Schema }
    ? SchemaOutput<S>
    : ReturnedBy<Class>
  : DefinedTypes<Entry>["output"];

type ReturnedBy<Class> = Class extends {
  readonly prototype: { run(event: never, step: never): infer Returned };
}
  ? Awaited<Returned>
  : never;

/** The schemas of the declared events, or a type that is no record of schemas if none are declared. */
export type EventsOf<Entry> = Entry extends { readonly workflow: unknown }
  ? Entry extends { readonly events: infer Events extends EventSchemas }
    ? Events
    : unknown
  : DefinedTypes<Entry>["events"];

export type EnvOf<Entry> = Entry extends { readonly workflow: infer Class }
  ? TypesOfClass<Class>["env"]
  : DefinedTypes<Entry>["env"];

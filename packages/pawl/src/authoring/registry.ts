import type { Known } from "../model/known-options.js";
import type { WorkflowDefinition } from "./define-workflow.js";
import type { EventSchemas, Schema, SchemaInput, SchemaOutput } from "./schema.js";
import type { types } from "./types.js";

/** Any class that extends `WorkflowEntrypoint`. */
export type WorkflowClass = new (
  ctx: never,
  env: never,
) => { readonly [types]: { readonly env: unknown; readonly params: unknown } };

export type ClassEntry = {
  readonly name: string;
  readonly workflow: WorkflowClass;
  readonly params?: Schema | undefined;
  readonly output?: Schema | undefined;
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

/** Gives the registry a name to register: see `Register`. */
export function defineRegistry<const R extends Registry>(registry: R & Checked<R>): R {
  return registry;
}

/** Refuses a params schema whose output is not what the class takes. */
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

/** What `create` takes. */
export type ParamsOf<Entry> = Entry extends { readonly workflow: infer Class }
  ? Entry extends { readonly params: infer S extends Schema }
    ? SchemaInput<S>
    : TypesOfClass<Class>["params"]
  : DefinedTypes<Entry>["params"];

/** What `result` gives. */
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

/** The schemas of declared events; anything else if there are none. */
export type EventsOf<Entry> = Entry extends { readonly workflow: unknown }
  ? Entry extends { readonly events: infer Events extends EventSchemas }
    ? Events
    : unknown
  : DefinedTypes<Entry>["events"];

export type EnvOf<Entry> = Entry extends { readonly workflow: infer Class }
  ? TypesOfClass<Class>["env"]
  : DefinedTypes<Entry>["env"];

import { ValidationError } from "../model/errors.js";
import { checkOptions } from "../model/known-options.js";
import type { Limits } from "../model/limits.js";
import { validEventType, validWorkflowName } from "../model/names.js";
import { quote } from "../model/quote.js";
import type { WorkflowEntrypoint, WorkflowEvent } from "./entrypoint.js";
import { definitionOptions } from "./define-workflow.js";
import { classOptions, type Registry } from "./registry.js";
import type { EventSchemas, Schema } from "./schema.js";
import type { WorkflowStep } from "./step.js";

/** A registered workflow as the engine sees it, written as a class or as a function. */
export type WorkflowEntry = {
  readonly name: string;
  readonly binding: string;
  readonly queue: string;
  readonly params?: Schema;
  readonly output?: Schema;
  readonly events?: EventSchemas;
  /** Calls the author's code. An error of the code, also one of a class's constructor, rejects the promise. */
  start(run: StartedRun): Promise<unknown>;
};

/** The arguments of the author's code. */
export type StartedRun = {
  readonly event: WorkflowEvent;
  readonly step: WorkflowStep;
  readonly env: unknown;
  /** The bindings for this run's code. */
  readonly workflows: unknown;
};

export const defaultQueue = "default";

/** Returns the entries of a registry by workflow name. Throws `ValidationError` for a registry that cannot work. */
export function entriesOf(registry: Registry, limits: Limits): ReadonlyMap<string, WorkflowEntry> {
  if (!isObject(registry)) {
    throw new ValidationError(`workflows must be an object, got ${quote(registry)}`);
  }
  const entries = new Map<string, WorkflowEntry>();
  for (const [binding, given] of Object.entries(registry)) {
    const entry = entryOf(binding, given, limits);
    const other = entries.get(entry.name);
    if (other !== undefined) {
      throw new ValidationError(
        `workflows.${binding} and workflows.${other.binding} have the same name, ${quote(entry.name)}`,
      );
    }
    entries.set(entry.name, entry);
  }
  if (entries.size === 0) throw new ValidationError("workflows must have at least one workflow");
  return entries;
}

function entryOf(binding: string, given: unknown, limits: Limits): WorkflowEntry {
  const where = `workflows.${binding}`;
  if (!isObject(given)) {
    const hint = isWorkflowClass(given) ? `: write { name, workflow: ${given.name} }` : "";
    throw new ValidationError(
      `${where} must be { name, workflow } or made by defineWorkflow(), got ${quote(given)}${hint}`,
    );
  }
  checkOptions(where, given, "workflow" in given ? classOptions : definitionOptions);
  return {
    name: within(where, () => validWorkflowName(given["name"], limits)),
    binding,
    queue: defaultQueue,
    ...schemaAt(where, given, "params"),
    ...schemaAt(where, given, "output"),
    ...eventsAt(where, given, limits),
    start: starterOf(where, given),
  };
}

function starterOf(where: string, given: Fields): WorkflowEntry["start"] {
  const { workflow, run } = given;
  if (workflow !== undefined) {
    if (!isWorkflowClass(workflow)) {
      throw new ValidationError(
        `${where}.workflow must be a class that extends WorkflowEntrypoint, got ${quote(workflow)}`,
      );
    }
    return async ({ event, step, env, workflows }) =>
      new workflow({ workflows }, env).run(event, step);
  }
  if (typeof run !== "function") {
    throw new ValidationError(`${where} has neither a workflow class nor a run function`);
  }
  return async ({ event, step, env, workflows }) =>
    (run as RunMethod).call(given, event, step, { env, workflows });
}

type RunMethod = (
  event: WorkflowEvent,
  step: WorkflowStep,
  tools: { env: unknown; workflows: unknown },
) => unknown;

type AnyWorkflowClass = new (
  ctx: object,
  env: unknown,
) => WorkflowEntrypoint<unknown, unknown, unknown>;

// A class is known by its shape and not by its base class: two copies of this package may meet in one program.
function isWorkflowClass(given: unknown): given is AnyWorkflowClass {
  if (typeof given !== "function") return false;
  const prototype: unknown = given.prototype;
  return isObject(prototype) && typeof prototype["run"] === "function";
}

function schemaAt(where: string, given: Fields, key: "params" | "output"): Fields<Schema> {
  const schema = given[key];
  return schema === undefined ? {} : { [key]: checkedSchema(`${where}.${key}`, schema) };
}

function eventsAt(where: string, given: Fields, limits: Limits): { events?: EventSchemas } {
  const { events } = given;
  if (events === undefined) return {};
  if (!isObject(events)) {
    throw new ValidationError(
      `${where}.events must be schemas by event type, got ${quote(events)}`,
    );
  }
  for (const [type, schema] of Object.entries(events)) {
    within(`${where}.events`, () => validEventType(type, limits));
    checkedSchema(`${where}.events.${type}`, schema);
  }
  return { events: events as EventSchemas };
}

// A schema may be a function, as those of arktype are.
function checkedSchema(where: string, given: unknown): Schema {
  const standard: unknown = Object(given)["~standard"];
  if (isObject(standard) && typeof standard["validate"] === "function") return given as Schema;
  throw new ValidationError(
    `${where} must be a Standard Schema (zod, valibot, arktype, …), got ${quote(given)}`,
  );
}

function within<T>(where: string, check: () => T): T {
  try {
    return check();
  } catch (error) {
    throw new ValidationError(`${where}: ${(error as Error).message}`, { cause: error });
  }
}

type Fields<T = unknown> = { readonly [key: string]: T };

function isObject(given: unknown): given is Fields {
  return typeof given === "object" && given !== null;
}

import type { WorkflowInstance } from "../authoring/bindings.js";
import type { PolicyGroup } from "../authoring/policies.js";
import type { WorkflowErrorCode } from "../model/errors.js";
import { requestedOptions } from "../model/known-options.js";
import type { JsonSchema } from "../model/schema.js";
import { doneForm, statusForm, type WireForm } from "./wire-forms.js";

/** The members of `WorkflowInstance` that are written by hand: they take transactions, or wait. */
type ByHand = "id" | "sendEvent" | "result";

/** The operations on an instance. Each is a method of `WorkflowInstance`, and described below. */
export type OperationName = Exclude<keyof WorkflowInstance, ByHand>;

/** The methods that are made from the table. */
export type InstanceMethods = Pick<WorkflowInstance, OperationName>;

type Method = WorkflowInstance[OperationName];
type InputOf<M extends Method> = Exclude<Parameters<M>[0], undefined>;
type AnswerOf<M extends Method> = Awaited<ReturnType<M>>;

/** An operation as data: all that routes, clients, Durable Objects and commands need to know of it. */
type Described<M extends Method> = {
  /** One sentence, for the OpenAPI document and the table of routes in docs/http-api.md. */
  readonly summary: string;
  /** The policy of `authorize` that guards it. */
  readonly group: PolicyGroup;
  /** `id` is its `operationId` in the OpenAPI document; `path` comes after that of the instance. */
  readonly route: {
    readonly id: string;
    readonly method: "GET" | "POST" | "PATCH" | "DELETE";
    readonly path: string;
  };
  /** It is carried out once per operation id. Over HTTP, an `Idempotency-Key` makes that id. */
  readonly once?: true;
  readonly answer: Form<AnswerOf<M>>;
  /** The errors of its own, besides those that every operation on an instance may answer. */
  readonly errors: readonly WorkflowErrorCode[];
  /** How `pawl --help` describes the command that does it to several instances and shows their status. */
  readonly command?: string;
} & ([InputOf<M>] extends [never]
  ? { readonly input?: never }
  : { readonly input: Form<InputOf<M>> });

/** Any wire form of `T`. */
type Form<T> = Omit<WireForm<T, unknown>, "fromWire"> & { readonly fromWire: (wire: never) => T };

/**
 * The operations on an instance. The in-process handle, the HTTP routes, the OpenAPI document, the client, the Durable
 * Object's calls and the commands of the CLI are made from this table; `perform.ts` says what each operation does.
 * CONTRIBUTING.md, "Add an operation", leads through an addition.
 */
export const instanceOperations = {
  status: {
    summary: "The status of an instance; its output or error once it has ended.",
    group: "read",
    route: { id: "getInstance", method: "GET", path: "" },
    answer: statusForm,
    errors: [],
  },
  pause: {
    summary: "Pauses at once, or at the next step boundary if it runs.",
    group: "manage",
    route: { id: "pauseInstance", method: "POST", path: "/pause" },
    answer: doneForm,
    errors: ["INSTANCE_TERMINAL"],
    command: "pause instances: at once, or at the next step boundary if they run",
  },
  resume: {
    summary: "Resumes a paused instance; otherwise nothing happens.",
    group: "manage",
    route: { id: "resumeInstance", method: "POST", path: "/resume" },
    answer: doneForm,
    errors: [],
    command: "resume paused instances",
  },
  terminate: {
    summary: "Ends the instance.",
    group: "manage",
    route: { id: "terminateInstance", method: "POST", path: "/terminate" },
    once: true,
    answer: doneForm,
    errors: ["INSTANCE_TERMINAL"],
    command: "end instances for good",
  },
  restart: {
    summary: "Starts a new run; earlier ones stay readable.",
    group: "manage",
    route: { id: "restartInstance", method: "POST", path: "/restart" },
    once: true,
    answer: doneForm,
    errors: [],
    command: "start instances again from the beginning; earlier runs stay readable",
  },
} as const satisfies { readonly [K in OperationName]: Described<WorkflowInstance[K]> };

export type InstanceOperations = typeof instanceOperations;

/** Any operation, where it does not matter which. */
export type InstanceOperation = Omit<Described<Method>, "answer" | "input"> & {
  readonly answer: WireForm<unknown, never>;
  readonly input?: WireForm<object, object>;
};

const byName: Readonly<Record<OperationName, InstanceOperation>> = instanceOperations as never;

/** The entries of the table, in its order. */
export const operationEntries = Object.entries(byName) as readonly (readonly [
  OperationName,
  InstanceOperation,
])[];

export function operationOf(name: OperationName): InstanceOperation {
  return byName[name];
}

export function isOperationName(name: unknown): name is OperationName {
  return typeof name === "string" && Object.hasOwn(instanceOperations, name);
}

/** The schemas of an operation's options, by their names. */
export function inputFields(name: OperationName): Readonly<Record<string, JsonSchema>> {
  return operationOf(name).input?.schema.json.properties ?? {};
}

/** Refuses options that the operation does not have; one without options ignores what it is given. */
export function checkedInput(name: OperationName, given: unknown): unknown {
  if (operationOf(name).input === undefined) return undefined;
  const fields = Object.keys(inputFields(name));
  const known = Object.fromEntries(fields.map((field) => [field, true] as const));
  return requestedOptions(`options of ${name}`, given ?? {}, known);
}

import type { Signal } from "../model/abort.js";
import type { WorkflowDuration } from "../model/duration.js";
import type { ErrorDescription } from "../model/error-codec.js";
import type { InstanceStatusName } from "../model/status.js";
import type { EnvOf, EventsOf, OutputOf, ParamsOf } from "./registry.js";
import type { EventSchemas, SchemaInput } from "./schema.js";

/** The bindings of a registry: one `Workflow` per key. `Tx` is the transaction handle of the store. */
export type Bindings<Registry, Tx = never> = {
  readonly [Key in keyof Registry]: Workflow<
    ParamsOf<Registry[Key]>,
    InstanceTypesOf<Registry[Key]>,
    Tx
  >;
};

/** The types of a workflow that its instances know. */
export interface InstanceTypes {
  readonly output: unknown;
  /** The events that `sendEvent` takes. */
  readonly event: SentEvent;
}

/**
 * This is an interface because its members are computed only when they are used: a class may create its own kind inside
 * `run`.
 */
export interface InstanceTypesOf<Entry> {
  readonly output: OutputOf<Entry>;
  readonly event: SentEvent<EventsOf<Entry>>;
}

/** Starts and finds the instances of one workflow. */
export interface Workflow<
  Params = unknown,
  Types extends InstanceTypes = InstanceTypes,
  Tx = never,
> {
  /** Creates an instance. Resolves when it is stored, and never waits for the workflow's code. */
  create(...given: CreateArguments<Params, Tx>): Promise<WorkflowInstance<Types, Tx>>;
  /**
   * Creates many instances. Ids that exist are skipped and left out of the answer, so that a batch may be sent again.
   */
  createBatch(
    batch: readonly (CreateOptions<Params> & { readonly id: string })[],
    options?: TxOptions<Tx>,
  ): Promise<WorkflowInstance<Types, Tx>[]>;
  /** Finds an instance. Throws `INSTANCE_NOT_FOUND` if there is none. */
  get(id: string): Promise<WorkflowInstance<Types, Tx>>;
}

export type TxOptions<Tx> = {
  /** The open transaction in which to write. Call `pawl.wake()` after the commit. */
  readonly tx?: Tx | undefined;
};

export type CreateOptions<Params = unknown> = {
  /** Letters, digits, "_" and "-". Without one, an id is made. */
  readonly id?: string | undefined;
} & (undefined extends Params
  ? { readonly params?: Params | undefined }
  : { readonly params: Params });

type CreateArguments<Params, Tx> = undefined extends Params
  ? [options?: CreateOptions<Params>, more?: TxOptions<Tx>]
  : [options: CreateOptions<Params>, more?: TxOptions<Tx>];

/**
 * A handle of one instance. It holds the id and reads everything else when asked. Every method except `result` and
 * `sendEvent` is an operation of `instances/operations.ts`, which the compiler compares with this interface.
 */
export interface WorkflowInstance<Types extends InstanceTypes = InstanceTypes, Tx = never> {
  readonly id: string;
  /** Reads the status; with the output or the error once the instance has ended. */
  status(): Promise<InstanceStatus<Types["output"]>>;
  /** Pauses at once, or at the next step boundary if it is running. Throws `INSTANCE_TERMINAL` after the end. */
  pause(): Promise<void>;
  /** Resumes a paused instance, or withdraws a pause that has not happened yet. Otherwise it changes nothing. */
  resume(): Promise<void>;
  /** Ends the instance for good. Throws `INSTANCE_TERMINAL` if it has ended. */
  terminate(): Promise<void>;
  /** Starts a new run from the beginning, with the same params. Earlier runs stay readable in the history. */
  restart(): Promise<void>;
  /** Sends an event. It is kept until the run waits for its type. */
  sendEvent(event: Types["event"], options?: TxOptions<Tx>): Promise<void>;
  /** Waits for the end. Returns the output, or throws the instance's error. */
  result(options?: ResultOptions): Promise<Types["output"]>;
}

export type InstanceStatus<Output = unknown> = {
  readonly status: InstanceStatusName;
  readonly error?: ErrorDescription;
  readonly output?: Output;
};

export type ResultOptions = {
  /** After this time `result` throws `ResultTimeoutError`. Without it, `result` waits for ever. */
  readonly timeout?: WorkflowDuration | undefined;
  readonly signal?: Signal | undefined;
};

/** One of the declared events if the workflow declares any, else any event. */
export type SentEvent<Events = unknown> = Events extends EventSchemas
  ? { [Type in keyof Events & string]: EventOfType<Type, SchemaInput<Events[Type]>> }[keyof Events &
      string]
  : EventOfType<string, unknown>;

type EventOfType<Type extends string, Payload> = {
  readonly type: Type;
  /** Identifies the event: sent again with the same id, it changes nothing. */
  readonly id?: string | undefined;
} & (undefined extends Payload
  ? { readonly payload?: Payload | undefined }
  : { readonly payload: Payload });

/** The `env` that all workflows of a registry together need; unknown if none of them declares one. */
export type EnvOfRegistry<Registry> = {
  [Key in keyof Registry]: (env: EnvOf<Registry[Key]>) => void;
}[keyof Registry] extends (env: infer Env) => void
  ? Env
  : never;

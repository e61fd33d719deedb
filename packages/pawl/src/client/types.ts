import type {
  CreateOptions,
  InstanceTypes,
  ResultOptions,
  TxOptions,
  Workflow,
  WorkflowInstance,
} from "../authoring/bindings.js";
import type { Contract } from "../http/contract.js";
import type { TypeOf } from "../model/schema.js";
import type { History, HistoryOptions } from "../instances/history.js";
import type { InstanceList, ListOptions } from "../instances/list.js";
import type { OperationName } from "../instances/operations.js";
import type { Signal } from "../model/abort.js";
import type { WebResponse } from "../model/web.js";

export type ClientOptions = {
  /**
   * The address of the API: "https://example.org/api", or "/api" in a browser. For an origin alone, `basePath` is
   * added.
   */
  readonly baseUrl: string;
  /** The path that is added to a `baseUrl` that is an origin alone; "/api" by default. */
  readonly basePath?: string | undefined;
  /** Headers that are sent with every request. A function is asked each time. */
  readonly headers?: ClientHeaders | (() => ClientHeaders | Promise<ClientHeaders>) | undefined;
  /** Replaces the runtime's own `fetch`. */
  readonly fetch?: ClientFetch | undefined;
};

export type ClientHeaders = Readonly<Record<string, string>>;

export type ClientFetch = (
  url: string,
  init: {
    method: string;
    headers: Record<string, string>;
    body?: string;
    signal?: Signal;
  },
) => Promise<WebResponse>;

/** The last argument of every method. There is no `tx`, since transactions do not cross the network. */
export type RequestOptions = TxOptions<never> & {
  readonly signal?: Signal | undefined;
};

/** The bindings of `createWorkflows`, over HTTP. */
export interface Client<Engine extends AnyEngine = AnyEngine> {
  readonly workflows: ClientBindings<Engine["workflows"]>;
  list(workflow: string, options?: ListOptions, more?: RequestOptions): Promise<InstanceList>;
  history(
    workflow: string,
    id: string,
    options?: HistoryOptions,
    more?: RequestOptions,
  ): Promise<History>;
  /** Lists the workflows that the server knows. */
  registered(more?: RequestOptions): Promise<readonly RegisteredWorkflow[]>;
  /** Runs on the server what is due, if the server has enabled that. */
  tick(bounds?: TickBounds, more?: RequestOptions): Promise<TickAnswer>;
}

export type RegisteredWorkflow = { readonly name: string; readonly binding: string };
export type TickBounds = TypeOf<Contract["tick"]["body"]>;
export type TickAnswer = TypeOf<Contract["tick"]["response"]>;

/** The engine from which a client takes its types: `typeof pawl`. */
export type AnyEngine = { readonly workflows: unknown };

export type ClientBindings<B> = unknown extends B
  ? Readonly<Record<string, ClientWorkflow>>
  : {
      readonly [Key in keyof B]: B[Key] extends Workflow<infer Params, infer Types, infer _Tx>
        ? ClientWorkflow<Params, Types>
        : never;
    };

/** Starts and finds the instances of one workflow. */
export interface ClientWorkflow<Params = unknown, Types extends InstanceTypes = InstanceTypes> {
  create(...given: ClientCreateArguments<Params>): Promise<ClientInstance<Types>>;
  /**
   * Creates many instances. Ids that exist are skipped and left out of the answer, so that a batch may be sent again.
   */
  createBatch(
    batch: readonly (CreateOptions<Params> & { readonly id: string })[],
    more?: RequestOptions,
  ): Promise<ClientInstance<Types>[]>;
  /** Finds an instance. Throws `INSTANCE_NOT_FOUND` if there is none. */
  get(id: string, more?: RequestOptions): Promise<ClientInstance<Types>>;
}

type ClientCreateArguments<Params> = undefined extends Params
  ? [options?: CreateOptions<Params>, more?: RequestOptions]
  : [options: CreateOptions<Params>, more?: RequestOptions];

/** The operations on an instance. They take `RequestOptions` after their own options. */
export type ClientMethods<Types extends InstanceTypes = InstanceTypes> = {
  [K in keyof Pick<WorkflowInstance<Types>, OperationName>]: (
    ...given: [...Parameters<WorkflowInstance<Types>[K]>, more?: RequestOptions]
  ) => ReturnType<WorkflowInstance<Types>[K]>;
};

/** A handle of one instance behind the API. */
export interface ClientInstance<
  Types extends InstanceTypes = InstanceTypes,
> extends ClientMethods<Types> {
  readonly id: string;
  sendEvent(event: Types["event"], more?: RequestOptions): Promise<void>;
  /** Follows the event stream to the end. Returns the output, or throws the instance's error. */
  result(options?: ResultOptions): Promise<Types["output"]>;
}

import {
  encodedAs,
  validEvent,
  validItems,
  validNew,
  validWait,
} from "../authoring/binding-options.js";
import { bindingsByKey } from "../authoring/bindings-by-key.js";
import type { CreateOptions, ResultOptions, SentEvent } from "../authoring/bindings.js";
import { carry, Carrier, type HandleClass } from "../instances/methods.js";
import { checkedInput, operationOf, type OperationName } from "../instances/operations.js";
import { throwIfAborted, unlessAborted, type Signal } from "../model/abort.js";
import { toTagged, type Json } from "../model/codec.js";
import { WorkflowError, type WorkflowErrorCode } from "../model/errors.js";
import { checkOptions, requestedOptions, type Known } from "../model/known-options.js";
import { quote } from "../model/quote.js";
import { webFetch, webRuntime } from "../runtime.js";
import { historyFrom, listFrom } from "./answers.js";
import { awaitRemoteResult, type RemoteTarget } from "./result.js";
import { Transport } from "./transport.js";
import type {
  AnyEngine,
  Client,
  ClientBindings,
  ClientInstance,
  ClientMethods,
  ClientOptions,
  ClientWorkflow,
  RequestOptions,
} from "./types.js";

const clientOptions: Known<ClientOptions> = {
  baseUrl: true,
  basePath: true,
  headers: true,
  fetch: true,
};

/** Makes the bindings of `createWorkflows` over HTTP: `createClient<typeof pawl>({ baseUrl })`. */
export function createClient<Engine extends AnyEngine = AnyEngine>(
  options: ClientOptions,
): Client<Engine> {
  checkOptions("createClient", options, clientOptions);
  const transport = new Transport({ ...options, fetch: options.fetch ?? webFetch }, webRuntime);
  const names = new Names(transport);
  const workflows: unknown = bindingsByKey(
    (key) => new Binding(transport, (signal) => names.of(key, signal)),
  );
  return {
    workflows: workflows as ClientBindings<Engine["workflows"]>,
    async list(workflow, query = {}, more = {}) {
      const signal = signalOf(more);
      const params = { workflowName: workflow };
      return listFrom(await transport.call("listInstances", { params, query, signal }));
    },
    async history(workflow, id, query = {}, more = {}) {
      const signal = signalOf(more);
      const params = { workflowName: workflow, instanceId: id };
      return historyFrom(await transport.call("getHistory", { params, query, signal }));
    },
    async registered(more = {}) {
      return (await transport.call("listWorkflows", { signal: signalOf(more) })).workflows;
    },
    tick: async (body = {}, more = {}) => transport.call("tick", { body, signal: signalOf(more) }),
  };
}

/** The names of the workflows by their binding keys, which the server is asked for once. */
class Names {
  readonly #transport: Transport;
  #names: Promise<Map<string, string>> | null = null;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  async of(binding: string, signal: Signal | undefined): Promise<string> {
    throwIfAborted(signal);
    this.#names ??= this.#ask();
    const name = (await unlessAborted(this.#names, signal)).get(binding);
    if (name !== undefined) return name;
    throw new WorkflowError("WORKFLOW_NOT_FOUND", `there is no binding ${quote(binding)}`);
  }

  async #ask(): Promise<Map<string, string>> {
    try {
      const { workflows } = await this.#transport.call("listWorkflows");
      return new Map(workflows.map(({ binding, name }) => [binding, name]));
    } catch (error) {
      this.#names = null; // the next caller asks again
      throw error;
    }
  }
}

/** A route of the contract, which has one for each operation. */
type RouteId = Parameters<Transport["call"]>[0];

/** Looks up the name of its workflow. */
type NameOf = (signal: Signal | undefined) => Promise<string>;

class Binding implements ClientWorkflow {
  readonly #transport: Transport;
  readonly #name: NameOf;

  constructor(transport: Transport, name: NameOf) {
    this.#transport = transport;
    this.#name = name;
  }

  async create(options: CreateOptions = {}, more: RequestOptions = {}): Promise<ClientInstance> {
    const signal = signalOf(more);
    const body = newInstance(validNew(options));
    const params = { workflowName: await this.#name(signal) };
    const { id } = await this.#transport.call("createInstance", { params, body, signal });
    return this.#instance(id);
  }

  async createBatch(
    batch: readonly (CreateOptions & { readonly id: string })[],
    more: RequestOptions = {},
  ): Promise<ClientInstance[]> {
    const signal = signalOf(more);
    const body = { instances: validItems(batch).map(newInstance) };
    const params = { workflowName: await this.#name(signal) };
    const created = await this.#transport.call("createBatch", { params, body, signal });
    return created.instances.map(({ id }) => this.#instance(id));
  }

  async get(id: string, more: RequestOptions = {}): Promise<ClientInstance> {
    const signal = signalOf(more);
    const params = { workflowName: await this.#name(signal), instanceId: id };
    await this.#transport.call("getInstance", { params, signal });
    return this.#instance(id);
  }

  #instance(id: string): ClientInstance {
    return new RemoteInstance(this.#transport, this.#name, id);
  }
}

class RemoteInstance extends (Carrier as HandleClass<ClientMethods>) implements ClientInstance {
  readonly id: string;
  readonly #transport: Transport;
  readonly #name: NameOf;

  constructor(transport: Transport, name: NameOf, id: string) {
    super();
    this.#transport = transport;
    this.#name = name;
    this.id = id;
  }

  async [carry](name: OperationName, given: unknown, more: RequestOptions = {}): Promise<unknown> {
    const signal = signalOf(more);
    const { route, input, answer } = operationOf(name);
    const body = input?.toWire(checkedInput(name, given) as object, this.id);
    const params = await this.#params(signal);
    const id = route.id as RouteId;
    const outgoing = { params, signal, ...(body === undefined ? {} : { body }) };
    return answer.fromWire(await this.#transport.call(id, outgoing));
  }

  async sendEvent(event: SentEvent, more: RequestOptions = {}): Promise<void> {
    const signal = signalOf(more);
    const { type, id = this.#transport.newKey(), payload } = validEvent(event);
    const body = {
      type,
      id,
      ...(payload === undefined
        ? {}
        : { payload: tagged(payload, "payload", "INVALID_EVENT_PAYLOAD") }),
    };
    const params = await this.#params(signal);
    await this.#transport.call("sendEvent", { params, body, signal });
  }

  async result(options: ResultOptions = {}): Promise<unknown> {
    const { signal } = validWait(options);
    return awaitRemoteResult(this.#transport, await this.#params(signal), options);
  }

  async #params(signal: Signal | undefined): Promise<RemoteTarget> {
    return { workflowName: await this.#name(signal), instanceId: this.id };
  }
}

const requestOptions = { signal: true } as const;

/**
 * Returns the signal of a request. A `tx` is refused: if it were ignored, the caller would rely on a transaction that
 * nobody keeps.
 */
function signalOf(given: RequestOptions): Signal | undefined {
  return requestedOptions("options of a request", given, requestOptions).signal;
}

function newInstance({ id, params }: CreateOptions): object {
  return {
    ...(id === undefined ? {} : { id }),
    ...(params === undefined ? {} : { params: tagged(params, "params", "INVALID_PARAMS") }),
  };
}

/** Tags a value for JSON. Its size is checked by the server, which knows its limits. */
function tagged(value: unknown, what: string, code: WorkflowErrorCode): Json {
  return encodedAs(code, () => toTagged(value, what));
}

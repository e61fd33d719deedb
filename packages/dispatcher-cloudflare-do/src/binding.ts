import {
  jsonPlusCodec,
  ResultTimeoutError,
  WorkflowError,
  type Bindings,
  type CreateOptions,
  type Registry,
  type ResultOptions,
  type SentEvent,
  type Workflow,
  type WorkflowErrorCode,
  type WorkflowInstance,
} from "pawl";
import { requestedMs, throwIfAborted } from "pawl/durable-object";
import {
  bindingsByKey,
  carry,
  encodedAs,
  InstanceHandle,
  type OperationName,
} from "pawl/operations";
import {
  encodeValue,
  thrownThere,
  type RpcAnswer,
  type RpcCall,
  type InstanceCall,
  type RpcNewInstance,
  type Pending,
} from "./calls.js";
import { layoutOf, type Layout } from "./layout.js";
import {
  anyOf,
  objectIn,
  type SpreadOptions,
  type WorkflowsNamespace,
  type WorkflowsObject,
} from "./namespace.js";

/** How long one call waits for an end. A longer wait would keep the object in memory. */
const LONGEST_WAIT_MS = 20_000;
const RETRY_MS = 500;
/** The most that the params of a batch may take. It leaves a part of the 32 MiB of a call for ids and all else. */
const BATCH_MAX_BYTES = 31 * 1024 * 1024;
/** How many calls of `result` may fail in a row. An object that moves is away for moments. */
const MAX_FAILURES = 10;

/**
 * Makes the bindings of the engine for callers outside of the object. They have the same shape, without transactions.
 * If the class has shards, give the options of the class: each call then goes to the object that has the instance.
 * Without them, the first object passes calls on.
 */
export function workflowsBinding<R extends Registry>(
  namespace: WorkflowsNamespace,
  options?: SpreadOptions<R>,
): Bindings<R> {
  const objects = new Objects(namespace, options);
  return bindingsByKey((key) => new RpcBinding(objects, key)) as unknown as Bindings<R>;
}

/** Tells which object to ask. Any of them answers, but the one that has the instance need not ask another. */
class Objects {
  readonly #namespace: WorkflowsNamespace;
  readonly #layout: Layout;
  readonly #workflows: Registry;

  constructor(namespace: WorkflowsNamespace, options: SpreadOptions | undefined) {
    this.#namespace = namespace;
    this.#layout = layoutOf(options ?? {});
    this.#workflows = options?.workflows ?? {};
  }

  /** Makes a new stub each time, because a stub that has failed stays broken. */
  of(binding: string, id: unknown): WorkflowsObject {
    return objectIn(this.#namespace, this.#nameOf(binding, id));
  }

  #nameOf(binding: string, id: unknown): string {
    const { names } = this.#layout;
    const isKnown = Object.hasOwn(this.#workflows, binding);
    const workflow = isKnown ? this.#workflows[binding]?.name : undefined;
    if (workflow === undefined) return names[0] as string;
    return typeof id === "string"
      ? this.#layout.nameOf({ workflow, id })
      : anyOf(this.#layout.namesOf(workflow));
  }
}

class RpcBinding implements Workflow {
  readonly #objects: Objects;
  readonly #binding: string;

  constructor(objects: Objects, binding: string) {
    this.#objects = objects;
    this.#binding = binding;
  }

  async create(options: CreateOptions = {}): Promise<WorkflowInstance> {
    const call = {
      binding: this.#binding,
      method: "create",
      options: newInstance(options),
    } as const;
    return this.#instance((await this.#ask(options.id, call)) as string);
  }

  async createBatch(
    batch: readonly (CreateOptions & { readonly id: string })[],
  ): Promise<WorkflowInstance[]> {
    if (!Array.isArray(batch)) throw invalid("createBatch takes an array");
    const call = {
      binding: this.#binding,
      method: "createBatch",
      batch: fitting(batch.map(newInstance)),
    } as const;
    // One object checks the whole batch before any object stores a part of it.
    const ids = (await this.#ask(undefined, call)) as string[];
    return ids.map((id) => this.#instance(id));
  }

  async get(id: string): Promise<WorkflowInstance> {
    await this.#ask(id, { binding: this.#binding, id, method: "get" });
    return this.#instance(id);
  }

  #ask(id: unknown, call: RpcCall): Promise<unknown> {
    return ask(this.#objects.of(this.#binding, id), call);
  }

  #instance(id: string): WorkflowInstance {
    return new RpcInstance(id, (call) => this.#ask(id, { binding: this.#binding, id, ...call }));
  }
}

class RpcInstance extends InstanceHandle implements WorkflowInstance {
  readonly id: string;
  readonly #ask: (call: InstanceCall) => Promise<unknown>;

  constructor(id: string, answerTo: (call: InstanceCall) => Promise<unknown>) {
    super();
    this.id = id;
    this.#ask = answerTo;
  }

  async [carry](method: OperationName, given: unknown): Promise<unknown> {
    return this.#ask(
      given === undefined ? { method } : { method, input: encoded(given, "INVALID_REQUEST") },
    );
  }

  async sendEvent(event: SentEvent): Promise<void> {
    const { payload, ...rest } = anObject("an event", event);
    const text =
      payload === undefined ? {} : { payload: encoded(payload, "INVALID_EVENT_PAYLOAD") };
    await this.#ask({ method: "sendEvent", event: { ...rest, ...text } as never });
  }

  async result({ timeout, signal }: ResultOptions = {}): Promise<unknown> {
    const endsAtMs = Date.now() + requestedMs("timeout", timeout);
    for (let failures = 0; ;) {
      throwIfAborted(signal);
      const leftMs = Math.max(0, endsAtMs - Date.now());
      const waitMs = Math.min(LONGEST_WAIT_MS, leftMs);
      try {
        const answer = (await this.#ask({ method: "result", waitMs })) as
          | Pending
          | { output: unknown };
        if ("output" in answer) return answer.output;
        failures = 0;
      } catch (error) {
        if (!(error instanceof Unreachable) || ++failures === MAX_FAILURES) throw error;
        await scheduler.wait(Math.min(RETRY_MS, leftMs));
      }
      if (leftMs === 0) throw new ResultTimeoutError(`instance "${this.id}" did not end in time`);
    }
  }
}

/** The object is moving, overloaded or new. The call may or may not have been heard. */
class Unreachable extends WorkflowError {}

async function ask(object: WorkflowsObject, call: RpcCall): Promise<unknown> {
  let answer: RpcAnswer;
  try {
    answer = await object.call(call);
  } catch (error) {
    throw new Unreachable("STORE_UNAVAILABLE", "the object cannot be reached", { cause: error });
  }
  if ("error" in answer) throw thrownThere(answer.error);
  return jsonPlusCodec.decode(answer.value);
}

function newInstance(given: CreateOptions): RpcNewInstance {
  const { params, ...rest } = anObject("what create takes", given);
  return {
    ...rest,
    ...(params === undefined ? {} : { params: encoded(params, "INVALID_PARAMS") }),
  } as RpcNewInstance;
}

/**
 * Refuses a batch that is too large. Workers send 32 MiB in one call, and report more than that as if the object were
 * away.
 */
function fitting(batch: readonly RpcNewInstance[]): readonly RpcNewInstance[] {
  const bytes = batch.reduce((sum, { params = "" }) => sum + bytesSent(params), 0);
  if (bytes <= BATCH_MAX_BYTES) return batch;
  throw new WorkflowError(
    "PAYLOAD_TOO_LARGE",
    `a batch may have at most ${BATCH_MAX_BYTES} bytes of params over RPC, got ${bytes}: split it`,
  );
}

/** Estimates the size of a text in a call. V8 writes either one byte for each code unit, or two. */
function bytesSent(text: string): number {
  return /[^\0-\xff]/.test(text) ? 2 * text.length : text.length;
}

function anObject<T>(what: string, value: T): T {
  if (typeof value === "object" && value !== null) return value;
  throw invalid(`${what} must be an object`);
}

function invalid(message: string): WorkflowError {
  return new WorkflowError("INVALID_REQUEST", message);
}

function encoded(value: unknown, code: WorkflowErrorCode): string {
  return encodedAs(code, () => encodeValue(value));
}

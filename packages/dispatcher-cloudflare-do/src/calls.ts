import {
  IncompatibleDatabaseError,
  InstanceTerminatedError,
  jsonPlusCodec,
  PayloadTooLargeError,
  ResultTimeoutError,
  SerializationError,
  ValidationError,
  WorkflowError,
  type Logger,
  type Workflow,
  type WorkflowInstance,
} from "pawl";
import { decodeError, encodeError } from "pawl/durable-object";
import { isOperationName, type OperationName } from "pawl/operations";

/**
 * A call of a binding on its way to the object. Users' values travel as text, which keeps what structured clones lose.
 */
export type RpcCall =
  | { readonly binding: string; readonly method: "create"; readonly options: RpcNewInstance }
  | {
      readonly binding: string;
      readonly method: "createBatch";
      readonly batch: readonly RpcNewInstance[];
    }
  | ({ readonly binding: string; readonly id: string } & InstanceCall);

export type InstanceCall =
  | { readonly method: "get" }
  | { readonly method: OperationName; readonly input?: string }
  | { readonly method: "sendEvent"; readonly event: RpcEvent }
  | { readonly method: "result"; readonly waitMs: number };

export type RpcNewInstance = { readonly id?: string; readonly params?: string };
type RpcEvent = { readonly type: string; readonly id?: string; readonly payload?: string };

/** `error` is the text of the error that the caller is to be thrown. */
export type RpcAnswer = { readonly value: string } | { readonly error: string };

/** The answer of `result` while the run goes on: the caller asks again. */
export type Pending = { readonly pending: true };

/** A size that is beyond all limits, so that it is the limits that decide. */
const MAX_BYTES = 32 * 1024 * 1024;

export function encodeValue(value: unknown): string {
  return jsonPlusCodec.encode(value, { what: "value", maxBytes: MAX_BYTES });
}

type AnyBindings = Readonly<Record<string, Workflow>>;

/** Answers a call. It never rejects: an error that crossed to the caller as such would lose its class and code. */
export async function answerCall(
  bindings: unknown,
  call: RpcCall,
  logger: Logger,
): Promise<RpcAnswer> {
  try {
    return { value: encodeValue(await perform(bindings as AnyBindings, call)) };
  } catch (error) {
    if (error instanceof Thrown) return { error: encodeError(error.thrown) };
    if (isForCallers(error)) return { error: encodeError(error) };
    logger.error("call.failed", { method: call.method, error: String(error) });
    return { error: encodeError(new WorkflowError("INTERNAL_ERROR", "something went wrong")) };
  }
}

async function perform(bindings: AnyBindings, call: RpcCall): Promise<unknown> {
  const binding = Object.hasOwn(bindings, call.binding) ? bindings[call.binding] : undefined;
  if (binding === undefined) {
    throw new WorkflowError(
      "WORKFLOW_NOT_FOUND",
      `there is no binding ${JSON.stringify(call.binding)}`,
    );
  }
  switch (call.method) {
    case "create":
      return (await binding.create(newInstance(call.options))).id;
    case "createBatch": {
      const batch = call.batch.map(newInstance) as { id: string }[];
      return (await binding.createBatch(batch)).map(({ id }) => id);
    }
    default:
      return performOn(await binding.get(call.id), call);
  }
}

async function performOn(instance: WorkflowInstance, call: InstanceCall): Promise<unknown> {
  if (isOperation(call)) return carriedOut(instance, call);
  switch (call.method) {
    case "get":
      return undefined;
    case "sendEvent": {
      const { payload, ...event } = call.event;
      return instance.sendEvent(
        payload === undefined ? event : { ...event, payload: jsonPlusCodec.decode(payload) },
      );
    }
    case "result":
      return outcome(instance, call.waitMs);
    default:
      throw new WorkflowError("INVALID_REQUEST", "there is no such method");
  }
}

type CalledOperation = Extract<InstanceCall, { readonly method: OperationName }>;

function isOperation(call: InstanceCall): call is CalledOperation {
  return isOperationName(call.method);
}

function carriedOut(instance: WorkflowInstance, call: CalledOperation): Promise<unknown> {
  const operation = instance[call.method] as (input?: unknown) => Promise<unknown>;
  const input = call.input === undefined ? undefined : jsonPlusCodec.decode(call.input);
  return operation.call(instance, input);
}

async function outcome(instance: WorkflowInstance, waitMs: number): Promise<unknown> {
  try {
    return { output: await instance.result({ timeout: waitMs }) };
  } catch (error) {
    if (error instanceof ResultTimeoutError) return { pending: true } satisfies Pending;
    // An error that the author's code threw goes to the caller, whatever it is.
    const { status } = await instance.status();
    throw status === "errored" ? new Thrown(error) : error;
  }
}

function newInstance({ params, ...rest }: RpcNewInstance): { id?: string; params?: unknown } {
  return params === undefined ? rest : { ...rest, params: jsonPlusCodec.decode(params) };
}

class Thrown {
  constructor(readonly thrown: unknown) {}
}

/** Decodes what was thrown in the object. The codec does not keep the class of an error that no workflow throws. */
export function thrownThere(text: string): unknown {
  const error = decodeError(text);
  return error instanceof Error && error.name === IncompatibleDatabaseError.prototype.name
    ? new IncompatibleDatabaseError(error.message)
    : error;
}

export function isForCallers(error: unknown): boolean {
  return [
    WorkflowError,
    IncompatibleDatabaseError,
    ValidationError,
    InstanceTerminatedError,
    SerializationError,
    PayloadTooLargeError,
  ].some((kind) => error instanceof kind);
}

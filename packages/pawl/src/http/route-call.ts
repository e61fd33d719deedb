import type { WorkflowEntry } from "../authoring/entry.js";
import { knownWorkflow } from "../instances/list.js";
import type { InstancesContext } from "../instances/ports.js";
import { invalidRequest } from "../instances/requests.js";
import type { Signal } from "../model/abort.js";
import { fromTagged } from "../model/codec.js";
import { SerializationError, WorkflowError, type WorkflowErrorCode } from "../model/errors.js";
import { validInstanceId } from "../model/names.js";
import type { TypeOf } from "../model/schema.js";
import type { WebHeaders, WebResponse, WebUrl } from "../model/web.js";
import type { Target } from "../model/target.js";
import type { Contract, Operation } from "./contract.js";

/** A request that passed the policies and was found to be for a route. */
export type RouteCall = {
  readonly params: Readonly<Record<string, string>>;
  readonly url: WebUrl;
  readonly headers: WebHeaders;
  /** Has no keys besides those of the contract. The values are unchecked. */
  readonly body: Readonly<Record<string, unknown>>;
  /** The `Idempotency-Key`, where the route takes one. */
  readonly key: string | undefined;
  /** Asked for only when it is needed: some servers make it on demand. */
  readonly signal: () => Signal | undefined;
};

type AnswerOf<O extends Operation> = Contract[O] extends { readonly response: infer S }
  ? TypeOf<S>
  : WebResponse;

/** One function for each route of the contract. */
export type RouteOperations = {
  readonly [O in Operation]: (call: RouteCall) => AnswerOf<O> | Promise<AnswerOf<O>>;
};

type Instances = Pick<InstancesContext<never>, "entries" | "limits">;

/** The workflow in the path of a call. */
export function workflowIn(instances: Instances, { params }: RouteCall): WorkflowEntry {
  const name = params["workflowName"];
  if (name === undefined) throw invalidRequest("the path is not percent-encoded as it should be");
  knownWorkflow(instances, name);
  return instances.entries.get(name) as WorkflowEntry;
}

/** The instance in the path of a call. */
export function instanceIn(
  instances: Instances,
  call: RouteCall,
): { readonly entry: WorkflowEntry; readonly target: Target } {
  const entry = workflowIn(instances, call);
  const id = validInstanceId(call.params["instanceId"] ?? "%", instances.limits);
  return { entry, target: { workflow: entry.name, id } };
}

/** A user's value out of JSON. One that is tagged wrongly is the caller's mistake, with the given code. */
export function untagged(json: unknown, what: string, code: WorkflowErrorCode): unknown {
  try {
    return fromTagged(json);
  } catch (error) {
    if (!(error instanceof SerializationError)) throw error;
    throw new WorkflowError(code, `${what}: ${error.message}`, { cause: error });
  }
}

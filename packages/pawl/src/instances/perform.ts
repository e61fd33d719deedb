import type { WorkflowInstance } from "../authoring/bindings.js";
import { WorkflowError } from "../model/errors.js";
import { quote } from "../model/quote.js";
import type { InstanceStatusName } from "../model/status.js";
import type { Target } from "../model/target.js";
import type { ControlRequest } from "../store/store.js";
import type { OperationName } from "./operations.js";
import type { InstancesContext } from "./ports.js";
import { instanceNotFound } from "./requests.js";
import { instanceStatusOf } from "./status.js";

/** One call of an operation, in the process that has the store. */
type OperationCall = {
  readonly context: Pick<InstancesContext<never>, "store" | "codec">;
  readonly target: Target;
  /** Makes the id under which the store carries the operation out once. */
  readonly newOperationId: () => string;
};

/** The behaviour of each operation, wherever it was asked for. */
export const perform: {
  readonly [K in OperationName]: (
    call: OperationCall,
    ...input: Parameters<WorkflowInstance[K]>
  ) => ReturnType<WorkflowInstance[K]>;
} = {
  async status({ context: { store, codec }, target }) {
    const record = await store.get(target);
    if (record === null) throw instanceNotFound(target);
    return instanceStatusOf(record, codec);
  },
  pause: (call) => control(call, { command: "pause" }),
  resume: (call) => control(call, { command: "resume" }),
  terminate: (call) => control(call, { command: "terminate", operationId: call.newOperationId() }),
  restart: (call) => control(call, { command: "restart", operationId: call.newOperationId() }),
};

/** The same for a name that is known only at run time. */
export function performNamed(
  name: OperationName,
  call: OperationCall,
  input: unknown,
): Promise<unknown> {
  return (perform[name] as (call: OperationCall, input: unknown) => Promise<unknown>)(call, input);
}

async function control(
  { context: { store }, target }: OperationCall,
  request: ControlRequest,
): Promise<void> {
  const answer = await store.control(target, request);
  if (answer.kind === "notFound") throw instanceNotFound(target);
  if (answer.kind === "terminal") throw instanceTerminal(target, answer.status);
}

export function instanceTerminal({ id }: Target, status: InstanceStatusName): WorkflowError {
  return new WorkflowError("INSTANCE_TERMINAL", `instance ${quote(id)} has ended: ${status}`);
}

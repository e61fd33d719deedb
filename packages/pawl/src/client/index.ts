export { createClient } from "./create-client.js";
export type {
  AnyEngine,
  Client,
  ClientBindings,
  ClientFetch,
  ClientHeaders,
  ClientInstance,
  ClientOptions,
  ClientWorkflow,
  RegisteredWorkflow,
  RequestOptions,
  TickAnswer,
  TickBounds,
} from "./types.js";
export {
  InstanceTerminatedError,
  NonRetryableError,
  ResultTimeoutError,
  WorkflowError,
  type WorkflowErrorCode,
} from "../model/errors.js";

export {
  DuplicateStepError,
  InstanceTerminatedError,
  MaxStepsExceededError,
  NonRetryableError,
  PayloadTooLargeError,
  ResultTimeoutError,
  RunCrashedError,
  SerializationError,
  StepMaxAttemptsExceeded,
  StepMismatchError,
  StepTimeoutError,
  ValidationError,
  WaitTimeoutError,
  WorkflowError,
  type WorkflowErrorCode,
} from "./model/errors.js";
export type { InstanceStatusName } from "./model/status.js";
export type { WorkflowDuration } from "./model/duration.js";
export { defaultLimits, type Limits } from "./model/limits.js";
export { jsonPlusCodec, type Codec, type EncodeContext } from "./model/codec.js";
export type { Clock } from "./model/seams.js";
export { IncompatibleDatabaseError, NotMigratedError } from "./store/errors.js";
export type { Store } from "./store/store.js";

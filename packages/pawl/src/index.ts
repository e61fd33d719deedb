export type {
  Bindings,
  CreateOptions,
  InstanceStatus,
  InstanceTypes,
  InstanceTypesOf,
  ResultOptions,
  SentEvent,
  TxOptions,
  Workflow,
  WorkflowInstance,
} from "./authoring/bindings.js";
export {
  defineWorkflow,
  type WorkflowDefinition,
  type WorkflowTools,
} from "./authoring/define-workflow.js";
export { WorkflowEntrypoint, type WorkflowEvent } from "./authoring/entrypoint.js";
export type { OnDivergence, RepeatedStepNames, WorkflowsOptions } from "./authoring/options.js";
export type {
  Authorize,
  AuthorizeRequest,
  HttpOptions,
  Policy,
  TickRoute,
} from "./authoring/policies.js";
export { cappedBackoff } from "./authoring/presets.js";
export type { Register, RegisteredBindings, RegisteredEnv } from "./authoring/register.js";
export {
  defineRegistry,
  type ClassEntry,
  type Registry,
  type WorkflowClass,
} from "./authoring/registry.js";
export type { EventSchemas, Schema } from "./authoring/schema.js";
export type {
  EffectiveStepConfig,
  StepContext,
  WaitForEventOptions,
  WorkflowBackoff,
  WorkflowJitter,
  WorkflowRetries,
  WorkflowStep,
  WorkflowStepConfig,
  WorkflowStepEvent,
} from "./authoring/step.js";
export type {
  FailedDeliveries,
  FailedDeliveriesOptions,
  FailedDelivery,
  HookAdministration,
} from "./hooks/administration.js";
export type {
  EnqueueReason,
  HookDelivery,
  HookName,
  Hooks,
  InstanceFinished,
  WorkflowEnqueued,
} from "./model/hooks.js";
export type {
  History,
  HistoryAttempt,
  HistoryEntry,
  HistoryEvent,
  HistoryOptions,
  HistoryRun,
  HistoryStep,
  HistoryWait,
} from "./instances/history.js";
export type { InstanceList, ListedInstance, ListOptions } from "./instances/list.js";
export {
  DuplicateStepError,
  InstanceTerminatedError,
  MaxStepsExceededError,
  NonRetryableError,
  PayloadTooLargeError,
  ResultTimeoutError,
  RunCrashedError,
  RunnerDiedError,
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
export { parseDurationMs, type DurationBounds, type WorkflowDuration } from "./model/duration.js";
export { checkOptions, type Known } from "./model/known-options.js";
export { defaultLimits, type Limits } from "./model/limits.js";
export type { Logger } from "./model/logger.js";
export { jsonPlusCodec, type Codec, type EncodeContext } from "./model/codec.js";
export type { Clock } from "./model/seams.js";
export { IncompatibleDatabaseError, NotMigratedError, StoreClosedError } from "./store/errors.js";
export type { MigrationPlan, Store } from "./store/store.js";
export type { RunnerOptions, Started, TickOptions, TickResult } from "./runner/options.js";
export type { DispatchedRunner as Runner } from "./runner/runner.js";
export type { MadeWith } from "./assemble.js";
export { createWorkflows, type Workflows } from "./workflows.js";

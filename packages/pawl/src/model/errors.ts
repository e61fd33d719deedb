/** Every code a caller can meet, and its HTTP status. The list is closed: a new code is a change of the API. */
export const workflowErrorStatus = {
  INVALID_REQUEST: 400,
  INVALID_INSTANCE_ID: 400,
  INVALID_EVENT_TYPE: 400,
  INVALID_PARAMS: 400,
  INVALID_EVENT_PAYLOAD: 400,
  INVALID_CURSOR: 400,
  UNAUTHORIZED: 401,
  FORBIDDEN: 403,
  TICK_DISABLED: 403,
  WORKFLOW_NOT_FOUND: 404,
  INSTANCE_NOT_FOUND: 404,
  NOT_FOUND: 404,
  METHOD_NOT_ALLOWED: 405,
  INSTANCE_ID_ALREADY_EXISTS: 409,
  INSTANCE_TERMINAL: 409,
  PAYLOAD_TOO_LARGE: 413,
  IDEMPOTENCY_KEY_REUSED: 422,
  INTERNAL_ERROR: 500,
  STORE_UNAVAILABLE: 503,
} as const;

export type WorkflowErrorCode = keyof typeof workflowErrorStatus;

export function isWorkflowErrorCode(code: unknown): code is WorkflowErrorCode {
  return typeof code === "string" && Object.hasOwn(workflowErrorStatus, code);
}

/** A caller's mistake, or a store that is away: the same error in process and over HTTP. */
export class WorkflowError extends Error {
  static {
    this.prototype.name = "WorkflowError";
  }
  readonly code: WorkflowErrorCode;
  readonly status: number;

  constructor(code: WorkflowErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
    this.status = workflowErrorStatus[code];
  }
}

// Names are set on prototypes: own `name` fields would be enumerable and come too late for the stack's first line.

// A brand in the global symbol registry, so that a second copy of this module is recognised too.
const nonRetryable = Symbol.for("pawl.NonRetryableError");

/** Thrown in a step, it ends the step at once: no more attempts. */
export class NonRetryableError extends Error {
  static {
    this.prototype.name = "NonRetryableError";
    Object.defineProperty(this.prototype, nonRetryable, { value: true });
  }

  constructor(message: string, name?: string) {
    super(message);
    if (name !== undefined) this.name = name;
  }
}

export function isNonRetryable(error: unknown): boolean {
  if (typeof error !== "object" || error === null) return false;
  try {
    return (error as { [nonRetryable]?: unknown })[nonRetryable] === true;
  } catch {
    return false; // a proxy that refuses to be read
  }
}

/** An author's mistake that another attempt would repeat. */
class AuthorError extends Error {
  static {
    Object.defineProperty(this.prototype, nonRetryable, { value: true });
  }
}

/** A duration, name or option that is not allowed. */
export class ValidationError extends AuthorError {
  static {
    this.prototype.name = "ValidationError";
  }
}

/** A value that cannot be stored (a function, a class instance, a cycle), or stored text that cannot be read. */
export class SerializationError extends AuthorError {
  static {
    this.prototype.name = "SerializationError";
  }
}

/** A value whose encoded text is larger than its limit. */
export class PayloadTooLargeError extends AuthorError {
  static {
    this.prototype.name = "PayloadTooLargeError";
  }
}

/** A step was called while a step of the same name is still running. */
export class DuplicateStepError extends AuthorError {
  static {
    this.prototype.name = "DuplicateStepError";
  }
}

/** A step was called under a name that the run has recorded for a step of another type. */
export class StepMismatchError extends AuthorError {
  static {
    this.prototype.name = "StepMismatchError";
  }
}

/** The run called more steps than `maxStepsPerRun`. */
export class MaxStepsExceededError extends AuthorError {
  static {
    this.prototype.name = "MaxStepsExceededError";
  }
}

/** One attempt of a step ran longer than the step's `timeout`. */
export class StepTimeoutError extends Error {
  static {
    this.prototype.name = "StepTimeoutError";
  }
}

/** No event came before the timeout of `waitForEvent`. */
export class WaitTimeoutError extends Error {
  static {
    this.prototype.name = "WaitTimeoutError";
  }
}

/** A step has no attempts left; `cause` is the last attempt's error where there was one. */
export class StepMaxAttemptsExceeded extends Error {
  static {
    this.prototype.name = "StepMaxAttemptsExceeded";
  }
}

/** The process of an attempt ended, or lost its lease, before the attempt did: what the attempt has done is not known. */
export class RunnerDiedError extends Error {
  static {
    this.prototype.name = "RunnerDiedError";
  }
}

/** The run killed its process too often, without progress in between. */
export class RunCrashedError extends Error {
  static {
    this.prototype.name = "RunCrashedError";
  }
}

/** `result()` of an instance that was terminated. */
export class InstanceTerminatedError extends Error {
  static {
    this.prototype.name = "InstanceTerminatedError";
  }
}

/** `result()` gave up waiting; the instance goes on. */
export class ResultTimeoutError extends Error {
  static {
    this.prototype.name = "ResultTimeoutError";
  }
}

/** Every code that a `WorkflowError` can have, and its HTTP status. The list is closed: a new code changes the API. */
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

/** Tells a program why a call failed; `WorkflowError.status` is the HTTP status that belongs to it. */
export type WorkflowErrorCode = keyof typeof workflowErrorStatus;

export function isWorkflowErrorCode(code: unknown): code is WorkflowErrorCode {
  return typeof code === "string" && Object.hasOwn(workflowErrorStatus, code);
}

/**
 * A call failed: the caller made a mistake, or the store cannot be reached. It is the same error in process and over
 * HTTP. After `STORE_UNAVAILABLE` it is not known whether the call took effect.
 */
export class WorkflowError extends Error {
  static {
    this.prototype.name = "WorkflowError";
  }
  readonly code: WorkflowErrorCode;
  /** The HTTP status of the code. */
  readonly status: number;

  constructor(code: WorkflowErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
    this.status = workflowErrorStatus[code];
  }
}

// Names are set on prototypes. A field `name` would be enumerable, and be set too late for the stack's first line.

// The brand is in the global symbol registry, so that errors of a second copy of this module are recognised too.
const nonRetryable = Symbol.for("pawl.NonRetryableError");

/**
 * Throw this in a step to fail the step at once, without another attempt. It may have a name of its own, which the
 * stored error keeps.
 */
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

/** Whether another attempt of a step that threw this would be pointless. */
export function isNonRetryable(error: unknown): boolean {
  if (typeof error !== "object" || error === null) return false;
  try {
    return (error as { [nonRetryable]?: unknown })[nonRetryable] === true;
  } catch {
    return false; // a proxy that refuses to be read
  }
}

/** A mistake of the author that another attempt would repeat, so that there is none. */
class AuthorError extends Error {
  static {
    Object.defineProperty(this.prototype, nonRetryable, { value: true });
  }
}

/** A duration, name or option is not allowed, or an output does not fit its schema. */
export class ValidationError extends AuthorError {
  static {
    this.prototype.name = "ValidationError";
  }
}

/** A value cannot be stored (a function, a class instance, a cycle), or a stored text cannot be read. */
export class SerializationError extends AuthorError {
  static {
    this.prototype.name = "SerializationError";
  }
}

/** The encoded text of a value is larger than its limit. */
export class PayloadTooLargeError extends AuthorError {
  static {
    this.prototype.name = "PayloadTooLargeError";
  }
}

/**
 * A step was called while another of the same name was still running; under `repeatedStepNames: "error"`, whenever a
 * name is called again.
 */
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

/** The run called more steps than `limits.maxStepsPerRun`. It ends the run even if its code catches the error. */
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

/** No event of the type came before the timeout of `waitForEvent`. */
export class WaitTimeoutError extends Error {
  static {
    this.prototype.name = "WaitTimeoutError";
  }
}

/** A step had no attempt left when its runner died during its last one; `cause` is the `RunnerDiedError`. */
export class StepMaxAttemptsExceeded extends Error {
  static {
    this.prototype.name = "StepMaxAttemptsExceeded";
  }
}

/**
 * The process of an attempt died, or lost its lease, before the attempt ended. It is not known what the attempt has
 * done; it counts as one.
 */
export class RunnerDiedError extends Error {
  static {
    this.prototype.name = "RunnerDiedError";
  }
}

/**
 * The run's processes died too often, with no step ending in between. The run was ended without calling its code again.
 */
export class RunCrashedError extends Error {
  static {
    this.prototype.name = "RunCrashedError";
  }
}

/** `result()` was called for an instance that was, or then got, terminated. */
export class InstanceTerminatedError extends Error {
  static {
    this.prototype.name = "InstanceTerminatedError";
  }
}

/** The instance did not end within the timeout of `result()`. It goes on. */
export class ResultTimeoutError extends Error {
  static {
    this.prototype.name = "ResultTimeoutError";
  }
}

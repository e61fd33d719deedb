import * as pawlErrors from "../errors.js";

/** The parts of an error that are stored. A stack is not: it describes one process and one deploy. */
type ErrorShape = {
  /** The most specific known class: a built-in or one of Pawl's own. */
  readonly class: ErrorClassName;
  readonly name: string;
  readonly message: string;
  readonly code?: string | number;
  readonly cause?: unknown;
  /** The errors of an `AggregateError`. */
  readonly errors?: readonly unknown[];
};

// The first class that an error is an instance of wins, so subclasses come before their base classes.
const classes = {
  DuplicateStepError: pawlErrors.DuplicateStepError,
  InstanceTerminatedError: pawlErrors.InstanceTerminatedError,
  MaxStepsExceededError: pawlErrors.MaxStepsExceededError,
  PayloadTooLargeError: pawlErrors.PayloadTooLargeError,
  ResultTimeoutError: pawlErrors.ResultTimeoutError,
  RunCrashedError: pawlErrors.RunCrashedError,
  RunnerDiedError: pawlErrors.RunnerDiedError,
  SerializationError: pawlErrors.SerializationError,
  StepMaxAttemptsExceeded: pawlErrors.StepMaxAttemptsExceeded,
  StepMismatchError: pawlErrors.StepMismatchError,
  StepTimeoutError: pawlErrors.StepTimeoutError,
  ValidationError: pawlErrors.ValidationError,
  WaitTimeoutError: pawlErrors.WaitTimeoutError,
  WorkflowError: pawlErrors.WorkflowError,
  NonRetryableError: pawlErrors.NonRetryableError,
  AggregateError,
  EvalError,
  RangeError,
  ReferenceError,
  SyntaxError,
  TypeError,
  URIError,
  Error,
} as const;

const STACKED_CAUSES = 5;
const STACK_MAX_LENGTH = 8_192;

type ErrorClassName = keyof typeof classes;

export function isErrorClassName(name: unknown): name is ErrorClassName {
  return typeof name === "string" && Object.hasOwn(classes, name);
}

/**
 * Whether a value is an error, also one of another realm (a vm context, a test environment), where `instanceof` fails.
 */
export function isError(value: object): boolean {
  return attempt(
    () => value instanceof Error || Object.prototype.toString.call(value) === "[object Error]",
    false,
  );
}

/** Reads an error and never throws: a property that cannot be read counts as absent. */
export function readError(error: object): ErrorShape {
  const className = attempt(() => classOf(error), "Error");
  const name = read(error, "name");
  const message = read(error, "message");
  const code = read(error, "code");
  const cause = read(error, "cause");
  const errors = className === "AggregateError" ? read(error, "errors") : undefined;
  return {
    class: className,
    name: typeof name === "string" ? name : className,
    message: typeof message === "string" ? message : "",
    ...(typeof code === "string" || Number.isFinite(code) ? { code: code as string | number } : {}),
    ...(cause === undefined ? {} : { cause }),
    ...(Array.isArray(errors) ? { errors } : {}),
  };
}

/** Returns the stack of a thrown value followed by those of its causes, or null if it has none. */
export function stackOf(thrown: unknown): string | null {
  const stacks: string[] = [];
  const seen = new Set<unknown>();
  for (let error = thrown; isObject(error) && !seen.has(error); error = read(error, "cause")) {
    const stack = read(error, "stack");
    if (typeof stack !== "string" || seen.size === STACKED_CAUSES) break;
    seen.add(error);
    stacks.push(stack.slice(0, STACK_MAX_LENGTH));
  }
  return stacks.length === 0 ? null : stacks.join("\ncaused by: ");
}

function isObject(value: unknown): value is object {
  return typeof value === "object" && value !== null;
}

function classOf(error: object): ErrorClassName {
  const known = (Object.keys(classes) as ErrorClassName[]).find(
    (name) => name !== "Error" && error instanceof classes[name],
  );
  if (known !== undefined) return known;
  // This one was made by a second copy of the package, so `instanceof` did not recognise it.
  if (pawlErrors.isNonRetryable(error)) return "NonRetryableError";
  const foreignName = error instanceof Error ? undefined : read(error, "name");
  return isErrorClassName(foreignName) && isBuiltIn(foreignName) ? foreignName : "Error";
}

function isBuiltIn(name: ErrorClassName): boolean {
  return !Object.hasOwn(pawlErrors, name);
}

function read(error: object, key: string): unknown {
  return attempt(() => (error as Record<string, unknown>)[key], undefined);
}

/** Returns the fallback if the action throws. Getters and proxies run other people's code. */
function attempt<T>(action: () => T, fallback: T): T {
  try {
    return action();
  } catch {
    return fallback;
  }
}

/** Returns an error of this shape, whose stack is only its name and message. */
export function buildError(shape: ErrorShape): Error {
  const { class: className, name, message, code, cause, errors } = shape;
  const options = cause === undefined ? undefined : { cause };
  // This makes a genuine error with the prototype of its class, without calling that class's constructor: those take
  // different arguments.
  const error: Error = Reflect.construct(Error, [message, options], classes[className]);
  if (error.name !== name) define(error, "name", name);
  if (errors !== undefined) define(error, "errors", errors);
  if (code !== undefined) Object.assign(error, { code });
  if (className === "WorkflowError" && pawlErrors.isWorkflowErrorCode(code)) {
    Object.assign(error, { status: pawlErrors.workflowErrorStatus[code] });
  }
  define(error, "stack", `${name}: ${message}`); // the place where it was decoded would mislead
  return error;
}

/** Defines a property as the built-in constructors do: writable and not enumerable. */
function define(error: Error, key: string, value: unknown): void {
  Object.defineProperty(error, key, {
    value,
    writable: true,
    configurable: true,
    enumerable: false,
  });
}

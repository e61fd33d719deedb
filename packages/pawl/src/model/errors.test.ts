import { describe, expect, it, vi } from "vitest";
import * as errors from "./errors.js";
import {
  isNonRetryable,
  isWorkflowErrorCode,
  NonRetryableError,
  SerializationError,
  WorkflowError,
  workflowErrorStatus,
} from "./errors.js";

describe("WorkflowError", () => {
  it("has a code and its HTTP status", () => {
    const cause = new Error("inner");
    const error = new WorkflowError("INSTANCE_NOT_FOUND", "no such instance", { cause });
    expect(error).toMatchObject({ code: "INSTANCE_NOT_FOUND", status: 404 });
    expect(error.cause).toBe(cause);
    expect(String(error)).toBe("WorkflowError: no such instance");
    expect(error.stack).toMatch(/^WorkflowError: no such instance\n/);
  });

  it("keeps the published list of codes", () => {
    expect(workflowErrorStatus).toEqual({
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
    });
    expect(isWorkflowErrorCode("NOT_FOUND")).toBe(true);
    expect(isWorkflowErrorCode("toString")).toBe(false);
    expect(isWorkflowErrorCode(404)).toBe(false);
  });
});

describe("NonRetryableError", () => {
  class Declined extends NonRetryableError {}

  it("has a message and, if given, a name of its own", () => {
    expect(String(new NonRetryableError("no"))).toBe("NonRetryableError: no");
    expect(String(new NonRetryableError("no", "CardDeclined"))).toBe("CardDeclined: no");
    expect(new NonRetryableError("").message).toBe("");
  });

  it.each([
    new NonRetryableError("no"),
    new NonRetryableError(""),
    new NonRetryableError("no", "CardDeclined"),
    new NonRetryableError("no", ""),
    new Declined("no"),
    new SerializationError("no"),
  ])("is recognised: %s", (error) => {
    expect(isNonRetryable(error)).toBe(true);
  });

  it("is recognised when it comes from a second copy of the module", async () => {
    vi.resetModules();
    const copy = await import("./errors.js");
    const foreign = new copy.NonRetryableError("no");
    expect(foreign).not.toBeInstanceOf(NonRetryableError);
    expect(isNonRetryable(foreign)).toBe(true);
    expect(copy.isNonRetryable(new NonRetryableError("no"))).toBe(true);
  });

  it("is not recognised by name, message or shape", () => {
    const named = new Error("NonRetryableError");
    named.name = "NonRetryableError";
    for (const other of [
      named,
      { name: "NonRetryableError" },
      "NonRetryableError",
      null,
      undefined,
      0,
    ]) {
      expect(isNonRetryable(other)).toBe(false);
    }
  });

  it("survives the check of an object that cannot be read", () => {
    const { proxy, revoke } = Proxy.revocable({}, {});
    revoke();
    expect(isNonRetryable(proxy)).toBe(false);
  });
});

describe("errors an author can catch", () => {
  const classes = Object.entries(errors).filter(
    ([, exported]) => typeof exported === "function" && exported.prototype instanceof Error,
  ) as [string, new (message: string, options?: ErrorOptions) => Error][];

  it("are the published ones", () => {
    expect(classes.map(([name]) => name).toSorted()).toEqual([
      "DuplicateStepError",
      "InstanceTerminatedError",
      "MaxStepsExceededError",
      "NonRetryableError",
      "PayloadTooLargeError",
      "ResultTimeoutError",
      "RunCrashedError",
      "RunnerDiedError",
      "SerializationError",
      "StepMaxAttemptsExceeded",
      "StepMismatchError",
      "StepTimeoutError",
      "ValidationError",
      "WaitTimeoutError",
      "WorkflowError",
    ]);
  });

  it("are named like their class and have no enumerable fields", () => {
    for (const [name, Class] of classes) {
      if (name === "WorkflowError") continue;
      const error = new Class("message");
      expect(error.name).toBe(name);
      expect(error.stack).toMatch(new RegExp(`^${name}: message\n`));
      expect(Object.keys(error)).toEqual([]);
    }
  });

  it("are retried only if another attempt may help", () => {
    expect(isNonRetryable(new errors.StepTimeoutError("late"))).toBe(false);
    expect(isNonRetryable(new errors.WaitTimeoutError("late"))).toBe(false);
    expect(isNonRetryable(new errors.ValidationError("wrong"))).toBe(true);
    expect(isNonRetryable(new errors.SerializationError("wrong"))).toBe(true);
    expect(isNonRetryable(new errors.PayloadTooLargeError("wrong"))).toBe(true);
  });
});

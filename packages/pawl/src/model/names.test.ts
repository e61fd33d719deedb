import { describe, expect, it } from "vitest";
import { ValidationError, WorkflowError } from "./errors.js";
import { defaultLimits, resolveLimits } from "./limits.js";
import {
  validEventId,
  validEventType,
  validInstanceId,
  validQueueName,
  validStepName,
  validWorkflowName,
} from "./names.js";

function thrown(action: () => unknown): unknown {
  try {
    action();
  } catch (error) {
    return error;
  }
  throw new Error("did not throw");
}

const unstorable = ["\u0000", "a\nb", "a\u007f", "a\u0085", "\ud800", "a\udc00b", "\udc00\ud800"];

describe.each([
  { valid: validInstanceId, code: "INVALID_INSTANCE_ID", field: "instance id" },
  { valid: validEventType, code: "INVALID_EVENT_TYPE", field: "event type" },
])("$field", ({ valid, code, field }) => {
  it.each(["a", "_", "7", "order-123", "A_b-C", "a".repeat(100)])("accepts %s", (id) => {
    expect(valid(id, defaultLimits)).toBe(id);
  });

  it.each([
    ["", "must not be empty"],
    ["-a", 'must not start with "-", got "-a"'],
    ["a b", 'got "a b"'],
    ["a.b", 'got "a.b"'],
    ["a\n", "control characters"],
    ["é", 'got "é"'],
    ["a".repeat(101), "must have at most 100 characters"],
    [7, "must be a string, got 7"],
    [undefined, "must be a string, got undefined"],
    [null, "must be a string, got null"],
    [{ toString: () => "a" }, "must be a string, got an object"],
  ])("refuses %j", (id, message) => {
    const error = thrown(() => valid(id, defaultLimits));
    expect(error).toBeInstanceOf(WorkflowError);
    expect(error).toMatchObject({ code, status: 400 });
    expect((error as Error).message).toContain(field);
    expect((error as Error).message).toContain(message);
  });
});

describe.each([
  { valid: validWorkflowName, max: 64, field: "workflow name", mistake: ValidationError },
  { valid: validQueueName, max: 64, field: "queue name", mistake: ValidationError },
  { valid: validStepName, max: 256, field: "step name", mistake: ValidationError },
  { valid: validEventId, max: 100, field: "event id", mistake: WorkflowError },
])("$field", ({ valid, max, field, mistake }) => {
  it("accepts any text people write", () => {
    for (const name of ["a", " ", "Rechnung prüfen", "支付/2", "👩‍👩‍👧", '"quoted"', "a\u00a0b"]) {
      expect(valid(name, defaultLimits)).toBe(name);
    }
  });

  it("counts code points, not UTF-16 units", () => {
    expect(valid("😀".repeat(max), defaultLimits)).toBe("😀".repeat(max));
    for (const tooLong of ["😀".repeat(max + 1), "a".repeat(max + 1), "a".repeat(1_000_000)]) {
      const error = thrown(() => valid(tooLong, defaultLimits)) as Error;
      expect(error.message).toContain(`${field} must have at most ${max} characters, got "`);
      expect(error.message.length).toBeLessThan(200);
    }
  });

  it("refuses names that databases cannot keep", () => {
    for (const name of unstorable) {
      const error = thrown(() => valid(name, defaultLimits)) as Error;
      expect(error).toBeInstanceOf(mistake);
      expect(error.message).toContain("control characters or lone surrogates");
      expect(error.message).toMatch(/^[\x20-\x7e]+$/);
    }
  });

  it("refuses an empty name and non-strings", () => {
    expect(() => valid("", defaultLimits)).toThrow(`${field} must not be empty`);
    for (const given of [undefined, null, 1, {}, Symbol("a")]) {
      expect(() => valid(given, defaultLimits)).toThrow(`${field} must be a string`);
    }
  });
});

it("an invalid event id of a caller is an INVALID_REQUEST", () => {
  expect(thrown(() => validEventId("", defaultLimits))).toMatchObject({ code: "INVALID_REQUEST" });
});

it("refuses workflow names that no URL can carry", () => {
  for (const name of [".", ".."]) {
    expect(() => validWorkflowName(name, defaultLimits)).toThrow(ValidationError);
  }
  expect(validWorkflowName("...", defaultLimits)).toBe("...");
});

it("follows configured limits", () => {
  const limits = resolveLimits({ instanceIdMaxLength: 3 });
  expect(validInstanceId("abc", limits)).toBe("abc");
  expect(() => validInstanceId("abcd", limits)).toThrow("at most 3 characters");
});

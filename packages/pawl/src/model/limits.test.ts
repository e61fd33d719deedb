import { describe, expect, it } from "vitest";
import { ValidationError } from "./errors.js";
import { defaultLimits, defaultStepDefaults, resolveLimits, type Limits } from "./limits.js";

const dayMs = 86_400_000;

describe("defaults", () => {
  it("are those of the specification", () => {
    expect(defaultLimits).toEqual({
      workflowNameMaxLength: 64,
      queueNameMaxLength: 64,
      instanceIdMaxLength: 100,
      eventTypeMaxLength: 100,
      eventIdMaxLength: 100,
      stepNameMaxLength: 256,
      paramsMaxBytes: 1_048_576,
      stepResultMaxBytes: 1_048_576,
      eventPayloadMaxBytes: 1_048_576,
      outputMaxBytes: 1_048_576,
      maxStepsPerRun: 1024,
      maxSleepMs: 365 * dayMs,
      eventTimeoutMinMs: 1000,
      eventTimeoutDefaultMs: dayMs,
      eventTimeoutMaxMs: 365 * dayMs,
      batchMaxInstances: 100,
      pageSizeDefault: 25,
      pageSizeMax: 100,
      requestMaxBytes: 8_388_608,
      requestMaxKeys: 100_000,
    });
    expect(defaultStepDefaults).toEqual({
      retryLimit: 5,
      retryDelayMs: 10_000,
      backoff: "exponential",
      timeoutMs: 600_000,
    });
  });

  it("cannot be changed by accident", () => {
    expect(Object.isFrozen(defaultLimits)).toBe(true);
    expect(Object.isFrozen(resolveLimits())).toBe(true);
  });
});

describe("resolveLimits", () => {
  it("takes overrides and keeps the rest", () => {
    expect(resolveLimits()).toEqual(defaultLimits);
    expect(resolveLimits({ maxStepsPerRun: 10_000, stepNameMaxLength: 1 })).toEqual({
      ...defaultLimits,
      maxStepsPerRun: 10_000,
      stepNameMaxLength: 1,
    });
    expect(resolveLimits({ pageSizeMax: undefined } as unknown as Partial<Limits>)).toEqual(
      defaultLimits,
    );
  });

  it.each([0, -1, 1.5, Number.NaN, Infinity, "10", null])(
    "refuses %s and names the field",
    (value) => {
      const overrides = { maxStepsPerRun: value } as Partial<Limits>;
      expect(() => resolveLimits(overrides)).toThrow(ValidationError);
      expect(() => resolveLimits(overrides)).toThrow(
        /^limits\.maxStepsPerRun must be a whole number from 1 to 1000000, got /,
      );
    },
  );

  it("refuses limits that the databases cannot hold", () => {
    expect(() => resolveLimits({ instanceIdMaxLength: 101 })).toThrow("from 1 to 100, got 101");
    expect(() => resolveLimits({ stepResultMaxBytes: 2 ** 24 })).toThrow(
      "limits.stepResultMaxBytes",
    );
    expect(resolveLimits({ stepResultMaxBytes: 2 ** 22 }).stepResultMaxBytes).toBe(2 ** 22);
  });

  it("refuses a misspelt limit instead of ignoring it", () => {
    expect(() => resolveLimits({ maxStepPerRun: 1 } as unknown as Partial<Limits>)).toThrow(
      'limits: "maxStepPerRun" is not a limit',
    );
    expect(() => resolveLimits({ toString: 1 } as unknown as Partial<Limits>)).toThrow(
      '"toString" is not a limit',
    );
  });

  it("refuses a default outside its own bounds", () => {
    expect(() => resolveLimits({ pageSizeMax: 10 })).toThrow(
      "limits.pageSizeDefault (25) must not be above limits.pageSizeMax (10)",
    );
    expect(() => resolveLimits({ eventTimeoutMaxMs: 5_000 })).toThrow("limits.eventTimeoutMaxMs");
    expect(() => resolveLimits({ eventTimeoutMinMs: 2 * dayMs })).toThrow(
      "limits.eventTimeoutMinMs",
    );
  });
});

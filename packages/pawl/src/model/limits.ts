import { ValidationError } from "./errors.js";
import { quote } from "./quote.js";

const secondMs = 1_000;
const minuteMs = 60 * secondMs;
const hourMs = 60 * minuteMs;
const dayMs = 24 * hourMs;
const mebibyteBytes = 1_048_576;

// A limit may be lowered, and raised up to its ceiling. Names stop at their default because database columns are
// sized for it (4 bytes per code point). Payloads stop at 4 MiB: escaped once more inside a batch they can double,
// and MariaDB refuses a packet over 16 MiB unless told otherwise.
const table = {
  /** In code points, as all lengths of names. */
  workflowNameMaxLength: { default: 64, ceiling: 64 },
  queueNameMaxLength: { default: 64, ceiling: 64 },
  instanceIdMaxLength: { default: 100, ceiling: 100 },
  eventTypeMaxLength: { default: 100, ceiling: 100 },
  /** The optional id that makes `sendEvent` idempotent. */
  eventIdMaxLength: { default: 100, ceiling: 100 },
  stepNameMaxLength: { default: 256, ceiling: 256 },

  /** In UTF-8 bytes of the encoded value, as all sizes of payloads. */
  paramsMaxBytes: { default: mebibyteBytes, ceiling: 4 * mebibyteBytes },
  stepResultMaxBytes: { default: mebibyteBytes, ceiling: 4 * mebibyteBytes },
  eventPayloadMaxBytes: { default: mebibyteBytes, ceiling: 4 * mebibyteBytes },
  outputMaxBytes: { default: mebibyteBytes, ceiling: 4 * mebibyteBytes },

  /** `do` steps; sleeps and waits do not count. */
  maxStepsPerRun: { default: 1_024, ceiling: 1_000_000 },
  maxSleepMs: { default: 365 * dayMs, ceiling: 3_650 * dayMs },
  eventTimeoutMinMs: { default: secondMs, ceiling: 3_650 * dayMs },
  eventTimeoutDefaultMs: { default: 24 * hourMs, ceiling: 3_650 * dayMs },
  eventTimeoutMaxMs: { default: 365 * dayMs, ceiling: 3_650 * dayMs },

  batchMaxInstances: { default: 100, ceiling: 1_000 },
  pageSizeDefault: { default: 25, ceiling: 1_000 },
  pageSizeMax: { default: 100, ceiling: 1_000 },

  /** Of the body of one HTTP request. */
  requestMaxBytes: { default: 8 * mebibyteBytes, ceiling: 128 * mebibyteBytes },
  /** Keys, arrays and objects together. */
  requestMaxKeys: { default: 100_000, ceiling: 10_000_000 },
} as const;

export type Limits = { readonly [Name in keyof typeof table]: number };

const names = Object.keys(table) as (keyof Limits)[];

export const defaultLimits: Limits = Object.freeze(
  Object.fromEntries(names.map((name) => [name, table[name].default])) as Limits,
);

export function resolveLimits(overrides: Partial<Limits> = {}): Limits {
  for (const name of Object.keys(overrides)) {
    if (!Object.hasOwn(table, name))
      throw new ValidationError(`limits: ${quote(name)} is not a limit`);
  }
  const limits = Object.freeze(
    Object.fromEntries(names.map((name) => [name, resolveOne(name, overrides[name])])) as Limits,
  );
  checkOrder(limits, "eventTimeoutMinMs", "eventTimeoutDefaultMs");
  checkOrder(limits, "eventTimeoutDefaultMs", "eventTimeoutMaxMs");
  checkOrder(limits, "pageSizeDefault", "pageSizeMax");
  return limits;
}

function resolveOne(name: keyof Limits, override: number | undefined): number {
  const { default: fallback, ceiling } = table[name];
  if (override === undefined) return fallback;
  if (!Number.isInteger(override) || override < 1 || override > ceiling) {
    throw new ValidationError(
      `limits.${name} must be a whole number from 1 to ${ceiling}, got ${quote(override)}`,
    );
  }
  return override;
}

function checkOrder(limits: Limits, lower: keyof Limits, upper: keyof Limits): void {
  if (limits[lower] > limits[upper]) {
    throw new ValidationError(
      `limits.${lower} (${limits[lower]}) must not be above limits.${upper} (${limits[upper]})`,
    );
  }
}

export type Backoff = "constant" | "linear" | "exponential";

/** How a step retries when its author says nothing. `retryLimit` counts retries: 5 retries are 6 attempts. */
export type StepDefaults = {
  readonly retryLimit: number;
  readonly retryDelayMs: number;
  readonly backoff: Backoff;
  readonly timeoutMs: number;
};

export const defaultStepDefaults: StepDefaults = Object.freeze({
  retryLimit: 5,
  retryDelayMs: 10 * secondMs,
  backoff: "exponential",
  timeoutMs: 10 * minuteMs,
});

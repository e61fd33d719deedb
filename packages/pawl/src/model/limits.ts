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
  /** Length of a workflow's name, in code points. At most the default, 64. */
  workflowNameMaxLength: { default: 64, ceiling: 64 },
  /** Length of a queue's name, in code points. At most the default, 64. */
  queueNameMaxLength: { default: 64, ceiling: 64 },
  /** Length of an instance's id, in code points. At most the default, 100. */
  instanceIdMaxLength: { default: 100, ceiling: 100 },
  /** Length of an event's type, in code points. At most the default, 100. */
  eventTypeMaxLength: { default: 100, ceiling: 100 },
  /** Length of the optional id that makes `sendEvent` idempotent, in code points. At most the default, 100. */
  eventIdMaxLength: { default: 100, ceiling: 100 },
  /** Length of a step's name, in code points. At most the default, 256. */
  stepNameMaxLength: { default: 256, ceiling: 256 },

  /** Size of an instance's params, in UTF-8 bytes of the encoded value. Default 1 MiB, at most 4 MiB. */
  paramsMaxBytes: { default: mebibyteBytes, ceiling: 4 * mebibyteBytes },
  /** Size of a step's result, in UTF-8 bytes of the encoded value. Default 1 MiB, at most 4 MiB. */
  stepResultMaxBytes: { default: mebibyteBytes, ceiling: 4 * mebibyteBytes },
  /** Size of an event's payload, in UTF-8 bytes of the encoded value. Default 1 MiB, at most 4 MiB. */
  eventPayloadMaxBytes: { default: mebibyteBytes, ceiling: 4 * mebibyteBytes },
  /** Size of an instance's output, in UTF-8 bytes of the encoded value. Default 1 MiB, at most 4 MiB. */
  outputMaxBytes: { default: mebibyteBytes, ceiling: 4 * mebibyteBytes },

  /** How many `do` steps a run may call; sleeps and waits do not count. Default 1,024, at most 1,000,000. */
  maxStepsPerRun: { default: 1_024, ceiling: 1_000_000 },
  /** How long a sleep may take. Default 365 days, at most 3,650. */
  maxSleepMs: { default: 365 * dayMs, ceiling: 3_650 * dayMs },
  /** The shortest timeout of `waitForEvent`. Default 1 second. */
  eventTimeoutMinMs: { default: secondMs, ceiling: 3_650 * dayMs },
  /** The timeout of a `waitForEvent` that gives none. Default 24 hours. */
  eventTimeoutDefaultMs: { default: 24 * hourMs, ceiling: 3_650 * dayMs },
  /** The longest timeout of `waitForEvent`. Default 365 days, at most 3,650. */
  eventTimeoutMaxMs: { default: 365 * dayMs, ceiling: 3_650 * dayMs },

  /** How many instances one `createBatch` may create. Default 100, at most 1,000. */
  batchMaxInstances: { default: 100, ceiling: 1_000 },
  /** How many items a page has if the caller does not say. Default 25. */
  pageSizeDefault: { default: 25, ceiling: 1_000 },
  /** How many items a page may have. Default 100, at most 1,000. */
  pageSizeMax: { default: 100, ceiling: 1_000 },

  /** Size of the body of an HTTP request, in bytes. Default 8 MiB, at most 128 MiB. */
  requestMaxBytes: { default: 8 * mebibyteBytes, ceiling: 128 * mebibyteBytes },
  /** How many keys, arrays and objects the body of an HTTP request may have together. Default 100,000. */
  requestMaxKeys: { default: 100_000, ceiling: 10_000_000 },
} as const;

/** The limits of an engine. `createWorkflows` takes those that differ from the defaults. */
export type Limits = { readonly [Name in keyof typeof table]: number };

const names = Object.keys(table) as (keyof Limits)[];

/** The limits of an engine that sets none. */
export const defaultLimits: Limits = Object.freeze(
  Object.fromEntries(names.map((name) => [name, table[name].default])) as Limits,
);

/**
 * Returns all limits, with defaults for those that are not given. Throws `ValidationError` for one that is not allowed.
 */
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

/** How a step is retried if its author does not say. `retryLimit` counts retries: 5 retries are 6 attempts. */
type StepDefaults = {
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

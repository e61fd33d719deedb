import { parseDurationMs, type WorkflowDuration } from "../model/duration.js";
import { ValidationError } from "../model/errors.js";
import { checkOptions, type Known } from "../model/known-options.js";
import { defaultLimits, defaultStepDefaults, type Backoff } from "../model/limits.js";
import { quote } from "../model/quote.js";
import type {
  EffectiveStepConfig,
  WorkflowJitter,
  WorkflowRetries,
  WorkflowStepConfig,
} from "../authoring/step.js";

/** A step's config with nothing left to default or to parse. */
export type StepPolicy = {
  /** Counts all attempts: one more than `retries.limit`. */
  readonly maxAttempts: number;
  readonly delayMs: number;
  readonly backoff: Backoff;
  readonly maxDelayMs: number;
  readonly jitter: Jitter | null;
  readonly retryable: ((error: unknown) => boolean) | null;
  readonly timeoutMs: number;
  /** The config as the step's body sees it. */
  readonly config: EffectiveStepConfig;
};

/** Changes a delay up or down by at most a share of it, or adds some milliseconds to it. */
export type Jitter =
  | { readonly kind: "share"; readonly share: number }
  | { readonly kind: "range"; readonly minMs: number; readonly maxMs: number };

const backoffs: readonly string[] = ["constant", "linear", "exponential"] satisfies Backoff[];
const DEFAULT_JITTER = 0.5;
const configOptions: Known<WorkflowStepConfig> = { retries: true, timeout: true };
const retriesOptions: Known<WorkflowRetries> = {
  limit: true,
  delay: true,
  backoff: true,
  maxDelay: true,
  jitter: true,
  retryable: true,
};

/** Reads the configs of steps. */
export type StepPolicies = {
  /** The policy of a step without a config. */
  readonly standard: StepPolicy;
  of(step: string, config: WorkflowStepConfig): StepPolicy;
};

/**
 * Returns a reader of step configs. A setting that a step's config leaves out comes from the engine's defaults. A
 * setting that they leave out has its built-in value.
 */
export function stepPolicies(
  defaults: WorkflowStepConfig | undefined,
  maxDelayMs: number,
): StepPolicies {
  const builtIn = withConfig({
    maxAttempts: defaultStepDefaults.retryLimit + 1,
    delayMs: defaultStepDefaults.retryDelayMs,
    backoff: defaultStepDefaults.backoff,
    maxDelayMs,
    jitter: null,
    retryable: null,
    timeoutMs: defaultStepDefaults.timeoutMs,
  });
  const standard = defaults === undefined ? builtIn : parse("stepDefaults", defaults, builtIn);
  return { standard, of: (step, config) => parse(`step ${quote(step)}`, config, standard) };
}

function parse(whose: string, config: WorkflowStepConfig, standard: StepPolicy): StepPolicy {
  checkOptions(`config of ${whose}`, config, configOptions);
  const { retries, timeout } = config;
  if (retries !== undefined) checkOptions(`retries of ${whose}`, retries, retriesOptions);
  const { maxSleepMs: maxMs } = defaultLimits;
  const field = (name: string): string => `${name} of ${whose}`;
  const duration = (
    name: string,
    given: WorkflowDuration | undefined,
    otherwise: number,
  ): number =>
    given === undefined ? otherwise : parseDurationMs(given, { field: field(name), maxMs });
  return withConfig({
    maxAttempts:
      retries?.limit === undefined
        ? standard.maxAttempts
        : limitOf(retries.limit, field("retries.limit")) + 1,
    delayMs: duration("retries.delay", retries?.delay, standard.delayMs),
    backoff: backoffOf(retries?.backoff, field("retries.backoff")) ?? standard.backoff,
    maxDelayMs: duration("retries.maxDelay", retries?.maxDelay, standard.maxDelayMs),
    jitter:
      retries?.jitter === undefined
        ? standard.jitter
        : jitterOf(retries.jitter, field("retries.jitter"), maxMs),
    retryable: predicateOf(retries, field("retries.retryable")) ?? standard.retryable,
    timeoutMs: duration("timeout", timeout, standard.timeoutMs),
  });
}

function withConfig(policy: Omit<StepPolicy, "config">): StepPolicy {
  const { maxAttempts, delayMs, backoff, timeoutMs } = policy;
  const config = Object.freeze({
    retries: Object.freeze({ limit: maxAttempts - 1, delay: delayMs, backoff }),
    timeout: timeoutMs,
  });
  return Object.freeze({ ...policy, config });
}

function limitOf(limit: number, field: string): number {
  if (limit === Infinity || (Number.isInteger(limit) && limit >= 0)) return limit;
  throw new ValidationError(
    `${field} must be a whole number from 0, or Infinity, got ${quote(limit)}`,
  );
}

function backoffOf(backoff: Backoff | undefined, field: string): Backoff | undefined {
  if (backoff === undefined || backoffs.includes(backoff)) return backoff;
  throw new ValidationError(
    `${field} must be one of ${backoffs.join(", ")}, got ${quote(backoff)}`,
  );
}

function jitterOf(given: WorkflowJitter, field: string, maxMs: number): Jitter | null {
  if (given === false) return null;
  if (given === true) return { kind: "share", share: DEFAULT_JITTER };
  if (typeof given === "number") {
    if (given >= 0 && given <= 1) return { kind: "share", share: given };
    throw new ValidationError(`${field} must be a share from 0 to 1, got ${quote(given)}`);
  }
  if (typeof given !== "object" || given === null) {
    throw new ValidationError(
      `${field} must be true, a share or { min, max }, got ${quote(given)}`,
    );
  }
  const min = parseDurationMs(given.min, { field: `${field}, min`, maxMs });
  const max = parseDurationMs(given.max, { field: `${field}, max`, minMs: min, maxMs });
  return { kind: "range", minMs: min, maxMs: max };
}

function predicateOf(
  retries: WorkflowRetries | undefined,
  field: string,
): ((error: unknown) => boolean) | null {
  if (retries?.retryable === undefined) return null;
  if (typeof retries.retryable !== "function") {
    throw new ValidationError(`${field} must be a function, got ${quote(retries["retryable"])}`);
  }
  return (error) => retries.retryable?.(error) ?? true;
}

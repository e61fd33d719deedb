import { isNonRetryable, WorkflowError } from "../model/errors.js";
import type { Random } from "../model/seams.js";
import type { DbTime } from "../store/records.js";
import type { Jitter, StepPolicy } from "./step-config.js";

/** Returns the milliseconds until the next attempt; null if the error is final. */
export function retryDelayMs(
  error: unknown,
  attempt: number,
  policy: StepPolicy,
  world: { readonly random: Random; readonly now: DbTime },
): number | null {
  if (attempt >= policy.maxAttempts || isNonRetryable(error)) return null;
  if (!mayRetry(error, policy)) return null;
  const asked = retryAfterMs(error, world.now);
  if (asked !== null) return Math.min(asked, policy.maxDelayMs);
  const delayMs = backoffMs(policy, attempt);
  return Math.min(delayMs + jitterMs(policy.jitter, delayMs, world.random), policy.maxDelayMs);
}

function mayRetry(error: unknown, { retryable }: StepPolicy): boolean {
  try {
    if (retryable !== null) return retryable(error);
  } catch {
    // A predicate that throws is ignored, so that the step's own error does not get lost behind it.
  }
  return isWorthRetrying(error);
}

/**
 * A millisecond, doubled this often, is longer than any delay. A delay of 0 stays 0, as it would not if it were
 * multiplied by Infinity.
 */
const MAX_DOUBLINGS = 40;

function backoffMs({ delayMs, backoff, maxDelayMs }: StepPolicy, attempt: number): number {
  switch (backoff) {
    case "constant":
      return delayMs;
    case "linear":
      return Math.min(delayMs * attempt, maxDelayMs);
    case "exponential":
      return Math.min(delayMs * 2 ** Math.min(attempt - 1, MAX_DOUBLINGS), maxDelayMs);
  }
}

function jitterMs(jitter: Jitter | null, delayMs: number, random: Random): number {
  if (jitter === null) return 0;
  if (jitter.kind === "share") return Math.round(delayMs * jitter.share * (2 * random.next() - 1));
  return jitter.minMs + Math.round((jitter.maxMs - jitter.minMs) * random.next());
}

const RETRIED_CLIENT_ERRORS: readonly number[] = [408, 425, 429];

/** Returns false if the error's HTTP status says that the same request would be refused again. */
function isWorthRetrying(error: unknown): boolean {
  const status = httpStatus(error);
  if (status === null || status < 400 || status > 499) return true;
  return RETRIED_CLIENT_ERRORS.includes(status);
}

function httpStatus(error: unknown): number | null {
  // The engine's own errors have a status for the HTTP API. For a step they are like any other error.
  if (isA(WorkflowError, error)) return null;
  const status = read(error, "status");
  return typeof status === "number" && Number.isInteger(status) ? status : null;
}

/**
 * Reads the error's `retryAfter`: seconds or a date, as in the HTTP header. A date is compared with the database's
 * clock, as far as that is known.
 */
function retryAfterMs(error: unknown, now: DbTime): number | null {
  const given = read(error, "retryAfter");
  if (isA(Date, given)) {
    const inMs = given.getTime() - now;
    return Number.isNaN(inMs) ? null : Math.max(0, inMs);
  }
  return typeof given === "number" && given >= 0 && Number.isFinite(given)
    ? Math.ceil(given * 1000)
    : null;
}

/** Like `instanceof`, but never throws. A proxy may refuse the question, or be revoked. */
function isA<T>(type: abstract new (...args: never) => T, value: unknown): value is T {
  try {
    return value instanceof type;
  } catch {
    return false;
  }
}

function read(error: unknown, key: string): unknown {
  if (typeof error !== "object" || error === null) return undefined;
  try {
    return (error as Record<string, unknown>)[key];
  } catch {
    return undefined; // a getter that throws
  }
}

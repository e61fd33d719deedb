import { ValidationError, WorkflowError } from "./errors.js";
import { defaultLimits } from "./limits.js";
import { quote } from "./quote.js";

/**
 * A length of time: a text such as `"10 seconds"`, `"1h 30m"` or `"1.5 days"`, or a number of milliseconds. A month is
 * 30 days and a year 365.
 */
export type WorkflowDuration = string | number;

const second = 1_000;
const minute = 60 * second;
const hour = 60 * minute;
const day = 24 * hour;

// Months and years have a fixed length because a duration is added to a time without consulting a calendar.
const unitMs: ReadonlyMap<string, number> = new Map([
  ...words(1, "ms", "msec", "msecs", "millisecond", "milliseconds"),
  ...words(second, "s", "sec", "secs", "second", "seconds"),
  ...words(minute, "m", "min", "mins", "minute", "minutes"),
  ...words(hour, "h", "hr", "hrs", "hour", "hours"),
  ...words(day, "d", "day", "days"),
  ...words(7 * day, "w", "week", "weeks"),
  ...words(30 * day, "mo", "month", "months"),
  ...words(365 * day, "y", "yr", "yrs", "year", "years"),
]);

function words(ms: number, ...names: string[]): [string, number][] {
  return names.map((name) => [name, ms]);
}

const textMaxLength = 100;

/** `field` names the duration in error messages. By default it may be from 0 ms to 365 days. */
export type DurationBounds = { field: string; minMs?: number; maxMs?: number };

/**
 * Returns a duration as a whole number of milliseconds, the smallest step of the database's clock. Throws
 * `ValidationError` if it is no duration, or out of bounds.
 */
export function parseDurationMs(given: WorkflowDuration, bounds: DurationBounds): number {
  const { field, minMs = 0, maxMs = defaultLimits.maxSleepMs } = bounds;
  const exactMs = typeof given === "string" ? sumOfTerms(given) : given;
  if (typeof exactMs !== "number" || Number.isNaN(exactMs)) {
    throw new ValidationError(
      `${field} must be a duration such as "10 seconds" or "1h 30m", or a number of milliseconds, ` +
        `got ${quote(given)}`,
    );
  }
  const ms = Math.round(exactMs) || 0; // never -0
  if (ms < minMs || exactMs < 0) {
    throw new ValidationError(`${field} must be at least ${spoken(minMs)}, got ${quote(given)}`);
  }
  if (ms > maxMs) {
    throw new ValidationError(`${field} must be at most ${spoken(maxMs)}, got ${quote(given)}`);
  }
  return ms;
}

function sumOfTerms(text: string): number {
  const term = /\s*(\d+(?:\.\d+)?)\s*([a-z]+)\s*/y;
  if (text === "" || text.length > textMaxLength) return Number.NaN;
  let sumMs = 0;
  while (term.lastIndex < text.length) {
    const [, count, unit] = term.exec(text) ?? [];
    sumMs += Number(count) * (unitMs.get(unit ?? "") ?? Number.NaN);
    if (Number.isNaN(sumMs)) return sumMs;
  }
  return sumMs;
}

function spoken(ms: number): string {
  if (ms >= day && ms % day === 0) return `${ms / day} days`;
  if (ms >= second && ms % second === 0) return `${ms / second} seconds`;
  return `${ms} ms`;
}

/** Returns how long a caller wants to wait, in milliseconds: `Infinity` if it did not say. */
export function requestedMs(field: string, given: WorkflowDuration | undefined): number {
  if (given === undefined) return Number.POSITIVE_INFINITY;
  try {
    return parseDurationMs(given, { field, maxMs: Number.POSITIVE_INFINITY });
  } catch (error) {
    throw new WorkflowError("INVALID_REQUEST", (error as Error).message, { cause: error });
  }
}

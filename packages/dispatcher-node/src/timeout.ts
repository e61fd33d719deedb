import { ValidationError } from "pawl";

/** A timer that is longer than this, or not a number, fires at once. */
export const MAX_TIMER_MS = 2 ** 31 - 1;

/** Throws `ValidationError` unless the timeout is a whole number of milliseconds that a timer can wait. */
export function checkTimeout(what: string, timeoutMs: number, leastMs = 0): void {
  if (Number.isInteger(timeoutMs) && timeoutMs >= leastMs && timeoutMs <= MAX_TIMER_MS) return;
  throw new ValidationError(
    `${what}: timeoutMs must be a whole number from ${leastMs} to ${MAX_TIMER_MS}`,
  );
}

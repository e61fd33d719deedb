import { ValidationError } from "pawl";

/** Longer timers, and those that are no number, fire at once. */
export const MAX_TIMER_MS = 2 ** 31 - 1;

export function checkTimeout(what: string, timeoutMs: number, leastMs = 0): void {
  if (Number.isInteger(timeoutMs) && timeoutMs >= leastMs && timeoutMs <= MAX_TIMER_MS) return;
  throw new ValidationError(
    `${what}: timeoutMs must be a whole number from ${leastMs} to ${MAX_TIMER_MS}`,
  );
}

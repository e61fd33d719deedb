import type { WorkflowRetries } from "./step.js";

/**
 * Ten retries after 2, 4, 8 … seconds, at most 300, each 1 to 3 seconds later by chance: for services that many
 * clients retry at the same time.
 *
 * ```ts
 * await step.do("charge", { retries: cappedBackoff }, () => charge(order));
 * ```
 */
export const cappedBackoff = {
  limit: 10,
  delay: "2 seconds",
  backoff: "exponential",
  maxDelay: "300 seconds",
  jitter: { min: "1 second", max: "3 seconds" },
} as const satisfies WorkflowRetries;

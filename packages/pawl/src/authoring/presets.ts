import type { WorkflowRetries } from "./step.js";

/**
 * Retries for a service that many clients retry at the same time: ten of them, after 2, 4, 8 … seconds, each delayed by
 * another 1 to 3 seconds at random, and none by more than 300 seconds.
 *
 * @example
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

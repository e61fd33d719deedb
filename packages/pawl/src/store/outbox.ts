import type { HookName } from "../model/hooks.js";
import type { DbTime } from "./records.js";

/** A row of the outbox on its way to a hook. */
export type HookRow = {
  readonly id: string;
  readonly hook: HookName;
  readonly workflow: string;
  readonly instanceId: string;
  readonly runNumber: number;
  /** An `EnqueueReason`, or the status in which the run ended. */
  readonly reason: string;
  readonly createdAt: DbTime;
  /** How many deliveries there were, this one included. */
  readonly attempts: number;
  /** The fence. */
  readonly claimNumber: number;
};

export type HookClaimRequest = {
  readonly hooks: readonly HookName[];
  readonly limit: number;
  readonly leaseMs: number;
  /** A row that was claimed so often and is due again is given up: its deliveries have ended their processes. */
  readonly maxAttempts: number;
};

export type HookSettlement = {
  readonly id: string;
  readonly claimNumber: number;
  /** Null if the row was delivered. */
  readonly failure: {
    readonly error: string;
    /** Null gives the row up. */
    readonly retryInMs: number | null;
  } | null;
};

export type FailedHooksQuery = { readonly pageSize: number; readonly cursor?: string };

export type FailedHookRow = Omit<HookRow, "claimNumber"> & {
  readonly failedAt: DbTime;
  readonly error: string;
};

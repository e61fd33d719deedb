import type { BatchLimits } from "./committer.js";
import type { LiveLimits } from "./live-runs.js";

export type RunnerOptions = {
  /** Runs that are leased at a time. */
  readonly concurrency: number;
  readonly leaseMs: number;
  /** Takeovers without progress after which a run ends as `RunCrashedError`. */
  readonly maxTakeovers: number;
  readonly live: LiveLimits;
  readonly batch: BatchLimits;
};

export const defaultRunnerOptions: RunnerOptions = {
  concurrency: 100,
  leaseMs: 30_000,
  maxTakeovers: 5,
  live: { runs: 1_000, bytes: 64 * 1024 * 1024 },
  batch: { parts: 500, bytes: 4 * 1024 * 1024, half: 50 },
};

export type DispatchOptions = Partial<Pick<RunnerOptions, "concurrency" | "leaseMs">> & {
  /** Whether to hear what other processes tell, where the database carries that; default true. */
  readonly listen?: boolean;
  /** Called when it is about to ask for work: what was hinted until then is answered by that. */
  readonly asking?: () => void;
  /** Called once when it is stopped, by whomever: there is nothing more to look for. */
  readonly stopped?: () => void;
};

export type TickOptions = {
  readonly maxInstances?: number | undefined;
  readonly maxSteps?: number | undefined;
};

export type TickResult = {
  readonly processed: number;
  /** Until the next run is due, by the database; null if none will be. */
  readonly nextWakeInMs: number | null;
};

/** What was claimed: how many, and when the last of these turns is over. */
export type Started = { readonly count: number; readonly done: Promise<void> };

import type { BatchLimits } from "./committer.js";
import type { LiveLimits } from "./live-runs.js";

export type RunnerOptions = {
  /** How many runs are leased at a time. */
  readonly concurrency: number;
  readonly leaseMs: number;
  /** The number of takeovers without progress after which a run ends with `RunCrashedError`. */
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
  /** Whether to listen to hints from other processes, where the database carries them; default true. */
  readonly listen?: boolean;
  /** Called when the runner is about to ask for work. Its claim answers all hints that came until then. */
  readonly asking?: () => void;
  /** Called once when the runner is stopped, by anyone. There is nothing more to look for. */
  readonly stopped?: () => void;
};

export type TickOptions = {
  readonly maxInstances?: number | undefined;
  readonly maxSteps?: number | undefined;
};

export type TickResult = {
  readonly processed: number;
  /** The time until the next run is due, by the database; null if none will be. */
  readonly nextWakeInMs: number | null;
};

/** The number of runs that were claimed, and a promise that resolves when the last of their turns is over. */
export type Started = { readonly count: number; readonly done: Promise<void> };

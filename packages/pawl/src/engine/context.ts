import type { OnDivergence, RepeatedStepNames } from "../authoring/options.js";
import type { Codec } from "../model/codec.js";
import type { Limits } from "../model/limits.js";
import type { Logger } from "../model/logger.js";
import type { Runtime } from "../model/seams.js";
import type { DbTime } from "../store/records.js";
import type { Invariants } from "../model/invariants.js";
import type { StepOverrides } from "./overrides.js";
import type { Run } from "./run.js";
import type { StepPolicies } from "./step-config.js";

/** Everything that the runs of an engine share. */
export type EngineContext = {
  readonly runtime: Runtime;
  readonly codec: Codec;
  readonly limits: Limits;
  readonly policies: StepPolicies;
  readonly repeatedStepNames: RepeatedStepNames;
  readonly onDivergence: OnDivergence;
  readonly logger: Logger;
  readonly invariants: Invariants;
  readonly env: unknown;
  /** The approximate time of the database's clock. */
  readonly databaseNow: () => DbTime;
  /** The bindings for a run's code. */
  bindingsFor(run: Pick<Run, "barrier" | "nextOrigin">): unknown;
  readonly timing: EngineTiming;
  /** Null outside of tests. */
  readonly overrides: StepOverrides | null;
};

export type EngineTiming = {
  /** How long a replay waits for code that does not call a recorded step again. */
  readonly stallMs: number;
  /** A run that awaits something other than a step keeps its slot. It is reported after this long. */
  readonly reportStuckMs: number;
  /** How long a held run rests before a runner tries it again. */
  readonly holdMs: number;
};

export const defaultTiming: EngineTiming = {
  stallMs: 1_000,
  reportStuckMs: 60_000,
  holdMs: 60_000,
};

/** The runner as a run sees it. */
export interface RunHost {
  readonly commits: {
    /** The run has something to commit. The committer will ask it for its part. */
    submit(run: Run): void;
  };
  readonly lease: {
    /** Whether the lease is certain enough for a body to start. */
    readonly isFresh: boolean;
  };
  readonly polls: {
    /** Asks for a poll of the run's ticket when the database's time is `at`. */
    at(run: Run, at: DbTime): void;
  };
  readonly turns: {
    /** A body starts. If it runs for a while, a row should say so. */
    noteSoon(): void;
    /** The code of a parked run called a step, so the run needs its ticket again. */
    reopen(run: Run): void;
    /** The claim now belongs to another runner or to nobody, or the run's memory cannot be trusted any more. */
    lost(run: Run): void;
    ended(run: Run, how: TurnEnd): void;
  };
}

/** How a turn ended. It is "gone" if the code was given up, and nothing of the run may be kept. */
export type TurnEnd = "parked" | "paused" | "finished" | "gone";

/** How many bodies may still start. The turns of one tick share it. */
export type StepBudget = { left: number };

import type { OnDivergence, RepeatedStepNames } from "../authoring/options.js";
import type { Codec } from "../model/codec.js";
import type { Limits } from "../model/limits.js";
import type { Logger } from "../model/logger.js";
import type { Runtime } from "../model/seams.js";
import type { DbTime } from "../store/records.js";
import type { Children } from "./children.js";
import type { StepOverrides } from "./overrides.js";
import type { Run } from "./run.js";
import type { PolicyOf } from "./step-config.js";

/** What all runs of an engine share. */
export type EngineContext = {
  readonly runtime: Runtime;
  readonly codec: Codec;
  readonly limits: Limits;
  readonly policyOf: PolicyOf;
  readonly repeatedStepNames: RepeatedStepNames;
  readonly onDivergence: OnDivergence;
  readonly logger: Logger;
  readonly env: unknown;
  /** About what the database's clock shows. */
  databaseNow(): DbTime;
  /** The bindings for a run's code. */
  bindingsFor(children: Children): unknown;
  readonly timing: EngineTiming;
  /** Null outside of tests. */
  readonly overrides: StepOverrides | null;
};

export type EngineTiming = {
  /** How long replay waits for code that does not call what it called before. */
  readonly stallMs: number;
  /** A run that awaits something other than a step keeps its place; after this long it is reported. */
  readonly reportStuckMs: number;
  /** How long a held run rests before a runner tries it again. */
  readonly holdMs: number;
};

export const defaultTiming: EngineTiming = {
  stallMs: 1_000,
  reportStuckMs: 60_000,
  holdMs: 60_000,
};

/** The runner, as a run sees it. */
export interface RunHost {
  /** The run has something to commit: ask it for its part. */
  submit(run: Run): void;
  /** Whether the lease is certain enough for a body to start. */
  mayStartBody(run: Run): boolean;
  /** A body starts: if it runs for a while, a row shall say so. */
  noteSoon(): void;
  /** Look at the run's ticket when the database's time is `at`. */
  lookAt(run: Run, at: DbTime): void;
  /** The code of a parked run called a step: take its ticket again. */
  reopen(run: Run): void;
  /** The run's claim is another's now, or nobody's. */
  lost(run: Run): void;
  /** The turn is over. */
  ended(run: Run, how: TurnEnd): void;
}

/** "gone": the claim is another's now, or the code was given up; nothing of the run may be kept. */
export type TurnEnd = "parked" | "paused" | "finished" | "gone";

/** Bodies that may still start; shared by the turns of one tick. */
export type StepBudget = { left: number };

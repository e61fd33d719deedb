import type { StepContext } from "../../authoring/step.js";
import type { Codec } from "../../model/codec.js";
import type { StepType } from "../../model/step-types.js";
import type { DbTime, EventRecord } from "../../store/records.js";
import type { Attempt, AttemptOutcome } from "../attempt.js";
import type { EngineContext } from "../context.js";
import type { PartDraft } from "../part-draft.js";
import type { OpenStep, Settled, Step } from "../step.js";
import type { StepPolicy } from "../step-config.js";

/** The function that a step with attempts calls, and the policy for calling it. */
export type Body = {
  readonly callback: (context: StepContext) => unknown;
  readonly policy: StepPolicy;
};

/** Everything in which one kind of step differs from another. CONTRIBUTING.md tells how to add a kind. */
export interface StepKind<Input = never> {
  /** The type in the step's row. */
  readonly type: StepType;
  /** The rules for bodies; null for a step that only waits. Steps with bodies count against `limits.maxStepsPerRun`. */
  readonly body: BodyRules | null;
  /** Whether an event whose type is the step's wait key ends its wait. */
  readonly takesEvents: boolean;
  /** Whether a wait of no length ends without a commit that stores it first. */
  readonly mayEndUnregistered: boolean;
  /** Whether the step's row keeps the text of the result. */
  readonly keepsResult: boolean;

  /**
   * Sets up a called step that has no settlement yet. An earlier owner may have recorded it as open. It must not throw: a
   * failure is a settlement in `open.endsAs`. `heardAt` is the last time that the run heard from the database, which may be
   * as long ago as a body has run since; `context.databaseNow()` is about the time now.
   */
  begin(step: Step, open: OpenStep, input: Input, heardAt: DbTime, context: EngineContext): void;
  /**
   * Returns how the step settles when its wait ends, by an event or by its time. It is null if the body is ready to
   * start.
   */
  woken(
    step: Step,
    open: OpenStep,
    event: EventRecord | null,
    context: EngineContext,
  ): Settled | null;
  /** Returns the value of a result, decoded anew for each call of the code. */
  decode(text: string, codec: Codec): unknown;
}

export interface BodyRules {
  /** Returns how the step settles after an attempt; null if it waits for the next one. */
  judge(
    attempt: Attempt,
    outcome: AttemptOutcome,
    draft: PartDraft,
    context: EngineContext,
  ): Settled | null;
}

/**
 * How the code calls a kind of step. `read` checks the author's arguments. The call rejects with the error that it
 * throws.
 */
export type StepMethod<Input> = {
  readonly kind: StepKind<Input>;
  read(name: string, first: unknown, second: unknown, context: EngineContext): Input;
};

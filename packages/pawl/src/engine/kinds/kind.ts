import type { StepContext } from "../../authoring/step.js";
import type { Codec } from "../../model/codec.js";
import type { StepType } from "../../model/step-types.js";
import type { DbTime, EventRecord } from "../../store/records.js";
import type { Attempt, AttemptOutcome } from "../attempt.js";
import type { EngineContext } from "../context.js";
import type { PartDraft } from "../part-draft.js";
import type { OpenStep, Settled, Step } from "../step.js";
import type { StepPolicy } from "../step-config.js";

/** What a step with attempts runs, and by which rules. */
export type Body = {
  readonly callback: (context: StepContext) => unknown;
  readonly policy: StepPolicy;
};

/** All in which one kind of step differs from another. CONTRIBUTING.md tells how to add one. */
export interface StepKind<Input = never> {
  /** As rows name it. */
  readonly type: StepType;
  /** The rules for its bodies; null for a step that only waits. */
  readonly body: BodyRules | null;
  /** An event whose type is the step's wait key ends its wait. */
  readonly takesEvents: boolean;
  /** A wait of no length is over before the database has registered it. */
  readonly mayEndUnregistered: boolean;
  /** Its row keeps the text of its result. */
  readonly keepsResult: boolean;

  /** Sets up a call that has no settlement yet. The step may be recorded as open by an earlier owner. */
  begin(step: Step, open: OpenStep, input: Input, now: DbTime, context: EngineContext): void;
  /** How the step settles when its wait ends, by an event or by its time; null if its body is ready to start. */
  woken(
    step: Step,
    open: OpenStep,
    event: EventRecord | null,
    context: EngineContext,
  ): Settled | null;
  /** The value of a result, made anew for each call of the code. */
  decode(text: string, codec: Codec): unknown;
}

export interface BodyRules {
  /** How the step settles after an attempt; null if it waits for the next one. */
  judge(
    attempt: Attempt,
    outcome: AttemptOutcome,
    draft: PartDraft,
    context: EngineContext,
  ): Settled | null;
}

/** How the code calls a kind of step: `read` checks what the author wrote, and throws what the call rejects with. */
export type StepMethod<Input> = {
  readonly kind: StepKind<Input>;
  read(name: string, first: unknown, second: unknown, context: EngineContext): Input;
};

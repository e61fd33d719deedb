import { MaxStepsExceededError, StepMismatchError } from "../model/errors.js";
import { validStepName } from "../model/names.js";
import type { Attempts } from "./attempts.js";
import { charge, mayHaveBegun, type TakenOver } from "./charge.js";
import { failure, type RunOutcome } from "./code.js";
import type { EngineContext } from "./context.js";
import type { Journal } from "./journal.js";
import type { StepKind, StepMethod } from "./kinds/kind.js";
import type { OpenSteps } from "./open-steps.js";
import type { PartDraft } from "./part-draft.js";
import { decodeSettlement, mayBeUnheard, OpenStep, type Step, type StepCall } from "./step.js";

/** The run as its step calls see it. */
export interface CallingRun {
  /** False once the code's calls do not count any more. */
  readonly wantsCalls: boolean;
  /**
   * Whether the code is still in the stride that its start or a delivery began. It calls the same steps there in every
   * replay.
   */
  readonly isInStride: boolean;
  /** The code has called a step. `isOpen` says that the step has no settlement yet. */
  called(isOpen: boolean): void;
  /** Handles a call that does not fit the history. Returns whether the run is held because of it. */
  diverged(event: string, fields: Record<string, unknown>): boolean;
  codeEnded(outcome: RunOutcome): void;
}

/**
 * How often in a row the code may call steps that are answered at once: steps that have ended, or that were called
 * wrongly. An endless loop of such calls would keep its process from doing anything else. This many take half a second
 * at most.
 */
const MAX_REPEATS = 20_000;

/** The step calls of a run's code. A call finds its step in the journal, and opens it if it has no settlement. */
export class StepCalls {
  readonly #run: CallingRun;
  readonly #context: EngineContext;
  readonly #journal: Journal;
  readonly #openSteps: OpenSteps;
  readonly #attempts: Attempts;
  readonly #draft: PartDraft;
  readonly #takenOver: TakenOver | null;
  /** How often the code has called steps that have bodies. */
  #stepCalls = 0;
  /** How many calls in a row were answered at once. A delivery sets it back to 0. */
  repeats = 0;

  constructor(
    run: CallingRun,
    context: EngineContext,
    journal: Journal,
    openSteps: OpenSteps,
    attempts: Attempts,
    draft: PartDraft,
    takenOver: TakenOver | null,
  ) {
    this.#run = run;
    this.#context = context;
    this.#journal = journal;
    this.#openSteps = openSteps;
    this.#attempts = attempts;
    this.#draft = draft;
    this.#takenOver = takenOver;
  }

  call<Input>(
    method: StepMethod<Input>,
    name: string,
    first?: unknown,
    second?: unknown,
  ): Promise<unknown> {
    const { kind } = method;
    let input: Input;
    let step: Step;
    try {
      validStepName(name, this.#context.limits);
      input = method.read(name, first, second, this.#context);
    } catch (error) {
      return this.#refuse(error);
    }
    if (!this.#run.wantsCalls) return never();
    try {
      step = this.#journal.call(kind, name, this.#attempts.caller());
    } catch (error) {
      const isMismatch = error instanceof StepMismatchError;
      const isHeld = isMismatch && this.#run.diverged("step.mismatch", { name });
      return isHeld ? never() : this.#refuse(error);
    }
    const call = step.call as StepCall;
    if (call.isDelivered) return this.#again(step);
    if (call.isShared) return call.promise();
    if (kind.body !== null) {
      const { maxStepsPerRun } = this.#context.limits;
      this.#stepCalls += 1;
      if (this.#stepCalls > maxStepsPerRun) {
        return this.#giveUp(`the run called more than ${maxStepsPerRun} steps`);
      }
    }
    const promise = call.promise();
    if (step.settled === null) this.#open(step, kind, input);
    this.#run.called(step.settled === null);
    return promise;
  }

  /** Opens the step: it starts, waits, or goes on as its row says. */
  #open<Input>(step: Step, kind: StepKind<Input>, input: Input): void {
    const open = (step.open ??= new OpenStep());
    const openSteps = this.#openSteps;
    kind.begin(step, open, input, openSteps.now, this.#context);
    if (kind.body === null) {
      openSteps.wait(step);
      if (open.wakeAt === null) this.#draft.add(step);
      return;
    }
    open.isNested = step.call?.caller != null && this.#attempts.current() !== null;
    // The code called the step at a time of its own, after it awaited something that is not a step. Only a start row
    // can tell a later owner that the body began.
    const isBounded = open.body?.policy.maxAttempts !== Infinity;
    if (!this.#run.isInStride && isBounded && open.startRow === "unneeded")
      open.startRow = "needed";
    const mayBeCharged = this.#takenOver !== null || step.recordedAs === "running";
    if (mayBeCharged && mayHaveBegun(step, open, this.#takenOver)) {
      this.#draft.addAttempt(charge(step, open, openSteps.now));
    }
    if (step.recordedAs === "waiting" && open.wakeAt !== null) openSteps.wait(step);
    else openSteps.ready.add(step);
  }

  /** Answers a call for a settlement that the code was given before. */
  #again(step: Step): Promise<unknown> {
    if (this.#isRepeatedTooOften()) return this.#giveUp(tooManyRepeats);
    const delivered = decodeSettlement(step, this.#context.codec);
    if ("value" in delivered) return Promise.resolve(delivered.value);
    return mayBeUnheard(Promise.reject(delivered.error));
  }

  /** Rejects a wrong call. It does not count as a step. */
  #refuse(error: unknown): Promise<never> {
    if (this.#isRepeatedTooOften()) return this.#giveUp(tooManyRepeats);
    return mayBeUnheard(Promise.reject(error));
  }

  #isRepeatedTooOften(): boolean {
    this.repeats += 1;
    return this.repeats > MAX_REPEATS;
  }

  /** Ends the run. An endless loop must not go on just because its author catches errors. */
  #giveUp(reason: string): Promise<never> {
    this.#run.codeEnded(failure(new MaxStepsExceededError(reason)));
    return never();
  }
}

const tooManyRepeats =
  `the run called steps again that had ended, or wrongly, ${MAX_REPEATS} times in a row: ` +
  `step names must differ in every round of a loop`;

/** Returns a promise that never settles, for code whose calls do not count any more. */
function never(): Promise<never> {
  return new Promise(() => {});
}

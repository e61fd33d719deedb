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

/** The run whose code calls. */
export interface CallingRun {
  /** False once nobody wants what the code does. */
  readonly wantsCalls: boolean;
  /** The code still does what its start, or a delivery, made it do: in every replay it calls the same steps here. */
  readonly isInStride: boolean;
  /** The code has called a step; `isOpen` if that has no settlement yet. */
  called(isOpen: boolean): void;
  /** The call does not fit the history. Returns whether the run is held for that. */
  diverged(event: string, fields: Record<string, unknown>): boolean;
  codeEnded(outcome: RunOutcome): void;
}

/**
 * How often in a row the code may call steps that need no waiting: those that have ended, or were called wrongly. They are
 * answered at once, so an endless loop of them would keep its process from anything else. This many take half a second at most.
 */
const MAX_REPEATS = 20_000;

/** How a run's code calls steps: a call finds its step in the journal, and opens it if it has no settlement. */
export class StepCalls {
  readonly #run: CallingRun;
  readonly #context: EngineContext;
  readonly #journal: Journal;
  readonly #openSteps: OpenSteps;
  readonly #attempts: Attempts;
  readonly #draft: PartDraft;
  readonly #takenOver: TakenOver | null;
  /** How often the code has called steps with bodies. */
  #stepCalls = 0;
  /** How often in a row the code has called steps that were answered at once. A delivery sets it back. */
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
    first: unknown,
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

  /** The step starts, waits, or goes on as its row says. */
  #open<Input>(step: Step, kind: StepKind<Input>, input: Input): void {
    const open = (step.open ??= new OpenStep());
    const openSteps = this.#openSteps;
    kind.begin(step, open, input, openSteps.now, this.#context);
    if (kind.body === null) {
      openSteps.wait(step);
      if (open.wakeAt === null) this.#draft.add(step);
      return;
    }
    open.isNested = this.#attempts.current() !== null;
    // Called at a time of its own, after something that is no step: only its row can tell a later owner that it began.
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

  /** The code asks again for a settlement that it was given before. */
  #again(step: Step): Promise<unknown> {
    if (this.#isRepeatedTooOften()) return this.#giveUp(tooManyRepeats);
    const delivered = decodeSettlement(step, this.#context.codec);
    if ("value" in delivered) return Promise.resolve(delivered.value);
    return mayBeUnheard(Promise.reject(delivered.error));
  }

  /** A wrong call rejects, and is no step. */
  #refuse(error: unknown): Promise<never> {
    if (this.#isRepeatedTooOften()) return this.#giveUp(tooManyRepeats);
    return mayBeUnheard(Promise.reject(error));
  }

  #isRepeatedTooOften(): boolean {
    this.repeats += 1;
    return this.repeats > MAX_REPEATS;
  }

  /** An endless loop must not go on because its author catches errors: the run ends here. */
  #giveUp(reason: string): Promise<never> {
    this.#run.codeEnded(failure(new MaxStepsExceededError(reason)));
    return never();
  }
}

const tooManyRepeats =
  `the run called steps again that had ended, or wrongly, ${MAX_REPEATS} times in a row: ` +
  `step names must differ in every round of a loop`;

/** Nobody waits for code that nobody wants any more. */
function never(): Promise<never> {
  return new Promise(() => {});
}

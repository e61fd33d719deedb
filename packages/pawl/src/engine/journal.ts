import type { RepeatedStepNames } from "../authoring/options.js";
import { DuplicateStepError, StepMismatchError } from "../model/errors.js";
import { quote } from "../model/quote.js";
import type { StepRecord } from "../store/records.js";
import { Step, type StepType } from "./step.js";

/** `calledAfter` of a step that another step's body called: replay meets it only if that body runs again. */
export const NESTED = -1;

/**
 * The steps of a run: what its code may learn from them, and in which order.
 *
 * A settlement (a step's result or error) gets its number when it happens, and settlements reach the code strictly
 * by number, one a macrotask. Each step also has the number of the last one delivered when it was called. In
 * replay, number n is delivered only when every recorded step called before it has been called again: so a race
 * ends as it did, whatever decided it.
 */
export class Journal {
  /** The number of the last settlement that the code has been given. */
  delivered = 0;
  /** The highest number given to a settlement. */
  lastSeq = 0;
  readonly #steps = new Map<string, Step>();
  readonly #counts = new Map<string, number>();
  readonly #names: RepeatedStepNames;
  /** Recorded settlements by number, and how many of them are done with. */
  readonly #recorded: Step[];
  #replayed = 0;
  /** Recorded steps in the order of their calls, and how many of them were called again. */
  readonly #calls: Step[];
  #called = 0;
  /** Settled, and not yet delivered. */
  readonly #queue: Step[] = [];
  #nextOrd = 1;

  constructor(records: readonly StepRecord[], names: RepeatedStepNames) {
    this.#names = names;
    const steps = records.map((record) => Step.recorded(record));
    for (const step of steps) this.#steps.set(keyOf(step.name, step.count), step);
    this.#nextOrd = 1 + steps.reduce((max, { ord }) => Math.max(max, ord), 0);
    this.#recorded = steps
      .filter(({ settled }) => settled !== null)
      .toSorted((a, b) => seqOf(a) - seqOf(b));
    this.#calls = steps
      .filter(({ calledAfter }) => calledAfter !== NESTED)
      .toSorted((a, b) => a.calledAfter - b.calledAfter);
    this.lastSeq = this.#recorded.reduce((max, step) => Math.max(max, seqOf(step)), 0);
  }

  /** Recorded settlements are still to be delivered. */
  get replaying(): boolean {
    return this.#replayed < this.#recorded.length;
  }

  /** The step that a call means: a new one, a recorded one, or one whose result the code already has. */
  call(type: StepType, name: string, nested: boolean): Step {
    const count = this.#countCall(name);
    const known = this.#steps.get(keyOf(name, count));
    if (known === undefined) {
      const calledAfter = nested ? NESTED : this.delivered;
      const step = new Step({ ord: this.#nextOrd++, name, count, type, calledAfter });
      step.called(this.delivered);
      this.#steps.set(keyOf(name, count), step);
      return step;
    }
    if (known.type !== type) throw mismatch(known, type);
    if (!known.isCalled) {
      known.called(this.delivered);
      if (known.settled !== null && known.settled.seq <= this.delivered) this.#enqueue(known);
      return known;
    }
    if (!known.isDelivered || this.#names === "error") throw duplicate(known);
    return known;
  }

  #countCall(name: string): number {
    if (this.#names !== "counted") return 1;
    const count = (this.#counts.get(name) ?? 0) + 1;
    this.#counts.set(name, count);
    return count;
  }

  /** A step has its result, or its final error. */
  settle(step: Step, outcome: { readonly ok: boolean; readonly text: string }): void {
    this.lastSeq += 1;
    step.settled = { seq: this.lastSeq, ...outcome };
    this.#queue.push(step);
  }

  /** It is delivered as soon as it is asked for; late racers come by number, too. */
  #enqueue(late: Step): void {
    const later = this.#queue.findIndex((step) => seqOf(step) > seqOf(late));
    this.#queue.splice(later === -1 ? this.#queue.length : later, 0, late);
  }

  /** The next settlement for the code, or what replay is waiting for, or null. */
  next(): { readonly deliver: Step } | { readonly missing: Step } | null {
    while (this.replaying && !this.#hasLate) {
      const step = this.#recorded[this.#replayed] as Step;
      const missing = this.#missingBefore(seqOf(step));
      if (missing !== null) return { missing };
      this.#replayed += 1;
      this.delivered = seqOf(step);
      if (step.isCalled) return { deliver: step };
    }
    const step = this.#queue.shift();
    if (step === undefined) return null;
    this.delivered = Math.max(this.delivered, seqOf(step));
    return { deliver: step };
  }

  /** A number was passed while its step was not called, and now it is. */
  get #hasLate(): boolean {
    const [first] = this.#queue;
    return first !== undefined && seqOf(first) <= this.delivered;
  }

  #missingBefore(seq: number): Step | null {
    let step = this.#calls[this.#called];
    while (step?.isCalled === true || step?.isGone === true) {
      this.#called += 1;
      step = this.#calls[this.#called];
    }
    return step !== undefined && step.calledAfter < seq ? step : null;
  }

  /** The code does not call these any more: replay goes on without them. */
  giveUpMissing(): Step[] {
    const next = this.#recorded[this.#replayed];
    if (next === undefined) return [];
    const missing = this.#calls.filter(
      (step) => !step.isCalled && !step.isGone && step.calledAfter < seqOf(next),
    );
    for (const step of missing) step.isGone = true;
    return missing;
  }

  /** Recorded steps that the code has not called. */
  uncalled(): Step[] {
    return this.#calls.filter((step) => !step.isCalled);
  }
}

/** Names have no control characters. */
function keyOf(name: string, count: number): string {
  return count === 1 ? name : `${name}\n${count}`;
}

function seqOf(step: Step): number {
  return step.settled?.seq ?? 0;
}

function mismatch(recorded: Step, type: StepType): StepMismatchError {
  return new StepMismatchError(
    `step ${quote(recorded.name)} is recorded as ${recorded.type} and was called as ${type}: ` +
      `the code has changed under this run, or uses one name for two kinds of steps`,
  );
}

function duplicate(step: Step): DuplicateStepError {
  return new DuplicateStepError(
    step.isDelivered
      ? `step ${quote(step.name)} was already called in this run: step names must be unique`
      : `step ${quote(step.name)} was called again while it is still running: ` +
          `give steps that run side by side different names`,
  );
}

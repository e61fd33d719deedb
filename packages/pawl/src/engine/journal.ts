import type { RepeatedStepNames } from "../authoring/options.js";
import { DuplicateStepError, StepMismatchError } from "../model/errors.js";
import { quote } from "../model/quote.js";
import type { LoadedStep } from "../store/records.js";
import type { Attempt } from "./attempt.js";
import { Step, type StepType } from "./step.js";

/** A step that the body of another called has that one's order there, negative: replay meets it only if the body runs again. */
export function isNested({ calledAfter }: { readonly calledAfter: number }): boolean {
  return calledAfter < 0;
}

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
  readonly #recorded: Step[] = [];
  #replayed = 0;
  /** Recorded steps in the order of their calls, and how many of them were called again. */
  readonly #calls: Step[] = [];
  #called = 0;
  /** Settled, and not yet delivered. */
  readonly #queue: Step[] = [];
  #nextOrd = 1;

  constructor(records: readonly LoadedStep[], names: RepeatedStepNames) {
    this.#names = names;
    for (const record of records) {
      const step = Step.recorded(record);
      this.#steps.set(this.#key(step.name, step.count, Math.max(0, -step.calledAfter)), step);
      this.#nextOrd = Math.max(this.#nextOrd, step.ord + 1);
      if (step.settled !== null) this.#recorded.push(step);
      if (!isNested(step)) this.#calls.push(step);
    }
    this.#recorded = sorted(this.#recorded, seqOf);
    this.#calls = sorted(this.#calls, ({ calledAfter }) => calledAfter);
    this.lastSeq = seqOf(this.#recorded.at(-1));
  }

  /** Recorded settlements are still to be delivered. */
  get replaying(): boolean {
    return this.#replayed < this.#recorded.length;
  }

  /** The step that a call means: a new one, a recorded one, or one whose result the code already has. */
  call(type: StepType, name: string, caller: Attempt | null): Step {
    const outer = caller?.step ?? null;
    const count = this.#countCall(name, caller);
    const key = this.#key(name, count, outer?.ord ?? 0);
    const known = this.#steps.get(key);
    if (known === undefined) {
      const calledAfter = outer === null ? this.delivered : -outer.ord;
      const step = new Step({ ord: this.#nextOrd++, name, count, type, calledAfter });
      // Its key has the outer one's order, which a later owner must find again.
      if (this.#names !== "cached") step.outer = outer;
      step.called(this.delivered, caller);
      this.#steps.set(key, step);
      return step;
    }
    if (known.type !== type) throw mismatch(known, type);
    if (!known.isCalled) {
      known.called(this.delivered, caller);
      if (known.settled !== null && known.settled.seq <= this.delivered) this.#enqueue(known);
      return known;
    }
    // The body of an outer step that is tried again finds what its last attempt had begun, or was given.
    const isTriedAgain =
      caller !== null && caller !== known.caller && caller.step === known.caller?.step;
    const mayRepeat = known.isDelivered && this.#names !== "error";
    if (!isTriedAgain && !mayRepeat) throw duplicate(known);
    if (isTriedAgain) known.calledAgain(caller);
    return known;
  }

  #countCall(name: string, caller: Attempt | null): number {
    if (this.#names !== "counted") return 1;
    const counts = caller?.counts ?? this.#counts;
    const count = (counts.get(name) ?? 0) + 1;
    counts.set(name, count);
    return count;
  }

  /** By name and count: in the whole run, or within the outer step. Names have no control characters. */
  #key(name: string, count: number, outerOrd: number): string {
    const within = this.#names === "cached" || outerOrd === 0 ? "" : `\n${outerOrd}`;
    return count === 1 && within === "" ? name : `${name}\n${count}${within}`;
  }

  /** A step has its result, or its final error. */
  settle(step: Step, { ok, text }: { readonly ok: boolean; readonly text: string }): void {
    this.lastSeq += 1;
    step.settled = { seq: this.lastSeq, ok, text };
    this.#queue.push(step);
  }

  /** It is delivered as soon as it is asked for; late racers come by number, too. */
  #enqueue(late: Step): void {
    const later = this.#queue.findIndex((step) => seqOf(step) > seqOf(late));
    this.#queue.splice(later === -1 ? this.#queue.length : later, 0, late);
  }

  /** The next step whose settlement the code is given; "missing" while replay waits for another to be called; or null. */
  next(): Step | "missing" | null {
    while (this.replaying && !this.#hasLate) {
      const step = this.#recorded[this.#replayed] as Step;
      if (this.#isMissingBefore(seqOf(step))) return "missing";
      this.#replayed += 1;
      this.delivered = seqOf(step);
      if (step.isCalled) return step;
    }
    const step = this.#queue.shift();
    if (step === undefined) return null;
    this.delivered = Math.max(this.delivered, seqOf(step));
    return step;
  }

  /** A number was passed while its step was not called, and now it is. */
  get #hasLate(): boolean {
    return this.#queue.length > 0 && seqOf(this.#queue[0]) <= this.delivered;
  }

  #isMissingBefore(seq: number): boolean {
    let step = this.#calls[this.#called];
    while (step?.isCalled === true || step?.isGone === true) {
      this.#called += 1;
      step = this.#calls[this.#called];
    }
    return step !== undefined && step.calledAfter < seq;
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

function seqOf(step: Step | undefined): number {
  return step?.settled?.seq ?? 0;
}

/** Mostly they are in order: finding that out takes a third of the time that a sort does. */
function sorted(steps: Step[], key: (step: Step) => number): Step[] {
  let last = -Infinity;
  for (const step of steps) {
    const next = key(step);
    if (next < last) return steps.toSorted((a, b) => key(a) - key(b));
    last = next;
  }
  return steps;
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

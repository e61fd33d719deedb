import type { RepeatedStepNames } from "../authoring/options.js";
import { DuplicateStepError, StepMismatchError } from "../model/errors.js";
import { quote } from "../model/quote.js";
import type { LoadedStep } from "../store/records.js";
import type { Attempt } from "./attempt.js";
import { stepKindOf } from "./kinds/index.js";
import type { StepKind } from "./kinds/kind.js";
import { Step, StepCall } from "./step.js";

/**
 * Returns whether the body of another step called this step. Such a step has the negative order of the outer step as
 * its `calledAfter`. A replay meets it only if the outer body runs again.
 */
export function isNested({ calledAfter }: { readonly calledAfter: number }): boolean {
  return calledAfter < 0;
}

/**
 * The steps of a run, and the order in which its code learns of their settlements.
 *
 * A settlement is a step's result or final error. It gets its number when it happens. Settlements reach the code
 * strictly by number, one per macrotask. Each step also has the number of the last settlement that had been delivered
 * when it was called. In a replay, settlement n is delivered only when every recorded step that was called before it
 * has been called again. So a race ends as it did before, whatever decided it.
 */
export class Journal {
  /** The number of the last settlement that the code has been given. */
  delivered = 0;
  /** The highest number given to a settlement. */
  lastSeq = 0;
  /** Whether recorded settlements are still to be delivered. */
  isReplaying: boolean;
  /** The type of a recorded step that this code does not know; null if it knows all of them. */
  readonly unknownType: string | null = null;
  readonly #steps = new Map<string, Step>();
  readonly #counts = new Map<string, number>();
  readonly #names: RepeatedStepNames;
  /** The recorded settlements by number, and how many of them are done with. */
  readonly #recorded: readonly Step[];
  #replayed = 0;
  /** The recorded steps in the order of their calls, and how many of them have been called again. */
  readonly #calls: readonly Step[];
  #called = 0;
  /** The steps that have settled here, or were called late, and whose settlements are not yet delivered. */
  readonly #queue: Step[] = [];
  #nextOrd = 1;

  constructor(records: readonly LoadedStep[], names: RepeatedStepNames) {
    this.#names = names;
    const settled: Step[] = [];
    const called: Step[] = [];
    for (const record of records) {
      const kind = stepKindOf(record.type);
      if (kind === undefined) {
        this.unknownType = record.type;
        continue;
      }
      const step = Step.recorded(record, kind);
      this.#steps.set(this.#key(step.name, step.count, Math.max(0, -step.calledAfter)), step);
      this.#nextOrd = Math.max(this.#nextOrd, step.ord + 1);
      if (step.settled !== null) settled.push(step);
      if (!isNested(step)) called.push(step);
    }
    this.isReplaying = settled.length > 0;
    this.#recorded = this.isReplaying ? sorted(settled, seqOf) : settled;
    this.#calls = called.length > 0 ? sorted(called, ({ calledAfter }) => calledAfter) : called;
    this.lastSeq = seqOf(this.#recorded.at(-1));
  }

  /** Returns the step that a call means: a new one, a recorded one, or one whose result the code already has. */
  call(kind: StepKind, name: string, caller: Attempt | null): Step {
    const outer = caller?.step ?? null;
    const count = this.#countCall(name, caller);
    const key = this.#key(name, count, outer?.ord ?? 0);
    const known = this.#steps.get(key);
    if (known === undefined) {
      const calledAfter = outer === null ? this.delivered : -outer.ord;
      const step = new Step(this.#nextOrd++, name, count, kind, calledAfter);
      // The key of a nested step contains the order of the outer step, so a later owner must find that step again.
      step.call = new StepCall(caller, this.#names === "cached" ? null : outer, this.delivered);
      this.#steps.set(key, step);
      return step;
    }
    if (known.kind !== kind) throw mismatch(known, kind);
    const { call } = known;
    if (call === null) {
      known.call = new StepCall(caller, null, this.delivered);
      if (known.settled !== null && known.settled.seq <= this.delivered) this.#enqueue(known);
      return known;
    }
    // When the body of an outer step is tried again, it finds the steps that its last attempt had begun or was given.
    const isTriedAgain =
      caller !== null && caller !== call.caller && caller.step === call.caller?.step;
    const mayRepeat = call.isDelivered && this.#names !== "error";
    if (!isTriedAgain && !mayRepeat) throw duplicate(known);
    if (isTriedAgain) {
      call.caller = caller;
      call.isShared = true;
    }
    return known;
  }

  #countCall(name: string, caller: Attempt | null): number {
    if (this.#names !== "counted") return 1;
    const counts = caller?.counts ?? this.#counts;
    const count = (counts.get(name) ?? 0) + 1;
    counts.set(name, count);
    return count;
  }

  /**
   * Returns a step's key: its name and count, within the whole run or within the outer step. Names have no control
   * characters, so the line breaks keep keys apart.
   */
  #key(name: string, count: number, outerOrd: number): string {
    const within = this.#names === "cached" || outerOrd === 0 ? "" : `\n${outerOrd}`;
    return count === 1 && within === "" ? name : `${name}\n${count}${within}`;
  }

  /** Gives the step's result or final error its number. */
  settle(step: Step, ok: boolean, text: string): void {
    this.lastSeq += 1;
    step.settled = { seq: this.lastSeq, ok, text };
    this.#queue.push(step);
  }

  /**
   * Queues a settlement whose turn has passed. It is delivered as soon as its step is called, and several of them by
   * number.
   */
  #enqueue(late: Step): void {
    const later = this.#queue.findIndex((step) => seqOf(step) > seqOf(late));
    this.#queue.splice(later === -1 ? this.#queue.length : later, 0, late);
  }

  /**
   * Returns the next step whose settlement the code is given. It is "missing" while the replay waits for another step
   * to be called, and null if there is nothing to deliver.
   */
  next(): Step | "missing" | null {
    while (this.isReplaying && !this.#hasLate) {
      const step = this.#recorded[this.#replayed] as Step;
      if (this.#isMissingBefore(seqOf(step))) return "missing";
      this.#replayed += 1;
      this.isReplaying = this.#replayed < this.#recorded.length;
      this.delivered = seqOf(step);
      if (step.call !== null) return step;
    }
    const step = this.#queue.shift();
    if (step === undefined) return null;
    this.delivered = Math.max(this.delivered, seqOf(step));
    return step;
  }

  /** Whether a step was called late: the number of its settlement was passed before the call. */
  get #hasLate(): boolean {
    return this.#queue.length > 0 && seqOf(this.#queue[0]) <= this.delivered;
  }

  #isMissingBefore(seq: number): boolean {
    let step = this.#calls[this.#called];
    while (step !== undefined && (step.call !== null || step.isGone)) {
      this.#called += 1;
      step = this.#calls[this.#called];
    }
    return step !== undefined && step.calledAfter < seq;
  }

  /** Lets the replay go on without the steps that it waits for, because the code does not call them any more. */
  giveUpMissing(): Step[] {
    const next = this.#recorded[this.#replayed];
    if (next === undefined) return [];
    const missing = this.#calls.filter(
      (step) => step.call === null && !step.isGone && step.calledAfter < seqOf(next),
    );
    for (const step of missing) step.isGone = true;
    return missing;
  }

  /** Returns the recorded steps that the code has not called. */
  uncalled(): Step[] {
    return this.#calls.filter((step) => step.call === null);
  }
}

function seqOf(step: Step | undefined): number {
  return step?.settled?.seq ?? 0;
}

/**
 * Sorts the steps by `key`. Mostly they are in order already, and finding that out takes a third of the time of a sort.
 */
function sorted(steps: Step[], key: (step: Step) => number): Step[] {
  let last = -Infinity;
  for (const step of steps) {
    const next = key(step);
    if (next < last) return steps.toSorted((a, b) => key(a) - key(b));
    last = next;
  }
  return steps;
}

function mismatch({ name, kind }: Step, called: StepKind): StepMismatchError {
  return new StepMismatchError(
    `step ${quote(name)} is recorded as ${kind.type} and was called as ${called.type}: ` +
      `the code has changed under this run, or uses one name for two kinds of steps`,
  );
}

function duplicate({ name, call }: Step): DuplicateStepError {
  return new DuplicateStepError(
    call?.isDelivered === true
      ? `step ${quote(name)} was already called in this run: step names must be unique`
      : `step ${quote(name)} was called again while it is still running: ` +
          `give steps that run side by side different names`,
  );
}

import type { RepeatedStepNames } from "../authoring/options.js";
import { isNested } from "../engine/journal.js";
import { quote } from "../model/quote.js";
import { isStepType } from "../model/step-types.js";
import type { StepRecord } from "../store/records.js";
import { DivergenceError, type ReplayedStep } from "./divergence-error.js";

/** How the code ended. */
export type CodeEnding = { readonly returned: true } | { readonly threw: unknown };

/** Compares the steps that the code calls in a replay with those that its history has recorded. */
export class StepComparison {
  readonly #names: RepeatedStepNames;
  readonly #recorded: readonly ReplayedStep[];
  readonly #called: ReplayedStep[] = [];
  readonly #recordedByKey: ReadonlyMap<string, ReplayedStep>;
  readonly #calledByKey = new Map<string, ReplayedStep>();
  readonly #counts = new Map<string, number>();

  constructor(steps: readonly StepRecord[], names: RepeatedStepNames) {
    this.#names = names;
    // Steps that a body called are left out: no body runs in a replay, so nothing calls them.
    this.#recorded = steps
      .filter((step) => !isNested(step))
      .map(({ name, count, type }, n) => ({ name, count, type, position: n + 1 }));
    this.#recordedByKey = new Map(this.#recorded.map((step) => [keyOf(step), step]));
  }

  /** Notes a call of the code. Returns false if the same step was called before. */
  noteCall(type: string, name: string): boolean {
    const count = this.#names === "counted" ? (this.#counts.get(name) ?? 0) + 1 : 1;
    this.#counts.set(name, count);
    const call = { name, count, type, position: this.#called.length + 1 };
    const before = this.#calledByKey.get(keyOf(call));
    if (before?.type === type) return false;
    if (before === undefined) this.#calledByKey.set(keyOf(call), call);
    this.#called.push(call);
    return true;
  }

  /** Returns the first recorded step that the code has not called. */
  missing(): ReplayedStep | undefined {
    return this.#recorded.find((step) => !this.#calledByKey.has(keyOf(step)));
  }

  /** Returns the steps that the code has called and the history does not have. */
  added(): ReplayedStep[] {
    return this.#called.filter((call) => this.#recordedAs(call) === undefined);
  }

  /** Returns an error that names the first step where the code and the history part. */
  divergence(ending: CodeEnding | null): DivergenceError {
    const unknown = this.#recorded.find(({ type }) => !isStepType(type));
    if (unknown !== undefined) {
      const message = `${this.#where(unknown)}, a type that this version of Pawl does not know`;
      return new DivergenceError(message, { recorded: unknown, requested: null });
    }
    const mismatch = this.#mismatch();
    if (mismatch !== null) return mismatch;
    const recorded = this.missing();
    const requested = recorded && this.#calledInsteadOf(recorded);
    const cause = ending !== null && "threw" in ending ? ending.threw : undefined;
    return new DivergenceError(
      `${recorded === undefined ? "the history has ended" : this.#where(recorded)}, ` +
        `and ${this.#instead(requested, ending)}`,
      { recorded: recorded ?? null, requested: requested ?? null },
      cause === undefined ? {} : { cause },
    );
  }

  /** Finds a step that is called as another type than it is recorded, or was called before. */
  #mismatch(): DivergenceError | null {
    for (const requested of this.#called) {
      const recorded = this.#recordedAs(requested);
      const known = recorded ?? this.#calledByKey.get(keyOf(requested));
      if (known === undefined || known.type === requested.type) continue;
      const where =
        recorded === undefined ? `${known.type} ${named(known)} was called` : this.#where(recorded);
      return new DivergenceError(`${where}, and the code calls it as ${requested.type}`, {
        recorded: recorded ?? null,
        requested,
      });
    }
    return null;
  }

  #where({ position, type, ...step }: ReplayedStep): string {
    return `step ${position} of ${this.#recorded.length} is recorded as ${type} ${named(step)}`;
  }

  #instead(requested: ReplayedStep | undefined, ending: CodeEnding | null): string {
    if (requested !== undefined) {
      const elsewhere = this.#recordedAs(requested);
      const note = elsewhere === undefined ? "is not recorded" : `is step ${elsewhere.position}`;
      return `the code calls ${requested.type} ${named(requested)} instead, which ${note}`;
    }
    if (ending === null) return "the code does not call it";
    if ("returned" in ending) return "the code returns without calling it";
    return `the code throws without calling it: ${String(ending.threw)}`;
  }

  /** Returns the first call of a step that is recorded later than this one, or not at all. */
  #calledInsteadOf({ position }: ReplayedStep): ReplayedStep | undefined {
    return this.#called.find((call) => (this.#recordedAs(call)?.position ?? Infinity) > position);
  }

  #recordedAs(call: ReplayedStep): ReplayedStep | undefined {
    return this.#recordedByKey.get(keyOf(call));
  }
}

function keyOf({ name, count }: Pick<ReplayedStep, "name" | "count">): string {
  return `${count} ${name}`;
}

function named({ name, count }: Pick<ReplayedStep, "name" | "count">): string {
  return count === 1 ? quote(name) : `${quote(name)} (call ${count})`;
}

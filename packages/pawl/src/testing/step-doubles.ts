import type { StepContext } from "../authoring/step.js";
import type { StepOverrides } from "../engine/overrides.js";
import { StepTimeoutError, ValidationError } from "../model/errors.js";
import { quote } from "../model/quote.js";

type Callback = (context: StepContext) => unknown;

/** Stands in for a step, `left` more times. */
type Double = { readonly callback: Callback; readonly isTimeout: boolean; left: number };

/** The doubles that stand in for steps in a harness, by name. */
export class StepDoubles implements StepOverrides {
  readonly #doubles = new Map<string, Double[]>();
  readonly #sleeps = new Names();
  readonly #retryDelays = new Names();

  mock(step: string, outcome: unknown, times = Infinity): void {
    this.#add(step, { callback: callbackOf(outcome), isTimeout: false, left: times });
  }

  forceTimeout(step: string, times = Infinity): void {
    const callback = (): never => {
      throw new StepTimeoutError(`a test forces step ${quote(step)} to time out`);
    };
    this.#add(step, { callback, isTimeout: true, left: times });
  }

  disableSleeps(steps?: readonly string[]): void {
    this.#sleeps.add(steps);
  }

  disableRetryDelays(steps?: readonly string[]): void {
    this.#retryDelays.add(steps);
  }

  body(step: string): Callback | null {
    return this.#take(this.#current(step))?.callback ?? null;
  }

  timesOut(step: string): boolean {
    const double = this.#current(step);
    return double?.isTimeout === true && this.#take(double) !== null;
  }

  skipsSleep(step: string): boolean {
    return this.#sleeps.has(step);
  }

  skipsRetryDelay(step: string): boolean {
    return this.#retryDelays.has(step);
  }

  /** Adds a double. Doubles with a number of times act one after the other; then the last one without a number acts. */
  #add(step: string, double: Double): void {
    if (!(double.left >= 1)) {
      throw new ValidationError(`times must be a number from 1, got ${quote(double.left)}`);
    }
    const counted = (this.#doubles.get(step) ?? []).filter(({ left }) => left !== Infinity);
    const lasting = (this.#doubles.get(step) ?? []).filter(({ left }) => left === Infinity);
    this.#doubles.set(
      step,
      double.left === Infinity ? [...counted, double] : [...counted, double, ...lasting],
    );
  }

  #current(step: string): Double | null {
    return this.#doubles.get(step)?.find(({ left }) => left > 0) ?? null;
  }

  #take(double: Double | null): Double | null {
    if (double !== null) double.left -= 1;
    return double;
  }
}

/** A set of names, which may also be all names. */
class Names {
  #all = false;
  readonly #some = new Set<string>();

  add(names: readonly string[] | undefined): void {
    if (names === undefined) this.#all = true;
    else for (const name of names) this.#some.add(name);
  }

  has(name: string): boolean {
    return this.#all || this.#some.has(name);
  }
}

function callbackOf(outcome: unknown): Callback {
  if (typeof outcome === "function") return outcome as Callback;
  return () => {
    if (outcome instanceof Error) throw outcome;
    return outcome;
  };
}

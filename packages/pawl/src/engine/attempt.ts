import type { StepContext } from "../authoring/step.js";
import { newAborter, type Aborter, type Signal } from "../model/abort.js";
import { StepTimeoutError } from "../model/errors.js";
import { quote } from "../model/quote.js";
import type { Cancel, Runtime } from "../model/seams.js";
import type { ChildCounts } from "./children.js";
import type { Body, Step } from "./step.js";

export type AttemptOutcome = { readonly value: unknown } | { readonly error: unknown };

/** One call of a step's body. It ends once: by the body, by its timeout, or because nobody wants it any more. */
export class Attempt {
  readonly step: Step;
  readonly body: Body;
  readonly number: number;
  readonly startedAtMs: number;
  #children: ChildCounts | null = null;
  #counts: Map<string, number> | null = null;
  readonly #runtime: Runtime;
  /** Made when the body asks for its signal: few do, and it takes longer than all the rest. */
  #aborter: Aborter | null = null;
  #abortReason: Error | null = null;
  #cancelTimeout: Cancel = () => {};
  #ended: ((outcome: AttemptOutcome) => void) | null;

  constructor(
    step: Step,
    body: Body,
    runtime: Runtime,
    ended: (attempt: Attempt, outcome: AttemptOutcome) => void,
  ) {
    this.step = step;
    this.body = body;
    this.number = step.attempts + 1;
    this.startedAtMs = runtime.clock.now();
    this.#runtime = runtime;
    this.#ended = (outcome) => ended(this, outcome);
  }

  /** How often it has called steps, by name. */
  get counts(): Map<string, number> {
    return (this.#counts ??= new Map());
  }

  /** The children that it has created so far. */
  get children(): ChildCounts {
    return (this.#children ??= new Map());
  }

  begin(instanceId: string): void {
    const { step, body, number } = this;
    const { scheduler, context } = this.#runtime;
    const { timeoutMs, config } = body.policy;
    this.#cancelTimeout = scheduler.after(timeoutMs, () => this.#timeOut(timeoutMs));
    const { name, count } = step;
    const signalOf = (): Signal => this.#signal();
    const given: StepContext = {
      step: { name, count },
      attempt: number,
      config,
      instanceId,
      get signal() {
        return signalOf();
      },
    };
    const call = async (): Promise<unknown> => body.callback(given);
    const result = context === null ? call() : context.run(this, call);
    result.then(
      (value) => this.#end({ value }),
      (error: unknown) => this.#end({ error }),
    );
  }

  /** Its result is not wanted any more: whatever it still does is its own affair. */
  abandon(reason: string): void {
    this.#ended = null;
    this.#cancelTimeout();
    this.#abort(new Error(reason));
  }

  #signal(): Signal {
    if (this.#aborter === null) {
      this.#aborter = newAborter();
      if (this.#abortReason !== null) this.#aborter.abort(this.#abortReason);
    }
    return this.#aborter.signal;
  }

  #abort(reason: Error): void {
    this.#abortReason = reason;
    this.#aborter?.abort(reason);
  }

  #timeOut(timeoutMs: number): void {
    const error = new StepTimeoutError(
      `attempt ${this.number} of step ${quote(this.step.name)} took longer than ${timeoutMs} ms`,
    );
    this.#end({ error });
    this.#abort(error);
  }

  #end(outcome: AttemptOutcome): void {
    const ended = this.#ended;
    this.#ended = null;
    this.#cancelTimeout();
    ended?.(outcome);
  }
}

import type { StepContext } from "../authoring/step.js";
import { newAborter } from "../model/abort.js";
import { StepTimeoutError } from "../model/errors.js";
import { quote } from "../model/quote.js";
import type { Cancel, Runtime } from "../model/seams.js";
import type { Body, Step } from "./step.js";

export type AttemptOutcome = { readonly value: unknown } | { readonly error: unknown };

/** One call of a step's body. It ends once: by the body, by its timeout, or because nobody wants it any more. */
export class Attempt {
  readonly step: Step;
  readonly body: Body;
  readonly number: number;
  readonly startedAtMs: number;
  /** How many children this attempt has created so far. */
  children = 0;
  readonly #abort = newAborter();
  #cancelTimeout: Cancel = () => {};
  #ended: ((outcome: AttemptOutcome) => void) | null;

  constructor(
    step: Step,
    body: Body,
    runtime: Runtime,
    instanceId: string,
    ended: (outcome: AttemptOutcome) => void,
  ) {
    this.step = step;
    this.body = body;
    this.number = step.attempts + 1;
    this.startedAtMs = runtime.clock.now();
    this.#ended = ended;
    const { timeoutMs } = body.policy;
    this.#cancelTimeout = runtime.scheduler.after(timeoutMs, () => this.#timeOut(timeoutMs));
    const context: StepContext = {
      step: { name: step.name, count: step.count },
      attempt: this.number,
      config: body.policy.config,
      instanceId,
      signal: this.#abort.signal,
    };
    const call = async (): Promise<unknown> => body.callback(context);
    const result = runtime.context === null ? call() : runtime.context.run(this, call);
    result.then(
      (value) => this.#end({ value }),
      (error: unknown) => this.#end({ error }),
    );
  }

  /** Its result is not wanted any more: whatever it still does is its own affair. */
  abandon(reason: string): void {
    this.#ended = null;
    this.#cancelTimeout();
    this.#abort.abort(new Error(reason));
  }

  #timeOut(timeoutMs: number): void {
    const error = new StepTimeoutError(
      `attempt ${this.number} of step ${quote(this.step.name)} took longer than ${timeoutMs} ms`,
    );
    this.#end({ error });
    this.#abort.abort(error);
  }

  #end(outcome: AttemptOutcome): void {
    const ended = this.#ended;
    this.#ended = null;
    this.#cancelTimeout();
    ended?.(outcome);
  }
}

import type { EffectiveStepConfig, StepContext } from "../authoring/step.js";
import { newAborter, type Aborter, type Signal } from "../model/abort.js";
import { StepTimeoutError } from "../model/errors.js";
import { quote } from "../model/quote.js";
import type { Cancel, Runtime } from "../model/seams.js";
import type { ChildCounts } from "./children.js";
import type { Body, Step } from "./step.js";

export type RunName = {
  readonly workflow: string;
  readonly id: string;
  readonly runNumber: number;
};

export type AttemptOutcome = { readonly value: unknown } | { readonly error: unknown };

/** One call of a step's body. It ends once: by the body, by its timeout, or because nobody wants it any more. */
export class Attempt {
  /** Whose it is, by identity. Not the run itself: what a body leaves behind holds its attempt for as long as it lives. */
  readonly of: RunName;
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
  #cancelTimeout: Cancel | null = null;
  #ended: ((attempt: Attempt, outcome: AttemptOutcome) => void) | null;

  constructor(
    of: RunName,
    step: Step,
    body: Body,
    runtime: Runtime,
    ended: (attempt: Attempt, outcome: AttemptOutcome) => void,
  ) {
    this.of = of;
    this.step = step;
    this.body = body;
    this.number = step.attempts + 1;
    this.startedAtMs = runtime.clock.now();
    this.#runtime = runtime;
    this.#ended = ended;
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
    const { scheduler, context } = this.#runtime;
    const given = new Given(this, instanceId);
    const call = (): unknown => this.body.callback(given);
    let result: unknown;
    let later: Promise<unknown> | null;
    try {
      result = context === null ? call() : context.run(this, call);
      // Without a context, who calls is known only while the body is the one that runs: what it leaves behind comes first.
      later = context === null || isThenable(result) ? Promise.resolve(result) : null;
    } catch (error) {
      return this.#end({ error });
    }
    if (later === null) return this.#end({ value: result });
    later.then(
      (value) => this.#end({ value }),
      (error: unknown) => this.#end({ error }),
    );
    scheduler.macrotask(() => this.#watchTime());
  }

  /** A body that was over at once needs no timer, which costs more than the rest of an attempt. */
  #watchTime(): void {
    if (this.#ended === null) return;
    const { scheduler, clock } = this.#runtime;
    const { timeoutMs } = this.body.policy;
    const tookMs = Math.max(0, clock.now() - this.startedAtMs);
    this.#cancelTimeout = scheduler.after(Math.max(0, timeoutMs - tookMs), () =>
      this.#timeOut(timeoutMs),
    );
  }

  /** Its result is not wanted any more: whatever it still does is its own affair. */
  abandon(reason: string): void {
    this.#ended = null;
    this.#cancelTimeout?.();
    this.#abort(new Error(reason));
  }

  get signal(): Signal {
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
    this.#cancelTimeout?.();
    ended?.(this, outcome);
  }
}

function isThenable(value: unknown): boolean {
  const isObject = typeof value === "object" && value !== null;
  return (isObject || typeof value === "function") && "then" in value;
}

/** What a body is given. A class, because an object with a getter of its own takes longer to make than a step's row. */
class Given implements StepContext {
  readonly step: { readonly name: string; readonly count: number };
  readonly attempt: number;
  readonly config: EffectiveStepConfig;
  readonly instanceId: string;
  readonly #attempt: Attempt;

  constructor(attempt: Attempt, instanceId: string) {
    const { name, count } = attempt.step;
    this.step = { name, count };
    this.attempt = attempt.number;
    this.config = attempt.body.policy.config;
    this.instanceId = instanceId;
    this.#attempt = attempt;
  }

  get signal(): Signal {
    return this.#attempt.signal;
  }
}

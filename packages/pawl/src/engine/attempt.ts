import type { EffectiveStepConfig, StepContext } from "../authoring/step.js";
import { newAborter, type Aborter, type Signal } from "../model/abort.js";
import { StepTimeoutError } from "../model/errors.js";
import { quote } from "../model/quote.js";
import type { Cancel, Runtime } from "../model/seams.js";
import type { ChildCounts } from "./children.js";
import type { Body } from "./kinds/kind.js";
import type { OpenStep, Step } from "./step.js";

export type RunName = {
  readonly workflow: string;
  readonly id: string;
  readonly runNumber: number;
};

export type AttemptOutcome = { readonly value: unknown } | { readonly error: unknown };

export interface AttemptHost {
  attemptEnded(attempt: Attempt, outcome: AttemptOutcome): void;
}

/**
 * One call of a step's body. It ends once: by the body, by its timeout, or because its result is not wanted any more.
 */
export class Attempt {
  /**
   * The run that the attempt belongs to, compared by identity. It is not the `Run` itself, because anything that a body
   * leaves behind keeps its attempt in memory for as long as it lives.
   */
  readonly of: RunName;
  readonly step: Step;
  readonly open: OpenStep;
  readonly body: Body;
  readonly number: number;
  readonly startedAtMs: number;
  readonly #runtime: Runtime;
  #children: ChildCounts | null = null;
  #counts: Map<string, number> | null = null;
  /**
   * Created when the body asks for its signal. Few bodies do, and creating it takes longer than all the rest of an
   * attempt.
   */
  #aborter: Aborter | null = null;
  #abortReason: Error | null = null;
  #cancelTimeout: Cancel | null = null;
  /** Null once the attempt has ended. */
  #host: AttemptHost | null;

  constructor(of: RunName, step: Step, body: Body, runtime: Runtime, host: AttemptHost) {
    this.of = of;
    this.step = step;
    this.open = step.open as OpenStep;
    this.body = body;
    this.number = this.open.attempts + 1;
    this.startedAtMs = runtime.clock.now();
    this.#runtime = runtime;
    this.#host = host;
  }

  /** How often its body has called steps, by name. */
  get counts(): Map<string, number> {
    return (this.#counts ??= new Map());
  }

  /** The children that its body has created so far. */
  get children(): ChildCounts {
    return (this.#children ??= new Map());
  }

  begin(): void {
    const { scheduler, context } = this.#runtime;
    const given = new BodyContext(this);
    let result: unknown;
    let later: Promise<unknown> | null;
    try {
      result =
        context === null
          ? this.body.callback(given)
          : context.run(this, () => this.body.callback(given));
      // Without an async context, the caller of a step is known only while its body is the one that runs. So even a
      // body that returns no promise ends a microtask later. By then, the steps that it has left behind are called.
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

  /**
   * Starts the timer of the timeout, unless the body is over by now. A timer costs more than the rest of an attempt.
   */
  #watchTime(): void {
    if (this.#host === null) return;
    const { scheduler, clock } = this.#runtime;
    const { timeoutMs } = this.body.policy;
    const tookMs = Math.max(0, clock.now() - this.startedAtMs);
    this.#cancelTimeout = scheduler.after(Math.max(0, timeoutMs - tookMs), () =>
      this.#timeOut(timeoutMs),
    );
  }

  /**
   * Abandons the attempt, because nobody wants its result any more. The body may go on, but nothing that it does
   * counts.
   */
  abandon(reason: string): void {
    this.#host = null;
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
    const host = this.#host;
    this.#host = null;
    this.#cancelTimeout?.();
    host?.attemptEnded(this, outcome);
  }
}

function isThenable(value: unknown): boolean {
  const isObject = typeof value === "object" && value !== null;
  return (isObject || typeof value === "function") && "then" in value;
}

/**
 * The argument of a body. It is a class, because an object with a getter of its own takes longer to create than a
 * step's row.
 */
class BodyContext implements StepContext {
  readonly step: { readonly name: string; readonly count: number };
  readonly attempt: number;
  readonly config: EffectiveStepConfig;
  readonly instanceId: string;
  readonly #attempt: Attempt;

  constructor(attempt: Attempt) {
    const { name, count } = attempt.step;
    this.step = { name, count };
    this.attempt = attempt.number;
    this.config = attempt.body.policy.config;
    this.instanceId = attempt.of.id;
    this.#attempt = attempt;
  }

  get signal(): Signal {
    return this.#attempt.signal;
  }
}

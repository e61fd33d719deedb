import { stackOf } from "../model/codec/error-shape.js";
import type { EncodeContext } from "../model/codec/writer.js";
import { describeError, encodeError } from "../model/error-codec.js";
import { quote } from "../model/quote.js";
import { Attempt, type AttemptOutcome, type RunName } from "./attempt.js";
import type { EngineContext } from "./context.js";
import { retryDelayMs } from "./retry.js";
import type { Unnumbered } from "./settlements.js";
import type { Body, Step } from "./step.js";
import type { PartDraft } from "./part-draft.js";

export interface BodyEvents {
  settled(step: Step, settlement: Unnumbered): void;
  /** The attempt failed, and the step waits for its next one. */
  retries(step: Step): void;
}

/** The bodies of a run that execute, and what follows from how each attempt ends. */
export class Bodies {
  /** An object of its own: attempts know each other's runs by it. */
  readonly #run: RunName;
  readonly #context: EngineContext;
  readonly #writes: PartDraft;
  readonly #events: BodyEvents;
  /** In the order of their starts. */
  readonly #attempts = new Map<Step, Attempt>();
  #hasBegun = false;

  constructor(
    { workflow, id, runNumber }: RunName,
    context: EngineContext,
    writes: PartDraft,
    events: BodyEvents,
  ) {
    this.#run = { workflow, id, runNumber };
    this.#context = context;
    this.#writes = writes;
    this.#events = events;
  }

  get count(): number {
    return this.#attempts.size;
  }

  get attempts(): Iterable<Attempt> {
    return this.#attempts.values();
  }

  /** Whose body is calling; null outside of steps. */
  current(): Attempt | null {
    if (this.#attempts.size === 0) return null;
    const { context } = this.#context.runtime;
    if (context === null) {
      // Without a context, only a lone body is certainly the caller.
      const [only] = this.#attempts.values();
      return this.#attempts.size === 1 && only !== undefined ? only : null;
    }
    const current = context.get();
    return current instanceof Attempt && this.#attempts.get(current.step) === current
      ? current
      : null;
  }

  /** Whose body calls, or has left behind what does: replay does not call it again where it stands. */
  caller(): Attempt | null {
    // In replay, mostly: to ask takes longer than all the rest of a call.
    if (!this.#hasBegun) return null;
    const { context } = this.#context.runtime;
    if (context === null) return this.current();
    const caller = context.get();
    return caller instanceof Attempt && caller.of === this.#run ? caller : null;
  }

  start(step: Step, body: Body): void {
    const { overrides, runtime } = this.#context;
    const callback = overrides?.body(step.name) ?? null;
    const called = callback === null ? body : { ...body, callback };
    const attempt = new Attempt(this.#run, step, called, runtime, this.#ended);
    // Before it begins: what the body does at once must find it running.
    this.#attempts.set(step, attempt);
    this.#hasBegun = true;
    if (step.recordedAs === null) step.beganAtMs ??= attempt.startedAtMs;
    attempt.begin(this.#run.id);
  }

  /** Rows for those that run for a while, for people who watch. True if all have one. */
  note(olderThanMs: number): boolean {
    const before = this.#context.runtime.clock.now() - olderThanMs;
    let isDone = true;
    for (const { step, startedAtMs } of this.#attempts.values()) {
      if (this.#writes.tellsOf(step)) continue;
      if (startedAtMs > before) isDone = false;
      else this.#writes.add(step);
    }
    return isDone;
  }

  abandon(reason: string): void {
    for (const attempt of this.#attempts.values()) attempt.abandon(reason);
    this.#attempts.clear();
  }

  readonly #ended = (attempt: Attempt, outcome: AttemptOutcome): void => {
    const { step } = attempt;
    this.#attempts.delete(step);
    step.attempts = attempt.number;
    const result = this.#resultOf(step, outcome);
    if ("error" in result) return this.#failed(attempt, result.error);
    this.#record(attempt, null);
    this.#events.settled(step, result.settlement);
  };

  /** What cannot be stored is an error of the author's. */
  #resultOf(
    step: Step,
    outcome: AttemptOutcome,
  ): { readonly settlement: Unnumbered } | { readonly error: unknown } {
    if ("error" in outcome) return outcome;
    const { codec, limits } = this.#context;
    try {
      const text = codec.encode(outcome.value, new ResultOf(step, limits.stepResultMaxBytes));
      return { settlement: { ok: true, text } };
    } catch (error) {
      return { error };
    }
  }

  #failed(attempt: Attempt, error: unknown): void {
    const { step, number, body } = attempt;
    const { runtime, overrides } = this.#context;
    const world = { random: runtime.random, now: this.#context.databaseNow() };
    let delayMs = retryDelayMs(error, number, body.policy, world);
    if (delayMs !== null && overrides?.skipsRetryDelay(step.name) === true) delayMs = 0;
    const text = encodeError(error);
    step.lastError = text;
    this.#log(attempt, { error, text }, delayMs);
    this.#record(attempt, text, delayMs !== null);
    if (delayMs === null) return this.#events.settled(step, { ok: false, text });
    step.wakeAt = null;
    step.wake = { inMs: delayMs };
    step.hasStartRow = false;
    this.#events.retries(step);
  }

  /** A step that succeeds at once needs no record of its attempts. */
  #record(attempt: Attempt, error: string | null, willRetry = false): void {
    if (attempt.number === 1 && !willRetry) return;
    const tookMs = Math.max(0, this.#context.runtime.clock.now() - attempt.startedAtMs);
    this.#writes.attempt({ ord: attempt.step.ord, n: attempt.number, tookMs, error });
  }

  /** The only place that tells where an error was thrown: stacks are not stored. */
  #log(
    { step, number, body }: Attempt,
    { error, text }: { readonly error: unknown; readonly text: string },
    retryInMs: number | null,
  ): void {
    const { maxAttempts } = body.policy;
    const { name, message } = describeError(text);
    this.#context.logger.warn("step.failed", {
      ...this.#run,
      step: step.name,
      attempt: number,
      maxAttempts,
      retryInMs,
      error: `${name}: ${message}`,
      stack: stackOf(error),
    });
  }
}

/** Only errors need the words, and they take longer than small results. */
class ResultOf implements EncodeContext {
  readonly maxBytes: number;
  readonly #step: Step;

  constructor(step: Step, maxBytes: number) {
    this.#step = step;
    this.maxBytes = maxBytes;
  }

  get what(): string {
    return `result of step ${quote(this.#step.name)}`;
  }
}

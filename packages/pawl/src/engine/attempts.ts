import { Attempt, type AttemptHost, type RunName } from "./attempt.js";
import type { EngineContext } from "./context.js";
import type { Body } from "./kinds/kind.js";
import type { PartDraft } from "./part-draft.js";
import type { Step } from "./step.js";

/** The attempts of a run whose bodies are running. */
export class Attempts {
  /** An object made only for this run. Attempts tell their run from others by its identity. */
  readonly #run: RunName;
  readonly #context: EngineContext;
  readonly #host: AttemptHost;
  /** The running attempts by step, in the order of their starts. */
  readonly running = new Map<Step, Attempt>();
  #hasBegun = false;

  constructor({ workflow, id, runNumber }: RunName, context: EngineContext, host: AttemptHost) {
    this.#run = { workflow, id, runNumber };
    this.#context = context;
    this.#host = host;
  }

  start(step: Step, body: Body): void {
    const { overrides, runtime } = this.#context;
    const double = overrides?.body(step.name) ?? null;
    const called = double === null ? body : { ...body, callback: double };
    const attempt = new Attempt(this.#run, step, called, runtime, this.#host);
    // The attempt is noted before it begins, because a call that its body makes at once must find it running.
    this.running.set(step, attempt);
    this.#hasBegun = true;
    if (step.recordedAs === null) attempt.open.beganAtMs ??= attempt.startedAtMs;
    attempt.begin();
  }

  /** Returns the attempt whose body is calling; null outside of bodies. */
  current(): Attempt | null {
    if (this.running.size === 0) return null;
    const { context } = this.#context.runtime;
    if (context === null) {
      // Without an async context, only a lone body is certainly the caller.
      const [only] = this.running.values();
      return this.running.size === 1 && only !== undefined ? only : null;
    }
    const current = context.get();
    const isRunning = current instanceof Attempt && this.running.get(current.step) === current;
    return isRunning ? current : null;
  }

  /**
   * Returns the attempt whose body is calling, or whose body has left the calling code behind. In a replay, code that
   * was left behind does not call at the same place again.
   */
  caller(): Attempt | null {
    // Asking for the context takes longer than all the rest of a call. In a replay, mostly no body has begun.
    if (!this.#hasBegun) return null;
    const { context } = this.#context.runtime;
    if (context === null) return this.current();
    const caller = context.get();
    return caller instanceof Attempt && caller.of === this.#run ? caller : null;
  }

  /**
   * Adds rows for the bodies that have run longer than this, so that people who watch can see them. Returns true if all
   * bodies have a row.
   */
  note(olderThanMs: number, draft: PartDraft): boolean {
    const before = this.#context.runtime.clock.now() - olderThanMs;
    let haveAll = true;
    for (const { step, startedAtMs } of this.running.values()) {
      if (draft.tellsOf(step)) continue;
      if (startedAtMs > before) haveAll = false;
      else draft.add(step);
    }
    return haveAll;
  }

  abandon(reason: string): void {
    for (const attempt of this.running.values()) attempt.abandon(reason);
    this.running.clear();
  }
}

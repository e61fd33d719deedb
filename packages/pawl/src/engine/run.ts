import type { WorkflowEntry } from "../authoring/entry.js";
import type { WorkflowEvent } from "../authoring/entrypoint.js";
import type { OnDivergence, RepeatedStepNames } from "../authoring/options.js";
import { validate } from "../authoring/schema.js";
import type { Codec } from "../model/codec.js";
import { decodeError, encodeError } from "../model/error-codec.js";
import {
  MaxStepsExceededError,
  RunCrashedError,
  StepMaxAttemptsExceeded,
  StepMismatchError,
  ValidationError,
  WaitTimeoutError,
} from "../model/errors.js";
import type { Limits } from "../model/limits.js";
import type { Logger } from "../model/logger.js";
import { quote } from "../model/quote.js";
import type { Cancel, Runtime } from "../model/seams.js";
import type { DbTime, EventRecord } from "../store/records.js";
import type {
  AttemptWrite,
  Claimed,
  LoadedRun,
  Next,
  Part,
  PartAnswer,
  PollAnswer,
} from "../store/store.js";
import { waitMaskOf } from "../store/wait-mask.js";
import { Attempt, type AttemptOutcome } from "./attempt.js";
import { Children } from "./children.js";
import { Journal } from "./journal.js";
import type { StepOverrides } from "./overrides.js";
import { bytesOf, stepWrite, type Doing } from "./part.js";
import { retryDelayMs } from "./retry.js";
import { Step, type Body, type Settlement, type StepType } from "./step.js";
import type { PolicyOf } from "./step-config.js";
import { stepsOf } from "./steps.js";
import { earliestWake, endedWaits } from "./waits.js";

/** What all runs of an engine share. */
export type EngineContext = {
  readonly runtime: Runtime;
  readonly codec: Codec;
  readonly limits: Limits;
  readonly policyOf: PolicyOf;
  readonly repeatedStepNames: RepeatedStepNames;
  readonly onDivergence: OnDivergence;
  readonly logger: Logger;
  readonly env: unknown;
  /** The bindings for a run's code. */
  bindingsFor(children: Children): unknown;
  readonly timing: EngineTiming;
  /** Null outside of tests. */
  readonly overrides: StepOverrides | null;
};

export type EngineTiming = {
  /** How long replay waits for code that does not call what it called before. */
  readonly stallMs: number;
  /** A run that awaits something other than a step keeps its place; after this long it is reported. */
  readonly reportStuckMs: number;
  /** How long a held run rests before a runner tries it again. */
  readonly holdMs: number;
};

export const defaultTiming: EngineTiming = {
  stallMs: 1_000,
  reportStuckMs: 60_000,
  holdMs: 60_000,
};

/** The runner, as a run sees it. */
export interface RunHost {
  /** The run has something to commit: ask it for its part. */
  submit(run: Run): void;
  /** Whether the lease is certain enough for a body to start. */
  mayStartBody(): boolean;
  /** Look at the run's ticket when the database's time is `at`. */
  lookAt(run: Run, at: DbTime): void;
  /** The code of a parked run called a step: take its ticket again. */
  reopen(run: Run): void;
  /** The turn is over. */
  ended(run: Run, how: TurnEnd): void;
}

/** "gone": the claim is another's now, or the code was given up; nothing of the run may be kept. */
export type TurnEnd = "parked" | "paused" | "finished" | "gone";

/** Bodies that may still start; shared by the turns of one tick. */
export type StepBudget = { left: number };

/** A part on its way, and what it stands for. */
type Frozen = {
  readonly part: Part;
  readonly steps: readonly Step[];
  readonly starting: readonly Step[];
  readonly seq: number;
  readonly calls: number;
};

type Outcome = { readonly output: string } | { readonly error: string };

/**
 * One run in the memory of one process: its code, what that waits for, and what is not yet written.
 *
 * Everything happens in passes, each in a macrotask of its own, so that the code has done all it can before we
 * look: deliver one settlement; or, when all are delivered and the code is quiet, end due waits, start bodies, and
 * ask for a commit. A commit takes all that is new; parking and finishing go with it.
 */
export class Run {
  readonly iid: string;
  readonly workflow: string;
  readonly id: string;
  readonly runNumber: number;
  claimNumber: number;
  budget: StepBudget | null = null;

  readonly #context: EngineContext;
  readonly #host: RunHost;
  readonly #entry: WorkflowEntry;
  readonly #journal: Journal;
  readonly #children: Children;
  #place: "leased" | "parked" | "gone" = "leased";

  /** The latest time that the database told, and that of the last look at the ticket. */
  #now: DbTime;
  #lookedAt: DbTime;
  #seenEvents: number;
  /** Unconsumed, in order. */
  #events: EventRecord[];

  /** Called, and ready to start; running; waiting for time or an event. In the order of their calls. */
  readonly #ready = new Set<Step>();
  readonly #running = new Map<Step, Attempt>();
  readonly #waits = new Set<Step>();
  #doSteps = 0;

  /** What the next part will bring. */
  readonly #dirty = new Set<Step>();
  /** Of these, the ones whose start is written before their bodies. */
  readonly #starting = new Set<Step>();
  #attemptWrites: AttemptWrite[] = [];
  #consumed: { number: number; ord: number }[] = [];
  #partNumber = 0;
  #frozen: Frozen | null = null;
  /** Calls that set up a step, ever; and whether one came when the run was parked, or just parking. */
  #calls = 0;
  #wantsReopen = false;
  /** The highest settlement that is certainly in the database. */
  #durable: number;
  readonly #barriers: { readonly seq: number; readonly resolve: () => void }[] = [];
  #historyBytes = 0;

  /** Taken from a dead owner: how far that had come, and when. */
  readonly #takenOver: { readonly seq: number; readonly at: DbTime } | null;
  #mustForgive: boolean;
  #pauseRequested = false;
  #isDraining = false;
  /** Bodies were cut off: the code in memory must not go on. */
  #isGivenBack = false;
  #heldUntilMs: number | null = null;

  /** The code does what its start, or a delivery, made it do: in every replay it will call the same steps here. */
  #isInStride = true;
  #hasReturned = false;
  #outcome: Outcome | null = null;
  #passIsDue = false;
  #stall: Cancel | null = null;
  #stuck: Cancel | null = null;

  constructor(
    context: EngineContext,
    host: RunHost,
    entry: WorkflowEntry,
    claimed: Claimed,
    loaded: LoadedRun | null,
  ) {
    this.#context = context;
    this.#host = host;
    this.#entry = entry;
    this.iid = claimed.iid;
    this.workflow = claimed.workflow;
    this.id = claimed.id;
    this.runNumber = claimed.runNumber;
    this.claimNumber = claimed.claimNumber;
    this.#now = claimed.now;
    this.#lookedAt = claimed.now;
    this.#events = [...(loaded?.events ?? [])];
    // Of a new run nothing was loaded: events that were there before it began come with its first commit.
    this.#seenEvents =
      loaded === null ? 0 : Math.max(claimed.eventCount, this.#events.at(-1)?.number ?? 0);
    this.#journal = new Journal(loaded?.steps ?? [], context.repeatedStepNames);
    this.#durable = this.#journal.lastSeq;
    this.#historyBytes = (loaded?.steps ?? []).reduce((sum, step) => sum + bytesOf(step), 0);
    this.#takenOver =
      claimed.takeovers > 0 ? { seq: this.#journal.lastSeq, at: claimed.now } : null;
    this.#mustForgive = claimed.takeovers > 0;
    this.#children = new Children(this.iid, this.runNumber, {
      currentAttempt: () => this.#currentAttempt(),
      durable: () => this.#whenDurable(),
    });
    this.#begin(loaded === null ? claimed.params : loaded.params, claimed.createdAt);
  }

  get isLeased(): boolean {
    return this.#place === "leased";
  }

  get seenEvents(): number {
    return this.#seenEvents;
  }

  get historyBytes(): number {
    return this.#historyBytes;
  }

  /** A part was sent, and not yet answered. */
  get hasPartOnItsWay(): boolean {
    return this.#frozen !== null;
  }

  // What the runner tells

  /** Ends the run without its code: it killed its process too often. */
  static crashed(
    context: EngineContext,
    host: RunHost,
    entry: WorkflowEntry,
    claimed: Claimed,
  ): Run {
    const inert: WorkflowEntry = { ...entry, start: () => new Promise(() => {}) };
    const run = new Run(context, host, inert, { ...claimed, takeovers: 0 }, null);
    const error = new RunCrashedError(
      `the run ended its process ${claimed.takeovers} times without progress`,
    );
    run.#outcome = { error: encodeError(error) };
    return run;
  }

  /** The parked run was claimed again by this process: it goes on where it stands. */
  reclaimed(claimed: Claimed, hasUnseenEvents: boolean): void {
    this.#place = "leased";
    this.#wantsReopen = false;
    this.claimNumber = claimed.claimNumber;
    this.#partNumber = 0;
    this.#pauseRequested = false;
    this.#now = Math.max(this.#now, claimed.now);
    if (hasUnseenEvents) return; // a look brings them, and it goes on from there
    this.#lookedAt = this.#now;
    this.#schedulePass();
  }

  /** A look at the ticket: the time, new events, the pause flag. */
  look(answer: Extract<PollAnswer, { kind: "ok" }>): void {
    if (this.#place !== "leased") return;
    this.#now = Math.max(this.#now, answer.now);
    this.#lookedAt = Math.max(this.#lookedAt, answer.now);
    this.#take(answer.events);
    this.#pauseRequested = answer.pauseRequested;
    this.#schedulePass();
  }

  /** No body starts any more; the run gives its ticket back when those that run are done. */
  drain(): void {
    this.#isDraining = true;
    this.#schedulePass();
  }

  /** The drain took too long: cut the running bodies off. It costs them no attempt. */
  giveBack(): void {
    if (this.#place !== "leased" || this.#outcome !== null) return;
    this.#isDraining = true;
    this.#isGivenBack = true;
    for (const [step, { body }] of this.#running) {
      if (body.policy.maxAttempts === 1) continue; // begun is begun
      this.#ready.add(step);
      if (step.recordedAs === "running" || this.#frozen?.steps.includes(step) === true) {
        this.#dirty.add(step);
      }
    }
    this.#abandonBodies("the runner is stopping");
    this.#host.submit(this);
  }

  /** The claim is lost, or the memory is needed: everything since the last commit was speculation. */
  discard(reason: string): void {
    this.#place = "gone";
    this.#abandonBodies(reason);
    this.#stall?.();
    this.#stuck?.();
  }

  /** Something that kept bodies from starting may be over. */
  nudge(): void {
    this.#schedulePass();
  }

  /** The names of the steps whose bodies run. */
  get runningSteps(): string[] {
    return Array.from(this.#running.keys(), ({ name }) => name);
  }

  /** Rows for steps that run for a while, for people who watch. */
  noteRunning(olderThanMs: number): void {
    const before = this.#context.runtime.clock.now() - olderThanMs;
    for (const [step, attempt] of this.#running) {
      if (step.recordedAs === "running" || attempt.startedAtMs > before) continue;
      this.#dirty.add(step);
    }
    if (this.#dirty.size > 0) this.#schedulePass();
  }

  // The code

  #begin(params: string | null, createdAt: DbTime): void {
    const { codec, env } = this.#context;
    const start = async (): Promise<unknown> =>
      this.#entry.start({
        event: {
          payload: (params === null ? undefined : codec.decode(params)) as WorkflowEvent["payload"],
          timestamp: new Date(createdAt),
          instanceId: this.id,
          workflowName: this.workflow,
          runNumber: this.runNumber,
        },
        step: stepsOf(this, this.#context),
        env,
        workflows: this.#context.bindingsFor(this.#children),
      });
    start().then(
      (value) => this.#returned(value),
      (error: unknown) => this.#end({ error: encodeError(error) }),
    );
    this.#schedulePass();
  }

  #returned(value: unknown): void {
    this.#hasReturned = true;
    const { output } = this.#entry;
    if (output === undefined) return this.#end(this.#encodedOutput(value));
    validate(output, value).then(
      (result) => {
        if (result.ok) return this.#end(this.#encodedOutput(result.value));
        const error = new ValidationError(`the output does not fit its schema: ${result.message}`);
        this.#end({ error: encodeError(error) });
      },
      (error: unknown) => this.#end({ error: encodeError(error) }),
    );
  }

  #encodedOutput(value: unknown): Outcome {
    const { codec, limits } = this.#context;
    try {
      return {
        output: codec.encode(value, {
          what: `output of ${this.workflow}`,
          maxBytes: limits.outputMaxBytes,
        }),
      };
    } catch (error) {
      return { error: encodeError(error) };
    }
  }

  #end(outcome: Outcome): void {
    if (this.#outcome !== null || this.#heldUntilMs !== null || this.#place === "gone") return;
    const steps = this.#journal.uncalled().map(({ name, type }) => ({ name, type }));
    if (steps.length > 0 && this.#diverged("step.missing", { steps })) return;
    this.#outcome = outcome;
    this.#schedulePass();
  }

  #currentAttempt(): Attempt | null {
    const { context } = this.#context.runtime;
    if (context === null) {
      // Without a context, only a lone body is certainly the caller.
      const [only] = this.#running.values();
      return this.#running.size === 1 && only !== undefined ? only : null;
    }
    const current = context.get();
    return current instanceof Attempt && this.#running.get(current.step) === current
      ? current
      : null;
  }

  #whenDurable(): Promise<void> {
    const seq = this.#journal.delivered;
    if (seq <= this.#durable && this.#place !== "gone") return Promise.resolve();
    return new Promise((resolve) => void this.#barriers.push({ seq, resolve }));
  }

  /** A step call of the code; `begin` sets up a step that has no result yet. */
  call(type: StepType, name: string, begin: (step: Step) => void): Promise<unknown> {
    const forgotten = new Promise<never>(() => {});
    if (this.#place === "gone" || this.#outcome !== null || this.#heldUntilMs !== null) {
      return forgotten;
    }
    const { clock } = this.#context.runtime;
    let step: Step;
    try {
      step = this.#journal.call(type, name, this.#currentAttempt() !== null, clock.now());
    } catch (error) {
      if (error instanceof StepMismatchError && this.#diverged("step.mismatch", { name })) {
        return forgotten;
      }
      return Promise.reject(error);
    }
    if (step.isDelivered) return this.#again(step);
    if (type === "do" && !this.#countStep()) return forgotten;
    const promise = step.promise();
    if (step.settled === null) this.#await(step, begin);
    this.#schedulePass();
    return promise;
  }

  do(name: string, body: Omit<Body, "isNested">): Promise<unknown> {
    const isNested = this.#currentAttempt() !== null;
    return this.call("do", name, (step) => {
      step.body = { ...body, isNested };
      step.needsStartRow ||= body.policy.maxAttempts === 1;
    });
  }

  get now(): DbTime {
    return this.#now;
  }

  /** The code asks again for what it was given before. */
  #again(step: Step): Promise<unknown> {
    const outcome = this.#decode(step, step.settled as Settlement);
    return "value" in outcome
      ? Promise.resolve(outcome.value)
      : Promise.reject(outcome.error);
  }

  /** An endless loop of steps must not go on because its author catches errors: the run ends here. */
  #countStep(): boolean {
    this.#doSteps += 1;
    const { maxStepsPerRun } = this.#context.limits;
    if (this.#doSteps <= maxStepsPerRun) return true;
    const error = new MaxStepsExceededError(`the run called more than ${maxStepsPerRun} steps`);
    this.#end({ error: encodeError(error) });
    return false;
  }

  #await(step: Step, begin: (step: Step) => void): void {
    this.#calls += 1;
    this.#wantsReopen = this.#place === "parked";
    begin(step);
    // Called at its own time, after something that is no step: only its row can tell a later owner that it began.
    step.needsStartRow ||= !this.#isInStride && step.body?.policy.maxAttempts !== Infinity;
    if (this.#mayHaveBegun(step)) {
      step.attempts += 1;
      step.needsStartRow = true;
    }
    if (step.type !== "do") {
      this.#waits.add(step);
      if (step.wakeAt === null) this.#dirty.add(step);
    } else if (step.recordedAs === "waiting" && step.wakeAt !== null) {
      this.#waits.add(step);
    } else {
      this.#ready.add(step);
    }
  }

  /**
   * Whether a dead owner may have used up an attempt: if the row says so; or if it could start without a row, with
   * what was durable. A single attempt is spent by its row alone.
   */
  #mayHaveBegun(step: Step): boolean {
    if (step.type !== "do" || step.body?.policy.maxAttempts === 1) return false;
    // Who gives a run back says that its steps do not run any more.
    if (step.recordedAs === "running") return true;
    if (this.#takenOver === null) return false;
    const { seq, at } = this.#takenOver;
    if (step.recordedAs === "waiting") return (step.wakeAt ?? 0) <= at;
    return this.#isInStride && step.barrier <= seq;
  }

  // Passes

  #schedulePass(): void {
    if (this.#passIsDue || this.#place === "gone") return;
    this.#passIsDue = true;
    this.#context.runtime.scheduler.macrotask(() => {
      this.#passIsDue = false;
      this.#pass();
    });
  }

  #pass(): void {
    this.#isInStride = false;
    if (this.#place === "gone") return;
    if (this.#place === "parked") {
      if (this.#wantsReopen) this.#host.reopen(this);
      return;
    }
    // The ticket may be given up already: what comes next is done under the answer, or under the next claim.
    if (this.#frozen !== null && this.#frozen.part.next.kind !== "continue") return;
    if (this.#outcome === null && this.#heldUntilMs === null && !this.#isGivenBack) {
      const next = this.#journal.next();
      if (next !== null) return "deliver" in next ? this.#deliver(next.deliver) : this.#wait();
      if (this.#endWaits()) return this.#schedulePass();
      this.#startBodies();
    }
    if (this.#frozen !== null || !this.#hasNews()) return this.#watch();
    this.#unstick();
    this.#host.submit(this);
  }

  #deliver(step: Step): void {
    this.#stall?.();
    this.#stall = null;
    this.#unstick();
    this.#isInStride = true;
    step.deliver((settlement) => this.#decode(step, settlement));
    this.#schedulePass();
  }

  #decode(step: Step, { ok, text }: Settlement): { value: unknown } | { error: unknown } {
    try {
      if (!ok) return { error: decodeError(text) };
      if (step.type === "sleep") return { value: undefined };
      const value = this.#context.codec.decode(text);
      if (step.type === "do") return { value };
      // A codec that knows only JSON has made a string of it.
      const event = value as { timestamp: Date | string };
      return { value: { ...event, timestamp: new Date(event.timestamp) } };
    } catch (error) {
      return { error };
    }
  }

  /** Replay waits for the code to call what it called before: it may be awaiting something else in between. */
  #wait(): void {
    this.#stall ??= this.#context.runtime.scheduler.grace(this.#context.timing.stallMs, () => {
      this.#stall = null;
      const missing = this.#journal.giveUpMissing();
      if (missing.length === 0) return;
      const steps = missing.map(({ name, type }) => ({ name, type }));
      if (!this.#diverged("step.missing", { steps })) this.#schedulePass();
    });
  }

  /** Whether the run stops here, so that corrected code can go on. */
  #diverged(event: string, fields: Record<string, unknown>): boolean {
    const { logger, onDivergence, timing } = this.#context;
    const { workflow, id, runNumber } = this;
    logger.warn(event, { workflow, id, runNumber, ...fields });
    if (onDivergence !== "hold") return false;
    this.#heldUntilMs = timing.holdMs;
    this.#abandonBodies("the run is held: its code does not fit its history");
    this.#schedulePass();
    return true;
  }

  #endWaits(): boolean {
    if (this.#waits.size === 0) return false;
    const times = { now: this.#now, lookedAt: this.#lookedAt };
    const ended = endedWaits([...this.#waits], this.#events, times);
    for (const { step, event } of ended) {
      this.#waits.delete(step);
      if (event !== null) this.#consume(step, event);
      else if (step.type === "do") this.#ready.add(step);
      else if (step.type === "sleep") this.#settle(step, { ok: true, text: "null" });
      else this.#settle(step, { ok: false, text: encodeError(waitTimeout(step)) });
    }
    return ended.length > 0;
  }

  #consume(step: Step, event: EventRecord): void {
    this.#events = this.#events.filter(({ number }) => number !== event.number);
    this.#consumed.push({ number: event.number, ord: step.ord });
    const { codec, limits } = this.#context;
    try {
      const payload = event.payload === null ? undefined : codec.decode(event.payload);
      const text = codec.encode(
        { type: event.type, payload, timestamp: new Date(event.createdAt) },
        { what: `event ${event.type}`, maxBytes: limits.eventPayloadMaxBytes + 1024 },
      );
      this.#settle(step, { ok: true, text });
    } catch (error) {
      this.#settle(step, { ok: false, text: encodeError(error) });
    }
  }

  #settle(step: Step, outcome: { readonly ok: boolean; readonly text: string }): void {
    this.#journal.settle(step, outcome);
    this.#dirty.add(step);
  }

  get #isStopping(): boolean {
    return this.#pauseRequested || this.#isDraining || this.#budgetIsSpent;
  }

  get #budgetIsSpent(): boolean {
    return this.budget !== null && this.budget.left <= 0;
  }

  #startBodies(): void {
    for (const step of this.#ready) {
      const body = step.body as Body;
      if (step.attempts >= body.policy.maxAttempts) {
        this.#ready.delete(step);
        this.#settle(step, { ok: false, text: encodeError(noAttemptsLeft(step)) });
        this.#schedulePass();
        continue;
      }
      // A body that another one awaits must start, or that one never ends.
      if (this.#isStopping && !body.isNested) continue;
      if (step.barrier > this.#durable) continue;
      if (step.needsStartRow && !step.hasStartRow) {
        this.#starting.add(step);
        this.#dirty.add(step);
        continue;
      }
      if (!this.#host.mayStartBody()) return;
      this.#start(step, body);
    }
  }

  #start(step: Step, body: Body): void {
    this.#ready.delete(step);
    if (this.budget !== null) this.budget.left -= 1;
    const callback = this.#context.overrides?.body(step.name) ?? body.callback;
    const attempt = new Attempt(
      step,
      { ...body, callback },
      this.#context.runtime,
      (ended, outcome) => this.#attemptEnded(ended, outcome),
    );
    // Before it begins: what the body does at once must find it running.
    this.#running.set(step, attempt);
    attempt.begin(this.id);
  }

  #attemptEnded(attempt: Attempt, outcome: AttemptOutcome): void {
    const { step, body } = attempt;
    this.#running.delete(step);
    step.attempts = attempt.number;
    const failed = this.#encodedResult(step, outcome);
    if (failed === null) {
      this.#noteAttempt(attempt, null);
      return this.#schedulePass();
    }
    const { clock, random } = this.#context.runtime;
    const world = { random, nowMs: clock.now() };
    const delayMs = this.#shortened(
      step,
      retryDelayMs(failed.error, attempt.number, body.policy, world),
    );
    step.lastError = encodeError(failed.error);
    this.#logFailure(attempt, delayMs);
    this.#noteAttempt(attempt, step.lastError, delayMs !== null);
    if (delayMs === null) {
      this.#settle(step, { ok: false, text: step.lastError });
    } else {
      step.wakeAt = null;
      step.wake = { inMs: delayMs };
      step.hasStartRow = false;
      this.#waits.add(step);
      this.#dirty.add(step);
    }
    this.#schedulePass();
  }

  #shortened(step: Step, delayMs: number | null): number | null {
    const isSkipped = this.#context.overrides?.skipsRetryDelay(step.name) === true;
    return delayMs !== null && isSkipped ? 0 : delayMs;
  }

  /** Settles a step that succeeded; else answers its error. What cannot be stored is an error of the author's. */
  #encodedResult(step: Step, outcome: AttemptOutcome): { error: unknown } | null {
    if ("error" in outcome) return outcome;
    const { codec, limits } = this.#context;
    try {
      const text = codec.encode(outcome.value, {
        what: `result of step ${quote(step.name)}`,
        maxBytes: limits.stepResultMaxBytes,
      });
      this.#settle(step, { ok: true, text });
      return null;
    } catch (error) {
      return { error };
    }
  }

  /** A step that succeeds at once needs no record of its attempts. */
  #noteAttempt(attempt: Attempt, error: string | null, willRetry = false): void {
    if (attempt.number === 1 && !willRetry) return;
    const tookMs = Math.max(0, this.#context.runtime.clock.now() - attempt.startedAtMs);
    this.#attemptWrites.push({ ord: attempt.step.ord, n: attempt.number, tookMs, error });
  }

  #logFailure({ step, number, body }: Attempt, retryInMs: number | null): void {
    const { workflow, id, runNumber } = this;
    const { maxAttempts } = body.policy;
    const run = { workflow, id, runNumber };
    const attempt = { step: step.name, attempt: number, maxAttempts, retryInMs };
    this.#context.logger.debug("step.failed", { ...run, ...attempt, error: step.lastError });
  }

  #abandonBodies(reason: string): void {
    for (const attempt of this.#running.values()) attempt.abandon(reason);
    this.#running.clear();
  }

  /** Nothing to write and nothing to start: what will bring the run on? */
  #watch(): void {
    if (this.#frozen !== null || this.#outcome !== null) return;
    const wake = earliestWake(this.#waits, this.#now);
    if (wake !== null && "at" in wake) this.#host.lookAt(this, wake.at);
    if (this.#running.size > 0 || this.#waits.size > 0 || this.#ready.size > 0) {
      return this.#unstick();
    }
    const { workflow, id, runNumber } = this;
    const { scheduler } = this.#context.runtime;
    // Every heartbeat makes a pass: the time counts from the first that found nothing.
    this.#stuck ??= scheduler.after(this.#context.timing.reportStuckMs, () => {
      this.#context.logger.warn("run.awaitsNoStep", { workflow, id, runNumber });
    });
  }

  #unstick(): void {
    this.#stuck?.();
    this.#stuck = null;
  }

  // Commits

  #hasNews(): boolean {
    return (
      this.#dirty.size > 0 || this.#attemptWrites.length > 0 || this.#next().kind !== "continue"
    );
  }

  /** What becomes of the ticket if all is committed that is known now. */
  #next(): Next {
    const { historyBytes } = this;
    if (this.#heldUntilMs !== null) {
      return { kind: "release", inMs: this.#heldUntilMs, historyBytes };
    }
    if (this.#isGivenBack) return { kind: "release", inMs: 0, historyBytes };
    if (this.#outcome !== null) {
      return "output" in this.#outcome
        ? { kind: "complete", output: this.#outcome.output }
        : { kind: "fail", error: this.#outcome.error };
    }
    const isQuiet = !this.#passIsDue && !this.#journal.replaying && !this.#hasReturned;
    if (!isQuiet || this.#running.size > 0) return { kind: "continue" };
    if (this.#ready.size > 0) {
      return this.#isStopping ? { kind: "release", inMs: 0, historyBytes } : { kind: "continue" };
    }
    if (this.#waits.size === 0) return { kind: "continue" };
    const types = [...this.#waits].flatMap(({ eventType }) => eventType ?? []);
    return {
      kind: "park",
      waitMask: waitMaskOf(types),
      wake: earliestWake(this.#waits, this.#now),
      historyBytes,
    };
  }

  /** The part to send: the one whose fate is unknown, or all that is new. Null if there is nothing to write. */
  part(): Part | null {
    if (this.#place !== "leased") return null;
    if (this.#frozen !== null) return this.#frozen.part;
    const next = this.#next();
    if (next.kind === "release") this.#takeBackStarts();
    else if (this.#outcome !== null) this.#abandonBodies("the run has ended");
    const steps = [...this.#dirty];
    if (steps.length === 0 && this.#attemptWrites.length === 0 && next.kind === "continue") {
      return null;
    }
    const nowMs = this.#context.runtime.clock.now();
    const settles = steps.some(({ settled }) => settled !== null);
    this.#partNumber += 1;
    const part: Part = {
      iid: this.iid,
      runNumber: this.runNumber,
      claimNumber: this.claimNumber,
      partNumber: this.#partNumber,
      seenEvents: this.#seenEvents,
      steps: steps.map((step) => stepWrite(step, this.#doing(step), nowMs)),
      attempts: this.#attemptWrites,
      consumed: this.#consumed,
      spawns: [],
      deliveries: [],
      outbox: [],
      ...(this.#mustForgive && settles ? { takeovers: 0 } : {}),
      next,
    };
    if (settles) this.#mustForgive = false;
    const starting = [...this.#starting];
    this.#dirty.clear();
    this.#starting.clear();
    this.#attemptWrites = [];
    this.#consumed = [];
    this.#historyBytes += part.steps.reduce((sum, step) => sum + bytesOf(step), 0);
    this.#frozen = { part, steps, starting, seq: this.#journal.lastSeq, calls: this.#calls };
    return part;
  }

  #doing(step: Step): Doing {
    if (this.#waits.has(step)) return "waiting";
    if (this.#starting.has(step)) return "starting";
    return this.#ready.has(step) ? "resting" : null;
  }

  /** A start that does not happen now must not count. What a dead owner used up must, and is written all the same. */
  #takeBackStarts(): void {
    this.#starting.clear();
    for (const step of this.#ready) {
      if (!step.hasStartRow && step.attempts === step.recordedAttempts) continue;
      step.hasStartRow = false;
      this.#dirty.add(step);
    }
  }

  /** The store's answer to the part. */
  committed(answer: Extract<PartAnswer, { kind: "ok" }>): void {
    const frozen = this.#frozen;
    if (frozen === null || this.#place !== "leased") return;
    this.#frozen = null;
    this.#now = Math.max(this.#now, answer.now);
    this.#durable = frozen.seq;
    for (const [n, step] of frozen.steps.entries()) {
      const written = frozen.part.steps[n];
      step.recordedAs = written?.status ?? null;
      step.recordedAttempts = written?.attempts ?? 0;
      const { wake } = written ?? { wake: null };
      if (wake !== null && step.wakeAt === null) {
        step.wakeAt = "at" in wake ? wake.at : answer.now + wake.inMs;
      }
    }
    for (const step of frozen.starting) step.hasStartRow = true;
    this.#releaseBarriers();
    this.#pauseRequested = answer.pauseRequested;
    if (answer.state === "leased") {
      this.#take(answer.events);
      return this.#schedulePass();
    }
    const isKept = answer.state !== "finished" && !this.#isGivenBack && this.#heldUntilMs === null;
    this.#place = isKept ? "parked" : "gone";
    this.#isDraining = false;
    const end = answer.state === "finished" ? "finished" : isKept ? answer.state : "gone";
    this.#host.ended(this, end);
    if (end !== "parked" || frozen.calls === this.#calls) return;
    // The code called a step while the part was on its way.
    this.#wantsReopen = true;
    this.#schedulePass();
  }

  #releaseBarriers(): void {
    for (let n = this.#barriers.length - 1; n >= 0; n--) {
      const barrier = this.#barriers[n];
      if (barrier === undefined || barrier.seq > this.#durable) continue;
      this.#barriers.splice(n, 1);
      barrier.resolve();
    }
  }

  #take(events: readonly EventRecord[]): void {
    const fresh = events.filter(({ number }) => number > this.#seenEvents);
    this.#events.push(...fresh);
    this.#seenEvents = Math.max(this.#seenEvents, fresh.at(-1)?.number ?? 0);
  }
}

function waitTimeout(step: Step): WaitTimeoutError {
  return new WaitTimeoutError(
    `no event of type ${quote(step.eventType)} came for step ${quote(step.name)} in time`,
  );
}

function noAttemptsLeft(step: Step): StepMaxAttemptsExceeded {
  const cause = step.lastError === null ? undefined : decodeError(step.lastError);
  return new StepMaxAttemptsExceeded(
    `step ${quote(step.name)} was begun ${step.attempts} times and has no attempt left`,
    cause === undefined ? undefined : { cause },
  );
}

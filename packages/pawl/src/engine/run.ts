import type { WorkflowEntry } from "../authoring/entry.js";
import type { WorkflowEvent } from "../authoring/entrypoint.js";
import { encodeError } from "../model/error-codec.js";
import { MaxStepsExceededError, RunCrashedError, StepMismatchError } from "../model/errors.js";
import { quote } from "../model/quote.js";
import type { Cancel } from "../model/seams.js";
import type { DbTime, EventRecord } from "../store/records.js";
import type { Claimed, LoadedRun, Next, Part, PartAnswer, PollAnswer } from "../store/store.js";
import { waitMaskOf } from "../store/wait-mask.js";
import { Attempt, type AttemptOutcome } from "./attempt.js";
import { Children } from "./children.js";
import type { EngineContext, RunHost, StepBudget } from "./context.js";
import { Journal } from "./journal.js";
import { failure, outcomeOf, type Outcome } from "./outcome.js";
import { retryDelayMs } from "./retry.js";
import {
  decoded,
  noAttemptsLeft,
  received,
  slept,
  timedOut,
  type Unnumbered,
} from "./settlements.js";
import type { Body, Settlement, Step, StepType } from "./step.js";
import { stepsOf } from "./steps.js";
import { earliestWake, endedWaits } from "./waits.js";
import { bytesOfAll, Writes } from "./writes.js";

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

  readonly #writes: Writes;
  #historyBytes: number;
  /** The code of the parked, or parking, run called a step. */
  #wantsReopen = false;

  /** Taken from a dead owner: how far that had come, and when. */
  readonly #takenOver: { readonly seq: number; readonly at: DbTime } | null;
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
    const { lastSeq } = this.#journal;
    this.#writes = new Writes(lastSeq, claimed.takeovers > 0);
    this.#historyBytes = bytesOfAll(loaded?.steps ?? []);
    this.#takenOver = claimed.takeovers > 0 ? { seq: lastSeq, at: claimed.now } : null;
    this.#children = new Children(this.iid, this.runNumber, {
      currentAttempt: () => this.#currentAttempt(),
      durable: () => this.#writes.whenDurable(this.#journal.delivered),
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
    return this.#writes.partOnItsWay !== null;
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
    run.#outcome = failure(error);
    return run;
  }

  /** The parked run was claimed again by this process: it goes on where it stands. */
  reclaimed(claimed: Claimed, hasUnseenEvents: boolean): void {
    this.#place = "leased";
    this.#wantsReopen = false;
    this.claimNumber = claimed.claimNumber;
    this.#writes.newClaim();
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
      if (this.#writes.tellsOf(step)) this.#writes.add(step);
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

  /** When the first of its waits ends, as far as that is registered; now, if it has something to start. */
  get wakeAt(): DbTime | null {
    if (this.#ready.size > 0) return this.#now;
    const wake = earliestWake(this.#waits, this.#now);
    return wake !== null && "at" in wake ? wake.at : null;
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
      this.#writes.add(step);
    }
    if (!this.#writes.isEmpty) this.#schedulePass();
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
      (value) => {
        this.#hasReturned = true;
        outcomeOf(value, this.#entry, this.#context, (outcome) => this.#end(outcome));
      },
      (error: unknown) => this.#end(failure(error)),
    );
    this.#schedulePass();
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
    const outcome = decoded(step, step.settled as Settlement, this.#context.codec);
    return "value" in outcome ? Promise.resolve(outcome.value) : Promise.reject(outcome.error);
  }

  /** An endless loop of steps must not go on because its author catches errors: the run ends here. */
  #countStep(): boolean {
    this.#doSteps += 1;
    const { maxStepsPerRun } = this.#context.limits;
    if (this.#doSteps <= maxStepsPerRun) return true;
    this.#end(
      failure(new MaxStepsExceededError(`the run called more than ${maxStepsPerRun} steps`)),
    );
    return false;
  }

  #await(step: Step, begin: (step: Step) => void): void {
    // A run that does not park after all forgets this with its answer.
    this.#wantsReopen = this.#place === "parked" || this.#isGivingUp;
    begin(step);
    // Called at its own time, after something that is no step: only its row can tell a later owner that it began.
    step.needsStartRow ||= !this.#isInStride && step.body?.policy.maxAttempts !== Infinity;
    if (this.#mayHaveBegun(step)) {
      step.attempts += 1;
      step.needsStartRow = true;
    }
    if (step.type !== "do") {
      this.#waits.add(step);
      if (step.wakeAt === null) this.#writes.add(step);
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
    if (this.#isGivingUp) return;
    if (this.#outcome === null && this.#heldUntilMs === null && !this.#isGivenBack) {
      const next = this.#journal.next();
      if (next !== null) return "deliver" in next ? this.#deliver(next.deliver) : this.#wait();
      if (this.#endWaits()) return this.#schedulePass();
      this.#startBodies();
    }
    if (this.hasPartOnItsWay || !this.#hasNews()) return this.#watch();
    this.#unstick();
    this.#host.submit(this);
  }

  /** A part that parks, gives back or ends the run is on its way. */
  get #isGivingUp(): boolean {
    const part = this.#writes.partOnItsWay;
    return part !== null && part.next.kind !== "continue";
  }

  #deliver(step: Step): void {
    this.#stall?.();
    this.#stall = null;
    this.#unstick();
    this.#isInStride = true;
    step.deliver((settlement) => decoded(step, settlement, this.#context.codec));
    this.#schedulePass();
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
      else this.#settle(step, step.type === "sleep" ? slept : timedOut(step));
    }
    return ended.length > 0;
  }

  #consume(step: Step, event: EventRecord): void {
    this.#events = this.#events.filter(({ number }) => number !== event.number);
    this.#writes.consume(event.number, step.ord);
    this.#settle(step, received(event, this.#context));
  }

  #settle(step: Step, settlement: Unnumbered): void {
    this.#journal.settle(step, settlement);
    this.#writes.add(step);
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
        this.#settle(step, noAttemptsLeft(step));
        this.#schedulePass();
        continue;
      }
      // A body that another one awaits must start, or that one never ends.
      if (this.#isStopping && !body.isNested) continue;
      if (!this.#writes.isDurable(step.barrier)) continue;
      if (step.needsStartRow && !step.hasStartRow) {
        this.#writes.start(step);
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
    const result = this.#resultOf(step, outcome);
    if ("settlement" in result) {
      this.#settle(step, result.settlement);
      this.#noteAttempt(attempt, null);
    } else {
      this.#attemptFailed(attempt, body, result.error);
    }
    this.#schedulePass();
  }

  /** What cannot be stored is an error of the author's. */
  #resultOf(
    step: Step,
    outcome: AttemptOutcome,
  ): { readonly settlement: Unnumbered } | { readonly error: unknown } {
    if ("error" in outcome) return outcome;
    const { codec, limits } = this.#context;
    try {
      const text = codec.encode(outcome.value, {
        // Only errors need it, and it takes longer than small results.
        get what() {
          return `result of step ${quote(step.name)}`;
        },
        maxBytes: limits.stepResultMaxBytes,
      });
      return { settlement: { ok: true, text } };
    } catch (error) {
      return { error };
    }
  }

  #attemptFailed(attempt: Attempt, { policy }: Body, error: unknown): void {
    const { step, number } = attempt;
    const { runtime, overrides } = this.#context;
    const world = { random: runtime.random, nowMs: runtime.clock.now() };
    let delayMs = retryDelayMs(error, number, policy, world);
    if (delayMs !== null && overrides?.skipsRetryDelay(step.name) === true) delayMs = 0;
    step.lastError = encodeError(error);
    this.#logFailure(attempt, delayMs);
    this.#noteAttempt(attempt, step.lastError, delayMs !== null);
    if (delayMs === null) return this.#settle(step, { ok: false, text: step.lastError });
    step.wakeAt = null;
    step.wake = { inMs: delayMs };
    step.hasStartRow = false;
    this.#waits.add(step);
    this.#writes.add(step);
  }

  /** A step that succeeds at once needs no record of its attempts. */
  #noteAttempt(attempt: Attempt, error: string | null, willRetry = false): void {
    if (attempt.number === 1 && !willRetry) return;
    const tookMs = Math.max(0, this.#context.runtime.clock.now() - attempt.startedAtMs);
    this.#writes.attempt({ ord: attempt.step.ord, n: attempt.number, tookMs, error });
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
    if (this.hasPartOnItsWay || this.#outcome !== null) return;
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
    return !this.#writes.isEmpty || this.#next().kind !== "continue";
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
    const frozen = this.#writes.partOnItsWay;
    if (frozen !== null) return frozen;
    const next = this.#next();
    if (next.kind === "release") this.#writes.takeBackStarts(this.#ready);
    else if (this.#outcome !== null) this.#abandonBodies("the run has ended");
    if (this.#writes.isEmpty && next.kind === "continue") return null;
    const { iid, runNumber, claimNumber, seenEvents } = this;
    const part = this.#writes.freeze({
      iid,
      runNumber,
      claimNumber,
      seenEvents,
      next,
      seq: this.#journal.lastSeq,
      nowMs: this.#context.runtime.clock.now(),
      doing: (step) => {
        if (this.#waits.has(step)) return "waiting";
        return this.#ready.has(step) ? "resting" : "running";
      },
    });
    this.#historyBytes += bytesOfAll(part.steps);
    return part;
  }

  /** The store's answer to the part. */
  committed(answer: Extract<PartAnswer, { kind: "ok" }>): void {
    if (!this.hasPartOnItsWay || this.#place !== "leased") return;
    this.#now = Math.max(this.#now, answer.now);
    this.#writes.applied(answer.now);
    this.#pauseRequested = answer.pauseRequested;
    if (answer.state === "leased") {
      this.#wantsReopen = false;
      this.#take(answer.events);
      return this.#schedulePass();
    }
    const isKept = answer.state !== "finished" && !this.#isGivenBack && this.#heldUntilMs === null;
    this.#place = isKept ? "parked" : "gone";
    this.#isDraining = false;
    this.#host.ended(this, answer.state === "finished" || isKept ? answer.state : "gone");
    // A paused run waits for its resume, whatever its code does.
    if (answer.state === "parked" && this.#wantsReopen) this.#schedulePass();
  }

  #take(events: readonly EventRecord[]): void {
    const fresh = events.filter(({ number }) => number > this.#seenEvents);
    this.#events.push(...fresh);
    this.#seenEvents = Math.max(this.#seenEvents, fresh.at(-1)?.number ?? 0);
  }
}

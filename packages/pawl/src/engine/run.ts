import type { WorkflowEntry } from "../authoring/entry.js";
import { RunCrashedError, StepMismatchError } from "../model/errors.js";
import type { Stride } from "../model/seams.js";
import type { DbTime, Ended, EventRecord } from "../store/records.js";
import type { Claimed, LoadedRun, Next, Part, PartAnswer, PollAnswer } from "../store/store.js";
import type { Bodies } from "./bodies.js";
import { CallCounts } from "./call-counts.js";
import { Children } from "./children.js";
import { startCode } from "./code.js";
import type { EngineContext, RunHost, StepBudget } from "./context.js";
import { Frontier, type Gate } from "./frontier.js";
import { Journal } from "./journal.js";
import { failure, type RunOutcome } from "./outcome.js";
import { StallTimers } from "./stall-timers.js";
import { decoded } from "./settlements.js";
import { mayBeUnheard, type Body, type Settlement, type Step, type StepType } from "./step.js";
import type { StepPolicy } from "./step-config.js";
import { Waits } from "./waits.js";
import { bytesOfAll, PartDraft } from "./part-draft.js";

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
  readonly #journal: Journal;
  readonly #children: Children;
  #place: "leased" | "parked" | "gone" = "leased";

  readonly #frontier: Frontier;
  readonly #waits: Waits;
  readonly #bodies: Bodies;
  readonly #counts: CallCounts;

  readonly #writes: PartDraft;
  #historyBytes: number;
  /** The code of the parked, or parking, run called a step. */
  #wantsReopen = false;
  /** A look did not find the ticket ours. */
  #wasMissed = false;

  #pauseRequested = false;
  #isDraining = false;
  /** Bodies were cut off: the code in memory must not go on. */
  #isGivenBack = false;
  #heldUntilMs: number | null = null;

  /** The code does what its start, or a delivery, made it do: in every replay it will call the same steps here. */
  #stride: Stride;
  #hasReturned = false;
  #outcome: RunOutcome | null = null;
  #passIsDue = false;
  readonly #patience: StallTimers;

  constructor(
    context: EngineContext,
    host: RunHost,
    entry: WorkflowEntry,
    claimed: Claimed,
    loaded: LoadedRun | null,
    /** How many were sent under this claim. */
    parts = 0,
  ) {
    this.#context = context;
    this.#host = host;
    this.#counts = new CallCounts(context.limits.maxStepsPerRun);
    this.#patience = new StallTimers(context);
    this.iid = claimed.iid;
    this.workflow = claimed.workflow;
    this.id = claimed.id;
    this.runNumber = claimed.runNumber;
    this.claimNumber = claimed.claimNumber;
    const events = loaded?.events ?? [];
    // Of a new run nothing was loaded: events that were there before it began come with its first commit.
    const seenEvents =
      loaded === null ? 0 : Math.max(claimed.eventCount, events.at(-1)?.number ?? 0);
    const waits = new Waits(claimed.now, events, seenEvents);
    this.#journal = new Journal(loaded?.steps ?? [], context.repeatedStepNames);
    const { lastSeq } = this.#journal;
    this.#writes = new PartDraft(lastSeq, claimed.takeovers > 0, parts);
    this.#historyBytes = bytesOfAll(loaded?.steps ?? []);
    const takenOver = claimed.takeovers > 0 ? { seq: lastSeq, at: claimed.now } : null;
    this.#frontier = new Frontier(this, context, waits, this.#writes, takenOver, {
      settled: (step, settlement) => {
        this.#journal.settle(step, settlement);
        this.#writes.add(step);
      },
      changed: () => this.#schedulePass(),
    });
    this.#waits = waits;
    this.#bodies = this.#frontier.bodies;
    this.#children = new Children(this.iid, this.runNumber, {
      currentAttempt: () => this.#bodies.current(),
      durable: () => this.#writes.whenDurable(this.#journal.delivered),
    });
    this.#stride = context.runtime.scheduler.stride();
    const { params } = loaded ?? claimed;
    startCode(
      this,
      entry,
      context,
      this.#children,
      { params, createdAt: claimed.createdAt },
      {
        returned: () => {
          this.#hasReturned = true;
        },
        ended: (outcome) => this.#end(outcome),
      },
    );
    this.#schedulePass();
  }

  get isLeased(): boolean {
    return this.#place === "leased";
  }

  get seenEvents(): number {
    return this.#waits.seenEvents;
  }

  get historyBytes(): number {
    return this.#historyBytes;
  }

  /** A part was sent, and not yet answered. */
  get #hasPartOnItsWay(): boolean {
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
    const reason = `the run ended its process ${claimed.takeovers} times without progress`;
    run.#outcome = failure(new RunCrashedError(reason));
    return run;
  }

  /** The parked run was claimed again by this process: it goes on where it stands. */
  reclaimed(claimed: Claimed, hasUnseenEvents: boolean): void {
    this.#place = "leased";
    this.#wantsReopen = false;
    this.claimNumber = claimed.claimNumber;
    this.#writes.newClaim();
    this.#pauseRequested = false;
    this.#waits.heard(claimed.now);
    if (hasUnseenEvents) return; // a look brings them, and it goes on from there
    this.#waits.looked(this.now);
    this.#schedulePass();
  }

  /** A look at the ticket: the time, new events, the pause flag. */
  look(answer: Extract<PollAnswer, { kind: "ok" }>): void {
    if (this.#place !== "leased") return;
    this.#waits.looked(answer.now);
    this.#waits.take(answer.events);
    this.#pauseRequested = answer.pauseRequested;
    this.#schedulePass();
  }

  /** An event was added in this process. False if it is not the next one. */
  receive(event: EventRecord): boolean {
    if (this.#place === "gone" || event.number !== this.seenEvents + 1) return false;
    this.#waits.take([event]);
    this.#schedulePass();
    return true;
  }

  /** A look did not find the ticket ours. Or our own part gave it up: then the answer on its way knows. */
  isLostForSure(): boolean {
    this.#wasMissed = this.#isGivingUp;
    return !this.#isGivingUp;
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
    this.#frontier.interrupt("the runner is stopping");
    this.#schedulePass();
  }

  /** The claim is lost, or the memory is needed: everything since the last commit was speculation. */
  discard(reason: string): void {
    this.#place = "gone";
    this.#bodies.abandon(reason);
    this.#patience.over();
  }

  /** Something that kept bodies from starting may be over. */
  nudge(): void {
    this.#schedulePass();
  }

  /** When its hold or the first of its waits ends, as far as that is registered; now, if it can start something. */
  get wakeAt(): DbTime | null {
    if (this.#heldUntilMs !== null) return this.#frontier.waits.now + this.#heldUntilMs;
    return this.#frontier.wakeAt;
  }

  /** How it ends, as the database says it; null while it goes on. */
  get end(): Ended | null {
    if (this.#outcome === null) return null;
    return "output" in this.#outcome
      ? { status: "complete", output: this.#outcome.output, error: null }
      : { status: "errored", output: null, error: this.#outcome.error };
  }

  /** The names of the steps whose bodies run. */
  get runningSteps(): string[] {
    return Array.from(this.#bodies.attempts, ({ step }) => step.name);
  }

  /** Rows for steps that run for a while, for people who watch. True if others run, and may later need one. */
  noteRunning(olderThanMs: number): boolean {
    const isDone = this.#bodies.note(olderThanMs);
    if (!this.#writes.isEmpty) this.#schedulePass();
    return !isDone;
  }

  // The code

  #end(outcome: RunOutcome): void {
    if (this.#outcome !== null || this.#heldUntilMs !== null || this.#place === "gone") return;
    const steps = this.#journal.uncalled().map(({ name, type }) => ({ name, type }));
    if (steps.length > 0 && this.#diverged("step.missing", { steps })) return;
    this.#outcome = outcome;
    this.#schedulePass();
  }

  /** A step call of the code; `begin` sets up a step that has no result yet. */
  call(type: StepType, name: string, begin: (step: Step) => void): Promise<unknown> {
    if (this.#place === "gone" || this.#outcome !== null || this.#heldUntilMs !== null) {
      return never();
    }
    let step: Step;
    try {
      step = this.#journal.call(type, name, this.#bodies.caller());
    } catch (error) {
      if (error instanceof StepMismatchError && this.#diverged("step.mismatch", { name })) {
        return never();
      }
      return this.refuse(error);
    }
    if (step.isDelivered) return this.#mayGoOn(this.#counts.repeat()) ? this.#again(step) : never();
    if (step.isShared) return step.promise();
    if (type === "do" && !this.#mayGoOn(this.#counts.step())) return never();
    const promise = step.promise();
    if (step.settled === null) this.#await(step, begin);
    this.#schedulePass();
    return promise;
  }

  do(name: string, callback: Body["callback"], policy: StepPolicy): Promise<unknown> {
    return this.call("do", name, (step) => {
      step.body = { callback, policy, isNested: this.#bodies.current() !== null };
      step.needsStartRow ||= policy.maxAttempts === 1;
    });
  }

  get now(): DbTime {
    return this.#waits.now;
  }

  /** What was called wrongly rejects, and is no step. */
  refuse(error: unknown): Promise<never> {
    if (!this.#mayGoOn(this.#counts.repeat())) return never();
    return mayBeUnheard(Promise.reject(error));
  }

  /** The code asks again for what it was given before. */
  #again(step: Step): Promise<unknown> {
    const outcome = this.#decode(step, step.settled as Settlement);
    if ("value" in outcome) return Promise.resolve(outcome.value);
    return mayBeUnheard(Promise.reject(outcome.error));
  }

  /** An endless loop must not go on because its author catches errors: the run ends here. */
  #mayGoOn(tooMany: Error | null): boolean {
    if (tooMany !== null) this.#end(failure(tooMany));
    return tooMany === null;
  }

  #await(step: Step, begin: (step: Step) => void): void {
    // A run that does not park after all forgets this with its answer.
    this.#wantsReopen = this.#place === "parked" || this.#isGivingUp;
    begin(step);
    this.#frontier.add(step, !this.#stride.isOver);
  }

  // Passes

  #schedulePass(): void {
    if (this.#passIsDue || this.#place === "gone") return;
    this.#passIsDue = true;
    this.#context.runtime.scheduler.macrotask(this.#pass);
  }

  // One function and one decoder for all passes of a run: made anew for each, they were a tenth of what a replay allocates.
  readonly #pass = (): void => {
    this.#passIsDue = false;
    this.#stride = noStride;
    if (this.#place === "gone") return;
    if (this.#place === "parked") {
      if (this.#wantsReopen) this.#host.reopen(this);
      return;
    }
    // The ticket may be given up already: what comes next is done under the answer, or under the next claim.
    if (this.#isGivingUp) return;
    if (this.#outcome === null && this.#heldUntilMs === null && !this.#isGivenBack) {
      const next = this.#journal.next();
      if (next === "missing") return this.#wait();
      if (next !== null) {
        this.#patience.over();
        // Of replayed steps only the last one's: each takes 4 µs in a new process, and a step without a row that is called before is rare.
        if (!this.#journal.replaying) this.#stride = this.#context.runtime.scheduler.stride();
        this.#counts.ended();
        next.deliver(this.#decode);
        // Here, and not by `#schedulePass`: of functions that small V8 makes optimised code at their thousandth call, with all that
        // they call in it. In a replay of 1,000 steps that was 20 ms of compilation beside the last ones.
        this.#passIsDue = true;
        return this.#context.runtime.scheduler.macrotask(this.#pass);
      }
      if (this.#frontier.endWaits()) return this.#schedulePass();
      this.#frontier.startBodies(this.#gate);
      // As a rule a body was over at once: what the code does with its result goes into the same part.
      if (this.#passIsDue) return;
    }
    if (this.#hasPartOnItsWay || !this.#hasNews()) return this.#watch();
    this.#patience.notStuck();
    this.#host.submit(this);
  };

  readonly #decode = (step: Step, settlement: Settlement) =>
    decoded(step, settlement, this.#context.codec);

  /** A part that parks, gives back or ends the run is on its way. */
  get #isGivingUp(): boolean {
    const part = this.#writes.partOnItsWay;
    return part !== null && part.next.kind !== "continue";
  }

  /** Replay waits for the code to call what it called before. */
  #wait(): void {
    this.#patience.untilCalled(() => {
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
    this.#bodies.abandon("the run is held: its code does not fit its history");
    this.#schedulePass();
    return true;
  }

  get #isStopping(): boolean {
    return this.#pauseRequested || this.#isDraining || this.#budgetIsSpent;
  }

  get #budgetIsSpent(): boolean {
    return this.budget !== null && this.budget.left <= 0;
  }

  readonly #gate: Gate = {
    isStopping: () => this.#isStopping,
    mayStart: () => this.#host.mayStartBody(this),
    started: () => {
      if (this.budget !== null) this.budget.left -= 1;
      this.#host.noteSoon();
    },
  };

  /** Nothing to write and nothing to start: what will bring the run on? */
  #watch(): void {
    if (this.#hasPartOnItsWay || this.#outcome !== null) return;
    const { wake } = this.#waits;
    if (wake !== null && "at" in wake) this.#host.lookAt(this, wake.at);
    if (!this.#frontier.isEmpty) return this.#patience.notStuck();
    const { workflow, id, runNumber } = this;
    this.#patience.untilStuck(() => {
      this.#context.logger.warn("run.awaitsNoStep", { workflow, id, runNumber });
    });
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
    if (!isQuiet || this.#bodies.count > 0) return goesOn;
    if (this.#frontier.ready.size > 0) {
      return this.#isStopping ? { kind: "release", inMs: 0, historyBytes } : goesOn;
    }
    if (this.#waits.count === 0) return goesOn;
    const { mask: waitMask, wake } = this.#waits;
    return { kind: "park", waitMask, wake, historyBytes };
  }

  /** The part to send: the one whose fate is unknown, or all that is new. Null if there is nothing to write. */
  part(): Part | null {
    if (this.#place !== "leased") return null;
    const frozen = this.#writes.partOnItsWay;
    if (frozen !== null) return frozen;
    const next = this.#next();
    if (next.kind === "release") this.#writes.takeBackStarts(this.#frontier.ready);
    else if (this.#outcome !== null) this.#bodies.abandon("the run has ended");
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
      doing: (step) => this.#frontier.doing(step),
    });
    this.#historyBytes += bytesOfAll(part.steps);
    return part;
  }

  /** The store's answer to the part. */
  committed(answer: Extract<PartAnswer, { kind: "ok" }>): void {
    if (!this.#hasPartOnItsWay || this.#place !== "leased") return;
    this.#waits.heard(answer.now);
    this.#writes.applied(answer.now);
    this.#pauseRequested = answer.pauseRequested;
    // It was ours when the park was refused, and a look has not found it since.
    if (answer.state === "leased" && this.#wasMissed) return this.#host.lost(this);
    this.#wasMissed = false;
    if (answer.state === "leased") {
      this.#wantsReopen = false;
      this.#waits.take(answer.events);
      // Not in a macrotask of its own: the code has been quiet for one.
      if (!this.#passIsDue) this.#pass();
      return;
    }
    const isKept = answer.state !== "finished" && !this.#isGivenBack && this.#heldUntilMs === null;
    this.#place = isKept ? "parked" : "gone";
    this.#isDraining = false;
    this.#host.ended(this, answer.state === "finished" || isKept ? answer.state : "gone");
    // A paused run waits for its resume, whatever its code does.
    if (answer.state === "parked" && this.#wantsReopen) this.#schedulePass();
  }
}

const goesOn: Next = { kind: "continue" };
const noStride: Stride = { isOver: true };

/** Nobody waits for code that nobody wants any more. */
function never(): Promise<never> {
  return new Promise(() => {});
}

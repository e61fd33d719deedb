import type { WorkflowEntry } from "../authoring/entry.js";
import { RunCrashedError } from "../model/errors.js";
import { stackOf } from "../model/codec/error-shape.js";
import type { InvariantName } from "../model/invariants.js";
import type { Stride } from "../model/seams.js";
import { type DbTime, type Ended, type EventRecord } from "../store/records.js";
import { targetKey, type ChildOrigin } from "../model/target.js";
import type { Claimed, LoadedRun, PollAnswer } from "../store/store.js";
import type { Next, PartAnswer } from "../store/part.js";
import type { Attempt, AttemptHost, AttemptOutcome } from "./attempt.js";
import { Attempts } from "./attempts.js";
import { noAttemptsLeft } from "./charge.js";
import { nextOrigin, type ChildCounts } from "./children.js";
import { failure, startCode, type RunOutcome } from "./code.js";
import type { EngineContext, RunHost, StepBudget } from "./context.js";
import { Journal } from "./journal.js";
import type { Body, BodyRules } from "./kinds/kind.js";
import { OpenSteps } from "./open-steps.js";
import { bytesOfAll, PartDraft, type FrozenPart } from "./part-draft.js";
import {
  codeEdges,
  cutOff,
  gone,
  holdEdges,
  idle,
  returned,
  running,
  type CodeState,
  type Hold,
} from "./run-state.js";
import { StallTimers } from "./stall-timers.js";
import type { OpenStep, Settled, Step, StepCall } from "./step.js";
import { StepCalls, type CallingRun } from "./step-calls.js";

/**
 * One run in the memory of one process. This file reads as one turn, from `begin` to `committed`.
 *
 * The run advances in passes. Each pass has a macrotask of its own, so that the code has done all it can by then. A
 * pass delivers one settlement. When all are delivered and the code is quiet, it ends due waits, starts bodies, and
 * asks for a commit instead. A commit writes everything that is new, and how the turn ends if it does.
 */
export class Run implements AttemptHost, CallingRun {
  readonly iid: string;
  readonly workflow: string;
  readonly id: string;
  /** `targetKey` of the run. */
  readonly key: string;
  readonly runNumber: number;
  claimNumber: number;
  /** The bodies that may still start in this turn; null for any number. */
  budget: StepBudget | null = null;
  /** The ticket may not be ours any more: no body starts until a poll has found it. Only the polls set it. */
  isDoubted = false;

  #hold: Hold = idle;
  #code: CodeState = running;
  /** Requests from outside. The run follows them at the next boundary of a step. */
  readonly #asked = { pause: false, drain: false };

  readonly #context: EngineContext;
  readonly #host: RunHost;
  readonly #journal: Journal;
  readonly #openSteps: OpenSteps;
  readonly #attempts: Attempts;
  readonly #draft: PartDraft;
  readonly #calls: StepCalls;
  #timers: StallTimers | null = null;

  /**
   * The stride that the code's start or a delivery began. Within a stride, the code calls the same steps in every
   * replay.
   */
  #stride: Stride = noStride;
  #passIsDue = false;
  /** The children that the code has created outside of bodies. */
  #children: ChildCounts | null = null;

  /**
   * `partsSent` is the number of parts already sent under this claim. The constructor starts nothing, because the run
   * needs its slot first.
   */
  constructor(
    context: EngineContext,
    host: RunHost,
    claimed: Claimed,
    loaded: LoadedRun | null,
    partsSent = 0,
  ) {
    this.#context = context;
    this.#host = host;
    this.iid = claimed.iid;
    this.workflow = claimed.workflow;
    this.id = claimed.id;
    this.key = targetKey(claimed);
    this.runNumber = claimed.runNumber;
    this.claimNumber = claimed.claimNumber;
    const steps = loaded === null ? noSteps : loaded.steps;
    const events = loaded === null ? noEvents : loaded.events;
    // Nothing is loaded for a new run. Events that arrived before it began come with the answer to its first commit.
    const seenEvents =
      loaded === null ? 0 : Math.max(claimed.eventCount, events.at(-1)?.number ?? 0);
    const wasTakenOver = claimed.takeovers > 0;
    this.#journal = new Journal(steps, context.repeatedStepNames);
    const { lastSeq } = this.#journal;
    const takenOver = wasTakenOver ? { seq: lastSeq, at: claimed.now } : null;
    this.#openSteps = new OpenSteps(claimed.now, events, seenEvents);
    this.#attempts = new Attempts(this, context, this);
    this.#draft = new PartDraft(
      lastSeq,
      loaded === null ? 0 : bytesOfAll(steps),
      wasTakenOver,
      partsSent,
    );
    this.#calls = new StepCalls(
      this,
      context,
      this.#journal,
      this.#openSteps,
      this.#attempts,
      this.#draft,
      takenOver,
    );
  }

  // 1. The run has its slot: a new turn begins.

  /** Calls the code for the first time in this process. */
  begin(entry: WorkflowEntry, params: string | null, createdAt: DbTime): void {
    const { unknownType } = this.#journal;
    if (unknownType !== null) return this.#holdFor("step.unknownType", { type: unknownType });
    const workflows = this.#context.bindingsFor(this);
    this.#stride = this.#context.runtime.scheduler.stride();
    startCode(this, entry, { params, createdAt, workflows, steps: this.#calls }, this.#context);
    this.#schedulePass();
  }

  /** Ends the run without calling its code, because the code has ended its process too often. */
  endAsCrashed(takeovers: number): void {
    const reason = `the run ended its process ${takeovers} times without progress`;
    this.#setCode({ is: "ended", outcome: failure(new RunCrashedError(reason)) });
    this.#schedulePass();
  }

  /** Continues a parked run from where it stands, after this process has claimed it again. */
  resume(claimed: Claimed, hasUnseenEvents: boolean): void {
    const { claimNumber } = claimed;
    if (claimNumber !== this.claimNumber + 1) {
      return void this.#broken("run.claim", { had: this.claimNumber, got: claimNumber });
    }
    if (!this.#setHold(idle)) return;
    this.claimNumber = claimNumber;
    this.#draft.newClaim();
    this.#asked.pause = false;
    this.#openSteps.heard(claimed.now);
    if (hasUnseenEvents) return; // a poll brings them, and the run goes on from there
    this.#openSteps.polled(this.#openSteps.now);
    this.#schedulePass();
  }

  // 2. The code calls steps (step-calls.ts), and in the end it returns.

  get wantsCalls(): boolean {
    const { is } = this.#code;
    return (is === "running" || is === "returned") && this.#hold.is !== "gone";
  }

  get isInStride(): boolean {
    return !this.#stride.isOver;
  }

  called(isOpen: boolean): void {
    const hold = this.#hold;
    if (isOpen && (hold.is === "parked" || hold.is === "leaving")) hold.wantsReopen = true;
    this.#schedulePass();
  }

  /** The code has returned and calls no more steps. Its output may still have to be checked. */
  codeReturned(): void {
    if (this.#code.is === "running") this.#setCode(returned);
  }

  codeEnded(outcome: RunOutcome): void {
    if (!this.wantsCalls) return;
    const steps = this.#journal.uncalled().map(({ name, kind }) => ({ name, type: kind.type }));
    if (steps.length > 0 && this.diverged("step.missing", { steps })) return;
    this.#setCode({ is: "ended", outcome });
    this.#schedulePass();
  }

  // 3. Passes.

  #schedulePass(): void {
    if (this.#passIsDue || this.#hold.is === "gone") return;
    this.#passIsDue = true;
    this.#context.runtime.scheduler.macrotask(this.#pass);
  }

  /**
   * All passes of a run share one function. Created anew for each pass, these functions were a tenth of what a replay
   * allocates.
   */
  readonly #pass = (): void => {
    try {
      this.#passIsDue = false;
      this.#stride = noStride;
      const hold = this.#hold;
      // A part that gives the ticket up is on its way. The run goes on when its answer has come, or under the next claim.
      if (hold.is === "gone" || hold.is === "leaving") return;
      if (hold.is === "parked") {
        if (hold.wantsReopen) this.#host.turns.reopen(this);
        return;
      }
      if (this.wantsCalls) {
        const next = this.#journal.next();
        if (next !== null) return next === "missing" ? this.#awaitCalls() : this.#deliver(next);
        if (this.#endWaits()) return this.#schedulePass();
        this.#startBodies();
        // A pass is due again, as a rule because a body has ended at once. The code's next calls then go into the same
        // part.
        if (this.#passIsDue) return;
      }
      if (hold.is === "sending" || !this.#hasNews()) return this.#watch();
      this.#timers?.notStuck();
      this.#host.commits.submit(this);
    } catch (error) {
      this.#broken("run.throws", { stack: stackOf(error) });
    }
  };

  #deliver(step: Step): void {
    const { codec, runtime } = this.#context;
    this.#timers?.cancel();
    // In a replay, only the last delivery begins a stride. Beginning one takes 4 µs in a new process, and before the
    // last delivery the code rarely calls a step that has no row.
    if (!this.#journal.isReplaying) this.#stride = runtime.scheduler.stride();
    this.#calls.repeats = 0;
    (step.call as StepCall).deliver(step, codec);
    // This does not call `#schedulePass`. V8 optimises functions that small at their thousandth call, together with all
    // that they call. In a replay of 1,000 steps, that was 20 ms of compilation beside the last steps.
    this.#passIsDue = true;
    runtime.scheduler.macrotask(this.#pass);
  }

  /** Waits for the code to call a recorded step again, and gives that step up if it does not. */
  #awaitCalls(): void {
    this.#stallTimers.untilCalled(() => {
      const missing = this.#journal.giveUpMissing();
      if (missing.length === 0) return;
      const steps = missing.map(({ name, kind }) => ({ name, type: kind.type }));
      if (!this.diverged("step.missing", { steps })) this.#schedulePass();
    });
  }

  /** Ends the waits that are over. Returns whether there were any. */
  #endWaits(): boolean {
    const ended = this.#openSteps.endWaits();
    for (const { step, event } of ended) {
      const open = step.open as OpenStep;
      if (event !== null) this.#draft.consume(event.number, step.ord);
      const settled = open.endsAs ?? step.kind.woken(step, open, event, this.#context);
      if (settled === null) this.#openSteps.ready.add(step);
      else this.#settle(step, settled);
    }
    return ended.length > 0;
  }

  #startBodies(): void {
    const { ready } = this.#openSteps;
    for (const step of ready) {
      const open = step.open as OpenStep;
      const body = open.body as Body;
      if (open.attempts >= body.policy.maxAttempts) {
        ready.delete(step);
        this.#settle(step, noAttemptsLeft(step, open));
        this.#schedulePass();
        continue;
      }
      // A nested body must start even while the run is stopping. Otherwise the body that awaits it never ends.
      if (this.#isStopping && !open.isNested) continue;
      if (!this.#draft.isDurable((step.call as StepCall).barrier)) continue;
      if (open.startRow === "needed") {
        this.#draft.addStart(step);
        continue;
      }
      if (!this.#host.lease.isFresh || this.isDoubted) return;
      ready.delete(step);
      if (this.budget !== null) this.budget.left -= 1;
      this.#host.turns.noteSoon();
      this.#attempts.start(step, body);
    }
  }

  attemptEnded(attempt: Attempt, outcome: AttemptOutcome): void {
    const { step } = attempt;
    this.#attempts.running.delete(step);
    const rules = step.kind.body as BodyRules;
    const settled = rules.judge(attempt, outcome, this.#draft, this.#context);
    if (settled !== null) this.#settle(step, settled);
    else {
      this.#openSteps.wait(step);
      this.#draft.add(step);
    }
    this.#schedulePass();
  }

  #settle(step: Step, { ok, text }: Settled): void {
    this.#journal.settle(step, ok, text);
    this.#draft.add(step);
  }

  get #isStopping(): boolean {
    const { pause, drain } = this.#asked;
    return pause || drain || (this.budget !== null && this.budget.left <= 0);
  }

  /** Watches a run that has nothing to write and nothing to start, until something else moves it on. */
  #watch(): void {
    if (this.#hold.is === "sending" || this.#code.is === "ended") return;
    const { wake, ready, waiting } = this.#openSteps;
    if (wake !== null && "at" in wake) this.#host.polls.at(this, wake.at);
    if (this.#attempts.running.size > 0 || waiting.size > 0 || ready.size > 0) {
      return this.#timers?.notStuck();
    }
    const { workflow, id, runNumber } = this;
    this.#stallTimers.untilStuck(() => {
      this.#context.logger.warn("run.awaitsNoStep", { workflow, id, runNumber });
    });
  }

  get #stallTimers(): StallTimers {
    return (this.#timers ??= new StallTimers(this.#context));
  }

  // 4. The commit, and what it does to the ticket.

  #hasNews(): boolean {
    return !this.#draft.isEmpty || this.#next().kind !== "continue";
  }

  /** Returns what happens to the ticket if everything that is known now is committed. */
  #next(): Next {
    const code = this.#code;
    switch (code.is) {
      case "held":
        return this.#release(code.forMs);
      case "cut":
        return this.#release(0);
      case "ended":
        return "output" in code.outcome
          ? { kind: "complete", output: code.outcome.output }
          : { kind: "fail", error: code.outcome.error };
      case "returned":
        return goesOn;
      case "running":
        break;
    }
    if (this.#passIsDue || this.#journal.isReplaying || this.#attempts.running.size > 0)
      return goesOn;
    const { ready, waiting } = this.#openSteps;
    if (ready.size > 0) return this.#isStopping ? this.#release(0) : goesOn;
    if (waiting.size === 0) return goesOn;
    const { waitMask, wake } = this.#openSteps;
    return { kind: "park", waitMask, wake, historyBytes: this.historyBytes };
  }

  #release(inMs: number): Next {
    return { kind: "release", inMs, historyBytes: this.historyBytes };
  }

  /**
   * Returns the part to send: the one whose fate is unknown, or else everything that is new. It is null if there is
   * nothing to write.
   */
  part(): FrozenPart | null {
    const hold = this.#hold;
    if (hold.is === "sending" || hold.is === "leaving") return hold;
    if (hold.is !== "idle") return null;
    const next = this.#next();
    if (next.kind === "release") this.#draft.takeBackStarts(this.#openSteps.ready);
    else if (this.#code.is === "ended" && this.#attempts.running.size > 0) {
      this.#attempts.abandon("the run has ended");
    }
    if (this.#draft.isEmpty && next.kind === "continue") return null;
    const nowMs = this.#context.runtime.clock.now();
    const frozen = this.#draft.freeze(this, next, this.#journal.lastSeq, this.#openSteps, nowMs);
    return this.#setHold(frozen) ? frozen : null;
  }

  /** Takes the store's answer to the part. */
  committed(answer: Extract<PartAnswer, { kind: "ok" }>): void {
    const hold = this.#hold;
    if (hold.is !== "sending" && hold.is !== "leaving") return;
    this.#openSteps.heard(answer.now);
    this.#draft.applied(hold, answer.now);
    this.#asked.pause = answer.pauseRequested;
    if (answer.state === "leased") return this.#goOn(hold.isMissed, answer.events);
    if (hold.is === "sending") return void this.#broken("run.answer", { state: answer.state });
    const isKept =
      answer.state !== "finished" && this.#code.is !== "cut" && this.#code.is !== "held";
    const { wantsReopen } = hold;
    this.#setHold(isKept ? { is: "parked", wantsReopen } : gone);
    this.#asked.drain = false;
    this.#host.turns.ended(this, answer.state === "finished" || isKept ? answer.state : "gone");
    // A paused run waits for its resume, whatever its code does.
    if (answer.state === "parked" && wantsReopen) this.#schedulePass();
  }

  /** Goes on after a part that kept the ticket, or whose park was refused because events had arrived. */
  #goOn(isMissed: boolean, events: readonly EventRecord[]): void {
    // The ticket was ours when the store refused the park, and a poll has not found it since.
    if (isMissed) return this.#host.turns.lost(this);
    this.#setHold(idle);
    this.#take(events);
    // This pass needs no macrotask of its own, because the code has already been quiet for one.
    if (!this.#passIsDue) this.#pass();
  }

  // The runner may tell the following at any time.

  /** Takes the answer of a poll that found the ticket ours: the time, new events and the pause flag. */
  polled(answer: Extract<PollAnswer, { kind: "ok" }>): void {
    if (!this.isLeased) return;
    this.#take(answer.events);
    this.#openSteps.polled(answer.now);
    this.#asked.pause = answer.pauseRequested;
    this.#schedulePass();
  }

  /** Takes an event that was added in this process. Returns false if it is not the next one. */
  receive(event: EventRecord): boolean {
    if (this.#hold.is === "gone" || event.number !== this.seenEvents + 1) return false;
    this.#take([event]);
    this.#schedulePass();
    return true;
  }

  #take(events: readonly EventRecord[]): void {
    if (events.length === 0 || this.#openSteps.take(events)) return;
    this.#broken("run.events", { numbers: events.map(({ number }) => number) });
  }

  /**
   * Returns whether the run is lost, after a poll did not find its ticket ours. If the run's own part may have given
   * the ticket up, the answer to that part decides instead.
   */
  isLostForSure(): boolean {
    if (this.#hold.is !== "leaving") return true;
    this.#hold.isMissed = true;
    return false;
  }

  /** Starts no more bodies. The run gives its ticket back when the running bodies are done. */
  drain(): void {
    this.#asked.drain = true;
    this.#schedulePass();
  }

  /** Cuts off the running bodies, because the drain took too long. This costs them no attempt. */
  giveBack(): void {
    if (!this.isLeased || this.#code.is === "ended") return;
    this.#asked.drain = true;
    if (this.wantsCalls) this.#setCode(cutOff);
    // Nobody waits any more for calls of the code, and none of them would be heard.
    this.#timers?.cancel();
    for (const { step, body } of this.#attempts.running.values()) {
      if (body.policy.maxAttempts === 1) continue; // a single attempt is spent once it has begun
      this.#openSteps.ready.add(step);
      if (this.#draft.tellsOf(step)) this.#draft.add(step);
    }
    this.#attempts.abandon("the runner is stopping");
    this.#schedulePass();
  }

  /**
   * Discards the run, because its claim is lost or its memory is needed. Everything since the last commit was
   * speculation.
   */
  discard(reason: string): void {
    if (this.#hold.is !== "gone") this.#setHold(gone);
    this.#attempts.abandon(reason);
    this.#timers?.cancel();
  }

  /** Schedules a pass, because something that kept bodies from starting may be over. */
  nudge(): void {
    this.#schedulePass();
  }

  /**
   * Adds rows for bodies that have run for a while, so that people who watch can see them. Returns true if other bodies
   * run that may need a row later.
   */
  noteRunning(olderThanMs: number): boolean {
    const haveAll = this.#attempts.note(olderThanMs, this.#draft);
    if (!this.#draft.isEmpty) this.#schedulePass();
    return !haveAll;
  }

  // The runner and the run's children ask the following.

  get isLeased(): boolean {
    const { is } = this.#hold;
    return is === "idle" || is === "sending" || is === "leaving";
  }

  get seenEvents(): number {
    return this.#openSteps.seenEvents;
  }

  /** The approximate size of the run's history. */
  get historyBytes(): number {
    return this.#draft.historyBytes;
  }

  /**
   * The time at which a held run is tried again, or at which the first registered wait ends. It is now if a body is
   * ready to start.
   */
  get wakeAt(): DbTime | null {
    const code = this.#code;
    return code.is === "held" ? this.#openSteps.now + code.forMs : this.#openSteps.wakeAt;
  }

  /** How the run ends, in the words of the database; null while it goes on. */
  get end(): Ended | null {
    if (this.#code.is !== "ended") return null;
    const { outcome } = this.#code;
    return "output" in outcome
      ? { status: "complete", output: outcome.output, error: null }
      : { status: "errored", output: null, error: outcome.error };
  }

  /** The names of the steps whose bodies run. */
  get runningSteps(): string[] {
    return Array.from(this.#attempts.running.values(), ({ step }) => step.name);
  }

  // The bindings of its code ask the following.

  /** Resolves when all that the code has seen is durable. */
  barrier(): Promise<void> {
    return this.#draft.whenDurable(this.#journal.delivered);
  }

  nextOrigin(named: string | null): ChildOrigin {
    this.#children ??= new Map();
    return nextOrigin(this, this.#attempts.current(), this.#children, named);
  }

  // States.

  /**
   * Handles code that does not fit its history. Returns whether the run stops here, so that corrected code can go on.
   */
  diverged(event: string, fields: Record<string, unknown>): boolean {
    const { logger, onDivergence } = this.#context;
    if (onDivergence === "hold") {
      this.#holdFor(event, fields);
      return true;
    }
    const { workflow, id, runNumber } = this;
    logger.warn(event, { workflow, id, runNumber, ...fields });
    return false;
  }

  #holdFor(event: string, fields: Record<string, unknown>): void {
    const { logger, timing } = this.#context;
    const { workflow, id, runNumber } = this;
    logger.warn(event, { workflow, id, runNumber, ...fields });
    if (this.wantsCalls) this.#setCode({ is: "held", forMs: timing.holdMs });
    this.#attempts.abandon("the run is held: its code does not fit its history");
    this.#schedulePass();
  }

  #setHold(next: Hold): boolean {
    const from = this.#hold.is;
    if (!holdEdges[from].includes(next.is)) return this.#broken("run.hold", { from, to: next.is });
    this.#hold = next;
    return true;
  }

  #setCode(next: CodeState): void {
    const from = this.#code.is;
    if (codeEdges[from].includes(next.is)) this.#code = next;
    else this.#broken("run.code", { from, to: next.is });
  }

  /**
   * Reports a broken invariant. The run's memory cannot be trusted any more, so the run is forgotten and loaded again
   * from what is durable.
   */
  #broken(invariant: InvariantName, fields: object): false {
    const { workflow, id, runNumber } = this;
    this.#context.invariants.report(invariant, { workflow, id, runNumber, ...fields });
    this.#host.turns.lost(this);
    return false;
  }
}

const goesOn: Next = { kind: "continue" };
const noStride: Stride = { isOver: true };
const noSteps: LoadedRun["steps"] = [];
const noEvents: readonly EventRecord[] = [];

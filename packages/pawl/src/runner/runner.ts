import type { WorkflowEntry } from "../authoring/entry.js";
import type { EngineContext, RunHost, StepBudget, TurnEnd } from "../engine/context.js";
import { Run } from "../engine/run.js";
import type { RunnerHints } from "../instances/ports.js";
import type { Signal } from "../model/abort.js";
import { idMaker } from "../model/ids.js";
import type { Logger } from "../model/logger.js";
import type { DbTime, Target } from "../store/records.js";
import type { Claimed, HeartbeatAnswer, Lane, LoadedRun, Part, Store } from "../store/store.js";
import { Committer, type BatchLimits } from "./committer.js";
import { FinishWaiters } from "./finish-waiters.js";
import { Lease } from "./lease.js";
import { LiveRuns, type LiveLimits } from "./live-runs.js";
import { Looks } from "./looks.js";
import { commitApart } from "./refused-part.js";

export type RunnerOptions = {
  /** Runs that are leased at a time. */
  readonly concurrency: number;
  readonly leaseMs: number;
  /** Takeovers without progress after which a run ends as `RunCrashedError`. */
  readonly maxTakeovers: number;
  readonly live: LiveLimits;
  readonly batch: BatchLimits;
};

export const defaultRunnerOptions: RunnerOptions = {
  concurrency: 100,
  leaseMs: 30_000,
  maxTakeovers: 5,
  live: { runs: 1_000, bytes: 64 * 1024 * 1024 },
  batch: { parts: 500, bytes: 4 * 1024 * 1024, inFlight: 1 },
};

export type TickOptions = {
  readonly maxInstances?: number | undefined;
  readonly maxSteps?: number | undefined;
};

export type TickResult = {
  readonly processed: number;
  /** Until the next run is due, by the database; null if none will be. */
  readonly nextWakeInMs: number | null;
};

/** What was claimed: how many, and when the last of these turns is over. */
export type Started = { readonly count: number; readonly done: Promise<void> };

/** The runner as a dispatcher sees it: what decides when to look for work. */
export type DispatchedRunner = Pick<
  Runner,
  "serve" | "freeSlots" | "start" | "tick" | "nextWakeInMs" | "stop" | "logger"
>;

const INBOX_ROWS = 1_000;
/** So that runs that resume can never keep new ones out for ever. */
const SHARE_FOR_NEW = 0.1;
/** A body that runs longer than this gets a row that says so. */
const NOTE_RUNNING_MS = 1_000;
/** From so many takeovers on, a run may be what kills its owners. */
const SUSPECT_TAKEOVERS = 2;
/** How often a runner looks for work that it does not know. */
const UNKNOWN_EVERY_MS = 60_000;
/** How long a stop waits for the store to take back what was cut off. */
const GIVE_BACK_MS = 5_000;

/** Many turns at once: claims runs, gives them their leases, commits and looks, and knows where each stands. */
export class Runner implements RunHost, RunnerHints {
  readonly #store: Store;
  readonly #entries: ReadonlyMap<string, WorkflowEntry>;
  readonly #context: EngineContext;
  readonly #lanes: readonly Lane[];
  #options: RunnerOptions;

  readonly #lease: Lease;
  readonly #committer: Committer;
  readonly #looks: Looks;
  readonly #live: LiveRuns;

  /** Runs whose tickets this process holds, and how their turns' ends are awaited. */
  readonly #leased = new Map<string, Run>();
  readonly #turns = new Map<Run, () => void>();
  /** Claimed, and not yet running: their history is on its way. By iid; the value tells one arrival from another. */
  readonly #arriving = new Map<string, object>();
  #reserved = 0;
  #lastClaimWasShort = false;
  /** Claims and adoptions go one by one: what is neither known nor arriving is then really unknown. */
  #claiming: Promise<unknown> = Promise.resolve();
  /** A stop waits for them, as for eager starts: what they bring after the goodbye would look like a crash. */
  #claimsOnTheirWay = 0;
  #suspectTurn: Promise<void> = Promise.resolve();
  #judgedAtMs = -Infinity;
  #lookedForUnknownAtMs = -Infinity;
  readonly #reportedUnknown = new Set<string>();

  readonly #finishWaiters: FinishWaiters;

  readonly #onNextEnd: (() => void)[] = [];
  #dispatcher: ((inMs: number) => void) | null = null;
  #isStopping = false;
  #isClosed = false;

  constructor(
    store: Store,
    entries: ReadonlyMap<string, WorkflowEntry>,
    context: EngineContext,
    options: RunnerOptions,
  ) {
    this.#store = store;
    this.#entries = entries;
    this.#context = context;
    this.#options = options;
    this.#lanes = [...entries.values()].map(({ name, queue }) => ({ queue, handler: name }));
    const { runtime, logger } = context;
    const newId = idMaker(runtime);
    this.#lease = new Lease(options.leaseMs, store, runtime, newId, {
      beat: (answer) => this.#heartbeatAnswered(answer),
      died: () => this.#died(),
      failed: (error) => logger.warn("heartbeat.failed", { error: String(error) }),
    });
    this.#committer = new Committer(store, runtime, options.batch, logger, {
      lost: (run) => this.#lost(run, "another runner has it, or it was ended"),
      refused: (run, part, message) => this.#refused(run, part, message),
      failed: () => this.#lease.lostTouch(),
    });
    this.#looks = new Looks(store, runtime, logger, {
      isLeased: (run) => this.#leased.get(run.iid) === run,
      lost: (run) => this.#lost(run, "another runner has it, or it was ended"),
      failed: () => this.#lease.lostTouch(),
    });
    this.#finishWaiters = new FinishWaiters(runtime.scheduler);
    this.#live = new LiveRuns(options.live, ({ workflow, id, runNumber }) => {
      logger.debug("run.evicted", { workflow, id, runNumber });
    });
  }

  // For dispatchers

  /** Runs in this process may start right away, and `wake` is called when there will be work in so many ms. */
  serve(
    wake: (inMs: number) => void,
    options: Partial<Pick<RunnerOptions, "concurrency">> = {},
  ): void {
    this.#options = { ...this.#options, ...options };
    this.#isStopping = false;
    this.#dispatcher = wake;
  }

  /** Where the engine reports: a dispatcher reports there too. */
  get logger(): Logger {
    return this.#context.logger;
  }

  get freeSlots(): number {
    const used = this.#leased.size + this.#arriving.size + this.#reserved;
    return Math.max(0, this.#options.concurrency - used);
  }

  /** The runs that are leased here and now, for people who watch. */
  get runs(): Run[] {
    return [...this.#leased.values()];
  }

  get isBusy(): boolean {
    return this.#leased.size > 0 || this.#arriving.size > 0;
  }

  get #isHoldingOn(): boolean {
    return this.isBusy || this.#claimsOnTheirWay > 0 || this.#reserved > 0;
  }

  /** Claims what is due, as far as there is room, and starts it. Resolves when the turns have begun. */
  async start(maxInstances = Infinity, budget: StepBudget | null = null): Promise<Started> {
    const limit = Math.min(this.freeSlots, maxInstances);
    if (this.#isStopping || this.#isClosed) return nothing;
    if (limit <= 0) {
      // There may be work that nobody looked for: as after a full claim.
      this.#lastClaimWasShort = false;
      return nothing;
    }
    return this.#oneByOne(async () => {
      if (this.#isStopping || this.#isClosed) return nothing;
      const claimed = await this.#claim(limit);
      this.#lastClaimWasShort = claimed.length < limit;
      const turns = this.#begin(claimed, budget);
      const report = this.#reportUnknown();
      return { count: claimed.length, done: turns.then(() => report) };
    });
  }

  async tick(options: TickOptions = {}): Promise<TickResult> {
    const { maxInstances, maxSteps = Infinity } = options;
    const budget = maxSteps === Infinity ? null : { left: maxSteps };
    const { count, done } = await this.start(maxInstances, budget);
    await done;
    return { processed: count, nextWakeInMs: await this.nextWakeInMs() };
  }

  nextWakeInMs(): Promise<number | null> {
    return this.#store.nextDueInMs(this.#lanes);
  }

  /** Lets running bodies end, up to `timeoutMs`, and gives everything back. It costs no attempt. */
  async stop(timeoutMs: number): Promise<void> {
    this.#isStopping = true;
    this.#dispatcher = null;
    for (const run of this.#leased.values()) run.drain();
    if (!(await this.#emptiedWithin(timeoutMs))) {
      for (const run of this.#leased.values()) run.giveBack();
      await this.#emptiedWithin(GIVE_BACK_MS);
    }
    this.#live.clear();
    await this.#lease.retire();
    this.#isStopping = false;
  }

  async #emptiedWithin(ms: number): Promise<boolean> {
    // Not by the clock: a timer may fire before that shows its time.
    const patience = { isOver: ms <= 0 };
    const cancel = this.#context.runtime.scheduler.after(ms, () => {
      patience.isOver = true;
      this.#turnEnded();
    });
    while (this.#isHoldingOn && !patience.isOver) {
      await new Promise<void>((resolve) => void this.#onNextEnd.push(resolve));
    }
    cancel();
    return !this.#isHoldingOn;
  }

  /** As if the process had died here and now: for tests. */
  crash(): void {
    this.#isClosed = true;
    this.#committer.close();
    this.#lease.abandon();
    for (const run of this.#leased.values()) this.#forget(run, "crashed");
    this.#live.clear();
  }

  // Claims

  async #claim(limit: number): Promise<Claimed[]> {
    const runner = await this.#lease.ensure();
    await this.#judgeOthers();
    await this.#store.moveInbox(INBOX_ROWS);
    const answer = await this.#store.claim({
      runner,
      lanes: this.#lanes,
      limit,
      reservedForNew: Math.max(1, Math.floor(limit * SHARE_FOR_NEW)),
    });
    if (answer.kind === "dead") {
      this.#lease.died();
      return this.#claim(limit);
    }
    this.#lease.heard(answer.now);
    return this.#isClosed || runner !== this.#lease.id ? [] : answer.claimed;
  }

  #oneByOne<T>(work: () => Promise<T>): Promise<T> {
    this.#claimsOnTheirWay += 1;
    const result = this.#claiming.then(work).finally(() => {
      this.#claimsOnTheirWay -= 1;
      this.#somethingEnded();
    });
    this.#claiming = result.catch(() => this.#lease.lostTouch());
    return result;
  }

  async #judgeOthers(): Promise<void> {
    const nowMs = this.#context.runtime.clock.now();
    if (!this.#lease.mayJudgeOthers || nowMs < this.#judgedAtMs + this.#lease.leaseMs / 10) return;
    this.#judgedAtMs = nowMs;
    const dead = await this.#store.declareDead();
    if (dead.length > 0) this.#context.logger.warn("runners.died", { runners: dead });
  }

  /** Runs that wait for code that is not here: left to a runner that has it, if there is one. Said once for each. */
  async #reportUnknown(): Promise<void> {
    const { runtime, logger } = this.#context;
    const nowMs = runtime.clock.now();
    if (nowMs < this.#lookedForUnknownAtMs + UNKNOWN_EVERY_MS) return;
    this.#lookedForUnknownAtMs = nowMs;
    try {
      for (const { queue, handler } of await this.#store.unknownLanes(this.#lanes)) {
        const lane = JSON.stringify([queue, handler]);
        if (this.#reportedUnknown.has(lane)) continue;
        this.#reportedUnknown.add(lane);
        logger.warn("workflow.unknown", { workflow: handler, queue });
      }
    } catch (error) {
      logger.debug("unknown.failed", { error: String(error) });
    }
  }

  async #begin(claimed: readonly Claimed[], budget: StepBudget | null): Promise<void> {
    const turns: Promise<void>[] = [];
    const toLoad: Claimed[] = [];
    for (const each of claimed) {
      const live = this.#live.take(each);
      if (live !== null) turns.push(this.#goOn(live, each, budget));
      else if (this.#isHopeless(each) || !each.resuming) {
        turns.push(this.#enter(this.#newRun(each, null), budget));
      } else if (each.takeovers >= SUSPECT_TAKEOVERS) turns.push(this.#loadAlone(each, budget));
      else toLoad.push(each);
    }
    if (toLoad.length > 0) turns.push(this.#load(toLoad, budget));
    await Promise.all(turns);
  }

  /** A live run needs no replay; only events that came meanwhile have to be fetched. */
  #goOn(run: Run, claimed: Claimed, budget: StepBudget | null): Promise<void> {
    const turn = this.#enter(run, budget);
    const hasNews = claimed.eventCount > run.seenEvents;
    run.reclaimed(claimed, hasNews);
    if (hasNews) this.#looks.soon(run);
    return turn;
  }

  #isHopeless({ takeovers }: Claimed): boolean {
    return takeovers >= this.#options.maxTakeovers;
  }

  /** Suspects run one at a time: then the one that ends its process is charged, and not its neighbours. */
  #loadAlone(claimed: Claimed, budget: StepBudget | null): Promise<void> {
    const { arrived, isExpected } = this.#expect([claimed]);
    const runner = this.#lease.id;
    const isOurs = (): boolean => runner === this.#lease.id && isExpected(claimed);
    const turn = this.#suspectTurn
      .then(() => (isOurs() ? this.#load([claimed], budget) : undefined))
      .finally(arrived);
    this.#suspectTurn = turn;
    return turn;
  }

  /** History comes in a later read than the claim: in one, the last owner's final commit could be missed. */
  async #load(claimed: readonly Claimed[], budget: StepBudget | null): Promise<void> {
    const { arrived, isExpected } = this.#expect(claimed);
    const runner = this.#lease.id;
    try {
      const loaded = await this.#store.load(
        // A dead owner did not say how much it had written.
        claimed.map((each) => ({ ...each, takenOver: each.takeovers > 0 })),
      );
      const byIid = new Map(loaded.map((run) => [run.iid, run]));
      // After its death nothing that a runner had claimed is its own.
      if (this.#isClosed || runner !== this.#lease.id) return;
      const turns = claimed
        .filter(isExpected)
        .map((each) => this.#enter(this.#newRun(each, byIid.get(each.iid) ?? null), budget));
      arrived();
      await Promise.all(turns);
    } catch (error) {
      // The tickets stay ours: the next heartbeat finds them, and they are loaded again.
      this.#context.logger.warn("load.failed", { runs: claimed.length, error: String(error) });
    } finally {
      arrived();
    }
  }

  /** Runs that are ours and will be here soon, until `arrived`; unless they were claimed anew meanwhile. */
  #expect(runs: readonly { readonly iid: string }[]) {
    const arrival = {};
    for (const { iid } of runs) this.#arriving.set(iid, arrival);
    this.#holdLease();
    const isExpected = ({ iid }: { readonly iid: string }): boolean =>
      this.#arriving.get(iid) === arrival;
    const arrived = (): void => {
      for (const { iid } of runs.filter(isExpected)) this.#arriving.delete(iid);
      this.#turnEnded();
    };
    return { isExpected, arrived };
  }

  #newRun(claimed: Claimed, loaded: LoadedRun | null): Run {
    const entry = this.#entries.get(claimed.workflow) as WorkflowEntry;
    return this.#isHopeless(claimed)
      ? Run.crashed(this.#context, this, entry, claimed)
      : new Run(this.#context, this, entry, claimed, loaded);
  }

  /** The run has its ticket; resolves when the turn is over. */
  #enter(run: Run, budget: StepBudget | null): Promise<void> {
    // A restarted run can come here before the look that tells that its old claim is lost.
    const former = this.#leased.get(run.iid);
    if (former !== undefined) this.#lost(former, "it was claimed anew");
    this.#arriving.delete(run.iid);
    run.budget = budget;
    this.#leased.set(run.iid, run);
    this.#holdLease();
    if (this.#isStopping) run.drain();
    return new Promise((resolve) => void this.#turns.set(run, resolve));
  }

  // What runs ask for

  submit(run: Run): void {
    this.#committer.submit(run);
  }

  mayStartBody(): boolean {
    return this.#lease.isFresh;
  }

  lookAt(run: Run, at: DbTime): void {
    this.#looks.in(this.#lease.msUntil(at), run);
  }

  reopen(run: Run): void {
    if (!this.#live.has(run) || this.#arriving.has(run.iid) || this.#isStopping) return;
    const { arrived } = this.#expect([run]);
    this.#oneByOne(() => this.#reopen(run))
      .catch((error: unknown) => {
        this.#context.logger.warn("reopen.failed", { error: String(error) });
      })
      .finally(arrived);
  }

  async #reopen(run: Run): Promise<void> {
    const runner = await this.#lease.ensure();
    const { iid, runNumber, claimNumber } = run;
    const claimed = await this.#store.reopen(runner, [{ iid, runNumber, claimNumber }]);
    if (this.#isClosed || runner !== this.#lease.id) return;
    // Not awaited: the turn has begun, and may be long.
    void this.#begin(claimed, null);
  }

  ended(run: Run, how: TurnEnd): void {
    this.#leave(run);
    if (how === "parked" || how === "paused") this.#live.keep(run);
    if (how === "parked" && run.wakeAt !== null)
      this.#dispatcher?.(this.#lease.msUntil(run.wakeAt));
    if (how === "finished") this.#finishWaiters.tell(run);
    const { workflow, id, runNumber } = run;
    this.#context.logger.debug(`run.${how}`, { workflow, id, runNumber });
  }

  #leave(run: Run): void {
    this.#looks.forget(run);
    if (this.#leased.get(run.iid) === run) this.#leased.delete(run.iid);
    this.#turns.get(run)?.();
    this.#turns.delete(run);
    this.#turnEnded();
  }

  #somethingEnded(): void {
    for (const resolve of this.#onNextEnd.splice(0)) resolve();
  }

  #turnEnded(): void {
    this.#somethingEnded();
    this.#holdLease();
    // A full claim left work behind: there is room for it now.
    if (!this.#lastClaimWasShort) this.#dispatcher?.(0);
  }

  #holdLease(): void {
    this.#lease.hold(!this.#isClosed && (this.#leased.size > 0 || this.#arriving.size > 0));
  }

  #forget(run: Run, reason: string): void {
    run.discard(reason);
    this.#leave(run);
  }

  #lost(run: Run, reason: string): void {
    const { workflow, id, runNumber } = run;
    this.#context.logger.debug("run.lost", { workflow, id, runNumber, reason });
    this.#forget(run, reason);
    this.#finishWaiters.tell(run);
  }

  #died(): void {
    this.#context.logger.warn("runner.died", { runs: this.#leased.size });
    for (const run of this.#leased.values()) this.#lost(run, "the lease ran out");
  }

  #refused(run: Run, part: Part, message: string): void {
    const { workflow, id, runNumber } = run;
    this.#context.logger.error("commit.refused", { workflow, id, runNumber, message });
    this.#forget(run, message);
    commitApart(this.#store, part, message).catch((error: unknown) => {
      this.#context.logger.error("commit.refused", { workflow, id, error: String(error) });
    });
  }

  // Heartbeats

  #heartbeatAnswered(answer: Extract<HeartbeatAnswer, { kind: "ok" }>): void {
    const owned = new Map(answer.owned.map((ticket) => [ticket.iid, ticket]));
    for (const run of this.#leased.values()) {
      const ticket = owned.get(run.iid);
      const isCertain = ticket !== undefined && ticket.claimNumber === run.claimNumber;
      const hasNews = isCertain && (ticket.pauseRequested || ticket.eventCount > run.seenEvents);
      // The heartbeat may be older than the claim: only a look is certain.
      if (!isCertain || hasNews) this.#looks.soon(run);
      run.noteRunning(NOTE_RUNNING_MS);
      run.nudge();
    }
    const unknown = this.#unknown(answer.owned);
    if (unknown.length === 0) return;
    this.#oneByOne(() => this.#adopt(unknown)).catch((error: unknown) => {
      this.#context.logger.warn("adopt.failed", { error: String(error) });
    });
  }

  #unknown<T extends { readonly iid: string }>(tickets: readonly T[]): T[] {
    return tickets.filter(({ iid }) => !this.#leased.has(iid) && !this.#arriving.has(iid));
  }

  /** Claims whose replies were lost. Mostly they have arrived meanwhile. */
  async #adopt(tickets: readonly { readonly iid: string }[]): Promise<void> {
    const runner = this.#lease.id;
    const unknown = this.#unknown(tickets);
    // New runs that start here are unknown until their creation is answered.
    if (runner === null || unknown.length === 0 || this.#reserved > 0) return;
    const claimed = this.#unknown(
      await this.#store.adopt(
        runner,
        unknown.map(({ iid }) => iid),
      ),
    );
    if (claimed.length === 0 || this.#isClosed || runner !== this.#lease.id) return;
    // Not awaited: the turns have begun, and may be long.
    void this.#load(claimed, null);
  }

  // Hints

  reserve(count: number): ReturnType<RunnerHints["reserve"]> {
    const runner = this.#lease.id;
    const isOpen = this.#dispatcher !== null && !this.#isStopping && !this.#isClosed;
    if (runner === null || !isOpen || !this.#lease.isFresh || !this.#lastClaimWasShort) return null;
    if (this.freeSlots < count) return null;
    this.#reserved += count;
    return {
      runner,
      started: (runs) => {
        this.#reserved -= runs.length;
        if (runner === this.#lease.id) void this.#begin(runs.map(asClaimed), null);
      },
      release: (places) => {
        this.#reserved -= places;
        this.#somethingEnded();
      },
    };
  }

  wake(): void {
    this.#dispatcher?.(0);
  }

  poke(owner: string, target: Target): void {
    if (owner !== this.#lease.id) return;
    for (const run of this.#leased.values()) {
      if (run.id === target.id && run.workflow === target.workflow) return this.#looks.soon(run);
    }
  }

  finished(target: Target, ms: number, signal?: Signal): Promise<void> {
    return this.#finishWaiters.wait(target, ms, signal);
  }
}

const nothing: Started = { count: 0, done: Promise.resolve() };

/** A run that was born leased. */
function asClaimed(
  run: Pick<Claimed, "iid" | "workflow" | "id" | "params" | "createdAt">,
): Claimed {
  return {
    ...run,
    runNumber: 1,
    claimNumber: 1,
    resuming: false,
    takenOver: false,
    takeovers: 0,
    eventCount: 0,
    historyBytes: 0,
    now: run.createdAt,
  };
}

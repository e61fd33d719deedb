import type { WorkflowEntry } from "../authoring/entry.js";
import type { EngineContext, RunHost, StepBudget, TurnEnd } from "../engine/context.js";
import { Run } from "../engine/run.js";
import type { Deliverer } from "../hooks/deliverer.js";
import type { EndListener, RunnerHints } from "../instances/ports.js";
import type { Signal } from "../model/abort.js";
import { ValidationError } from "../model/errors.js";
import { idMaker } from "../model/ids.js";
import type { Logger } from "../model/logger.js";
import type { Cancel } from "../model/seams.js";
import { StoreClosedError } from "../store/errors.js";
import type { DbTime, Ended, EventRecord, Target } from "../store/records.js";
import type { Claimed, EventPlace, HeartbeatAnswer, Lane, Part, Store } from "../store/store.js";
import { asClaimed, Claims } from "./claims.js";
import { Committer } from "./committer.js";
import { EndListeners } from "./end-listeners.js";
import { Lease } from "./lease.js";
import { LiveRuns } from "./live-runs.js";
import { TicketPolls } from "./ticket-polls.js";
import { PeerHints } from "./peer-hints.js";
import type {
  RunnerOptions,
  DispatchOptions,
  Started,
  TickOptions,
  TickResult,
} from "./options.js";
import { Slots } from "./slots.js";
import { commitApart } from "./refused-part.js";
import { Turns } from "./turns.js";
import { UnknownWork } from "./unknown-work.js";

/** The runner as a dispatcher sees it: what decides when to look for work. */
export type DispatchedRunner = Pick<
  Runner,
  "serve" | "freeSlots" | "start" | "tick" | "nextWakeInMs" | "nextLookInMs" | "stop" | "logger"
>;

/** A body that runs longer than this gets a row that says so, at most as much later. */
const NOTE_RUNNING_MS = 500;
/** How long a stop waits for the store to take back what was cut off. */
const GIVE_BACK_MS = 5_000;
/** How long a tick waits for deliveries, where its process may sleep afterwards. */
const TICK_WAITS_FOR_HOOKS_MS = 5_000;

/** Many turns at once: claims runs, gives them their leases, commits and looks, and knows where each stands. */
export class Runner implements RunnerHints {
  readonly #store: Store;
  readonly #context: EngineContext;
  readonly #lanes: readonly Lane[];
  #options: RunnerOptions;

  readonly #lease: Lease;
  readonly #committer: Committer;
  readonly #looks: TicketPolls;
  readonly #live: LiveRuns;

  readonly #places: Slots;
  readonly #claims: Claims;
  readonly #turns: Turns;
  readonly #unknownWork: UnknownWork;
  readonly #hooks: Deliverer;

  #lastClaimWasShort = false;
  #noting: Cancel | null = null;

  readonly #finishWaiters: EndListeners;
  /** Of runs that are here. */
  readonly #leaveWaiters: EndListeners;
  readonly #others: PeerHints;

  #dispatcher: ((inMs: number) => void) | null = null;
  #tellAsking: (() => void) | null = null;
  #tellStopped: (() => void) | null = null;
  /** Those under way. */
  #stops = 0;
  #isOver = false;
  #isClosed = false;

  constructor(
    store: Store,
    entries: ReadonlyMap<string, WorkflowEntry>,
    context: EngineContext,
    hooks: Deliverer,
    options: RunnerOptions,
  ) {
    this.#store = store;
    this.#hooks = hooks;
    this.#context = context;
    this.#options = options;
    this.#lanes = [...entries.values()].map(({ name, queue }) => ({ queue, handler: name }));
    const { runtime, logger } = context;
    this.#places = new Slots(runtime.scheduler, {
      taken: () => this.#holdLease(),
      freed: () => this.#placeFreed(),
    });
    const newId = idMaker(runtime);
    this.#lease = new Lease(options.leaseMs, store, runtime, newId, {
      beat: (answer) => this.#heartbeatAnswered(answer),
      died: () => this.#died(),
      failed: (error) => logger.warn("heartbeat.failed", { error: String(error) }),
    });
    const { clock } = runtime;
    this.#claims = new Claims(store, this.#lanes, this.#lease, this.#places, clock, logger);
    this.#unknownWork = new UnknownWork(store, this.#lanes, hooks.names, clock, logger);
    this.#committer = new Committer(store, runtime, options.batch, logger, {
      lost: (run) => this.lost(run),
      refused: (run, part, message) => this.#refused(run, part, message),
      failed: () => this.#lease.lostTouch(),
    });
    this.#looks = new TicketPolls(store, this.#lease, runtime, logger, {
      isLeased: (run) => this.#places.has(run),
      lost: (run) => this.lost(run),
      failed: () => this.#lease.lostTouch(),
    });
    this.#finishWaiters = new EndListeners(runtime.scheduler);
    this.#leaveWaiters = new EndListeners(runtime.scheduler);
    this.#others = new PeerHints(store.hints, runtime, logger, this.#finishWaiters, {
      due: (inMs) => this.#dispatcher?.(inMs),
      changed: (owner, target) => this.#lookAtOwn(owner, target),
    });
    this.#live = new LiveRuns(options.live, ({ workflow, id, runNumber }) => {
      logger.debug("run.evicted", { workflow, id, runNumber });
    });
    const { maxTakeovers } = options;
    const workings = {
      lease: this.#lease,
      claims: this.#claims,
      places: this.#places,
      live: this.#live,
      scheduler: runtime.scheduler,
    };
    const entryOf = ({ workflow }: Claimed): WorkflowEntry =>
      entries.get(workflow) as WorkflowEntry;
    const host: RunHost = {
      commits: this.#committer,
      lease: this.#lease,
      polls: this.#looks,
      turns: this,
    };
    this.#turns = new Turns(store, workings, maxTakeovers, logger, {
      newRun: (claimed, loaded, parts) => new Run(context, host, claimed, loaded, parts),
      begin: (run, claimed, loaded) =>
        run.begin(entryOf(claimed), (loaded ?? claimed).params, claimed.createdAt),
      entered: (run) => {
        if (this.#isStopping) run.drain();
      },
      hasNews: (run) => this.#looks.soon(run),
      displaced: (run) => this.#lost(run, "it was claimed anew"),
    });
  }

  // For dispatchers

  /** Runs in this process may start right away, and `wake` is called when there will be work in so many ms. */
  serve(wake: (inMs: number) => void, options: DispatchOptions = {}): void {
    const { listen = true, asking = null, stopped = null, ...rest } = options;
    if (this.#isOver) throw new StoreClosedError();
    if (this.#dispatcher !== null || this.#isStopping) {
      throw new ValidationError(
        "these workflows have a runner already: await its stop() before another starts",
      );
    }
    this.#options = { ...this.#options, ...rest };
    this.#lease.leaseMs = this.#options.leaseMs;
    this.#dispatcher = wake;
    this.#tellAsking = asking;
    this.#tellStopped = stopped;
    this.#unknownWork.begin();
    this.#others.listen(listen);
  }

  /** About what the database's clock shows. */
  get databaseNow(): DbTime {
    return this.#lease.now;
  }

  /** Where the engine reports: a dispatcher reports there too. */
  get logger(): Logger {
    return this.#context.logger;
  }

  get freeSlots(): number {
    return Math.max(0, this.#options.concurrency - this.#places.used);
  }

  /** The runs that are leased here and now, for people who watch. */
  get runs(): Run[] {
    return [...this.#places.runs];
  }

  get #isStopping(): boolean {
    return this.#stops > 0;
  }

  get isBusy(): boolean {
    return this.#places.isBusy;
  }

  /** Claims what is due, as far as there is room, and starts it. Resolves when the turns have begun. */
  async start(maxInstances = Infinity, budget: StepBudget | null = null): Promise<Started> {
    const limit = Math.min(this.freeSlots, maxInstances);
    if (this.#isStopping || this.#isClosed) return nothing;
    void this.#hooks.look();
    if (limit <= 0) {
      // There may be work that nobody looked for: as after a full claim.
      this.#lastClaimWasShort = false;
      this.#others.overfull();
      return nothing;
    }
    return this.#claims.oneByOne(async () => {
      // A run that ends here must find them registered.
      await this.#hooks.registered();
      if (this.#isStopping || this.#isClosed) return nothing;
      const claimed = await this.#claims.due(limit, () => this.#tellAsking?.());
      this.#lastClaimWasShort = claimed.length < limit;
      this.#others.looked(claimed.length);
      if (!this.#lastClaimWasShort) this.#others.overfull();
      const turns = this.#turns.begin(claimed, budget);
      const done = turns.then(() => {
        return this.#isStopping || this.#isClosed ? undefined : this.#unknownWork.report();
      });
      return { count: claimed.length, done };
    });
  }

  async tick(options: TickOptions = {}): Promise<TickResult> {
    const { maxInstances, maxSteps = Infinity } = options;
    const budget = maxSteps === Infinity ? null : { left: maxSteps };
    const { count, done } = await this.start(maxInstances, budget);
    await done;
    await this.#hooks.quietWithin(TICK_WAITS_FOR_HOOKS_MS);
    return { processed: count, nextWakeInMs: await this.nextWakeInMs() };
  }

  async nextWakeInMs(): Promise<number | null> {
    await this.#hooks.looked();
    return this.#store.nextDueInMs(this.#lanes, this.#hooks.awaited);
  }

  /** Until something falls due, or another runner may turn out to be dead. */
  async nextLookInMs(): Promise<number> {
    const dueInMs = await this.nextWakeInMs();
    return Math.min(dueInMs ?? Infinity, await this.#claims.nextExpiryInMs());
  }

  /** Lets running bodies end, up to `timeoutMs`, and gives everything back. It costs no attempt. */
  async stop(timeoutMs: number): Promise<void> {
    this.#stops += 1;
    this.#dispatcher = null;
    this.#tellStopped?.();
    this.#tellAsking = this.#tellStopped = null;
    try {
      const hadRuns = this.#places.used > 0;
      for (const run of this.#places.runs) run.drain();
      if (!(await this.#places.emptiedWithin(timeoutMs))) {
        for (const run of this.#places.runs) run.giveBack();
        await this.#places.emptiedWithin(GIVE_BACK_MS);
      }
      this.#live.clear();
      await this.#hooks.stop(timeoutMs);
      await this.#lease.retire();
      if (hadRuns) await this.#others.lastWords();
    } finally {
      this.#stops -= 1;
    }
  }

  /** A stop after which nothing is served again. */
  close(timeoutMs: number): Promise<void> {
    this.#isOver = true;
    return this.stop(timeoutMs);
  }

  /** As if the process had died here and now: for tests. */
  crash(): void {
    this.#isClosed = true;
    this.#claims.close();
    this.#committer.close();
    this.#hooks.close();
    this.#lease.abandon();
    for (const run of this.#places.runs) this.#forget(run, "crashed");
    this.#live.clear();
  }

  /** Not awaited: turns may be long. A ticket that could not get its turn is found by the next heartbeat. */
  #beginAlone(claimed: readonly Claimed[]): void {
    this.#turns.begin(claimed, null).catch((error: unknown) => {
      this.#context.logger.error("turn.failed", { error: String(error) });
    });
  }

  // What runs ask for

  /** One timer for all of them: most bodies end before it fires. */
  noteSoon(): void {
    this.#noting ??= this.#context.runtime.scheduler.after(NOTE_RUNNING_MS, () => {
      this.#noting = null;
      const isLeft = Array.from(this.#places.runs, (run) => run.noteRunning(NOTE_RUNNING_MS));
      if (isLeft.includes(true)) this.noteSoon();
    });
  }

  reopen(run: Run): void {
    if (!this.#live.has(run) || this.#places.isArriving(run) || this.#isStopping) return;
    const { iid } = run;
    const arrival = this.#places.expect([{ iid }]);
    this.#claims
      .oneByOne(async () => {
        this.#beginAlone(await this.#claims.reopened(run));
      })
      .catch((error: unknown) => {
        this.#context.logger.warn("reopen.failed", { error: String(error) });
      })
      .finally(() => arrival.over());
  }

  lost(run: Run): void {
    this.#lost(run, "another runner has it, or it was ended");
  }

  ended(run: Run, how: TurnEnd): void {
    this.#leave(run, how === "finished" ? run.end : null);
    if (how === "parked" || how === "paused") this.#live.keep(run);
    // One that is held is "gone", and comes back at its time.
    const wakeAt = how === "parked" || how === "gone" ? run.wakeAt : null;
    if (wakeAt !== null) this.#dispatcher?.(this.#lease.msUntil(wakeAt));
    if (how === "finished") {
      this.#others.ended(run, run.end);
      this.#hooks.posted("onInstanceFinished");
    }
    const { workflow, id, runNumber } = run;
    this.#context.logger.debug(`run.${how}`, { workflow, id, runNumber });
  }

  #leave(run: Run, ended: Ended | null): void {
    this.#looks.forget(run);
    this.#places.leave(run);
    this.#leaveWaiters.tell(run, ended);
  }

  #placeFreed(): void {
    this.#holdLease();
    // A full claim left work behind: there is room for it now.
    if (!this.#lastClaimWasShort) this.#dispatcher?.(0);
  }

  #holdLease(): void {
    this.#lease.hold(!this.#isClosed && this.#places.isBusy);
    if (this.#places.isBusy) return;
    this.#noting?.();
    this.#noting = null;
  }

  #forget(run: Run, reason: string): void {
    run.discard(reason);
    this.#leave(run, null);
  }

  #lost(run: Run, reason: string): void {
    const { workflow, id, runNumber } = run;
    this.#context.logger.debug("run.lost", { workflow, id, runNumber, reason });
    this.#forget(run, reason);
    this.#others.ended(run, null);
  }

  #died(): void {
    this.#context.logger.warn("runner.died", { runs: this.#places.leased });
    for (const run of this.#places.runs) this.#lost(run, "the lease ran out");
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
    this.#places.confirm(owned);
    this.#turns.confirm(owned);
    for (const run of this.#places.runs) {
      const ticket = owned.get(run.iid);
      const isCertain = ticket !== undefined && ticket.claimNumber === run.claimNumber;
      const hasNews = isCertain && (ticket.pauseRequested || ticket.eventCount > run.seenEvents);
      // The heartbeat may be older than the claim, or the claim's answer may be old news: only a look is certain.
      if (!isCertain) this.#looks.doubt(run);
      else if (hasNews) this.#looks.soon(run);
      run.nudge();
    }
    const unknown = this.#claims.unknown(answer.owned);
    if (unknown.length === 0) return;
    this.#claims
      .oneByOne(async () => {
        const adopted = await this.#claims.adopted(unknown);
        // Not awaited: the turns have begun, and may be long.
        if (adopted.length > 0) void this.#turns.load(adopted, null);
      })
      .catch((error: unknown) => {
        this.#context.logger.warn("adopt.failed", { error: String(error) });
      });
  }

  // Hints

  reserve(count: number): ReturnType<RunnerHints["reserve"]> {
    const runner = this.#lease.id;
    const isOpen = this.#dispatcher !== null && !this.#isStopping && !this.#isClosed;
    if (runner === null || !isOpen || !this.#lease.isFresh || !this.#lastClaimWasShort) return null;
    if (this.freeSlots < count) return null;
    this.#places.reserve(count);
    return {
      runner,
      started: (runs) => {
        this.#places.release(runs.length);
        if (runner === this.#lease.id) this.#beginAlone(runs.map(asClaimed));
      },
      release: (places) => this.#places.release(places),
    };
  }

  reserveFor(target: Target): ReturnType<RunnerHints["reserveFor"]> {
    const run = this.#live.find(target);
    const room = run === undefined ? null : this.reserve(1);
    if (run === undefined || room === null) return null;
    const { runner } = room;
    return {
      lease: { runner, claimNumber: run.claimNumber },
      started: (claimed) => {
        room.release(1);
        if (runner === this.#lease.id) this.#beginAlone([claimed]);
      },
      release: () => room.release(1),
    };
  }

  wake(): void {
    this.#dispatcher?.(0);
    if (this.#dispatcher === null || this.freeSlots === 0) void this.#others.due();
    void this.#hooks.look();
  }

  sent(event: EventRecord, { iid, runNumber }: EventPlace): boolean {
    const run = this.#places.get(iid) ?? this.#live.get(iid);
    return run !== undefined && run.runNumber === runNumber && run.receive(event);
  }

  poke(owner: string, target: Target): void {
    if (owner === this.#lease.id) this.#lookAtOwn(owner, target);
    else this.#others.changed(owner, target);
  }

  #lookAtOwn(owner: string, target: Target): void {
    const run = owner === this.#lease.id ? this.#places.find(target) : undefined;
    // It may have been paused or ended: who said so has heard that it is, and no body starts after that.
    if (run !== undefined) this.#looks.doubt(run);
  }

  isHere(target: Target): boolean {
    return this.#places.find(target) !== undefined;
  }

  left(target: Target, ms: number, signal?: Signal): Promise<Ended | null> {
    return this.#leaveWaiters.wait(target, ms, signal);
  }

  ear(target: Target): EndListener {
    return this.#finishWaiters.ear(target);
  }

  askOthers(target: Target): boolean {
    return this.isHere(target) || this.#others.ask(target);
  }

  tellEnd(target: Target): void {
    this.#others.ended(target, null);
  }
}

const nothing: Started = { count: 0, done: Promise.resolve() };

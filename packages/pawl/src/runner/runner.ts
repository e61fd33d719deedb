import type { WorkflowEntry } from "../authoring/entry.js";
import type { EngineContext, StepBudget } from "../engine/context.js";
import type { Run } from "../engine/run.js";
import type { Deliverer } from "../hooks/deliverer.js";
import { ValidationError } from "../model/errors.js";
import { idMaker } from "../model/ids.js";
import type { Invariants } from "../model/invariants.js";
import type { Logger } from "../model/logger.js";
import type { Runtime } from "../model/seams.js";
import { StoreClosedError } from "../store/errors.js";
import type { Notices } from "../store/notices.js";
import type { DbTime } from "../store/records.js";
import type { HeartbeatAnswer, Lane, Store } from "../store/store.js";
import { Claims } from "./claims.js";
import { Committer } from "./committer.js";
import { Dispatch } from "./dispatch.js";
import { EndListeners } from "./end-listeners.js";
import { Lease } from "./lease.js";
import { LiveRuns } from "./live-runs.js";
import { LocalEnds } from "./local-ends.js";
import { LocalStarts } from "./local-starts.js";
import type {
  DispatchOptions,
  RunnerOptions,
  Started,
  TickOptions,
  TickResult,
} from "./options.js";
import { PeerHints } from "./peer-hints.js";
import { Slots } from "./slots.js";
import { TicketPolls } from "./ticket-polls.js";
import { Turns } from "./turns.js";
import { UnknownWork } from "./unknown-work.js";

/** The runner as a dispatcher sees it, which decides when to look for work. */
export type DispatchedRunner = Pick<
  Runner,
  "serve" | "freeSlots" | "start" | "tick" | "nextWakeInMs" | "nextLookInMs" | "stop" | "logger"
>;

/** How long a stop waits for the store to take back the runs whose bodies were cut off. */
const GIVE_BACK_MS = 5_000;
/** How long a tick waits for deliveries, where its process may sleep afterwards. */
const TICK_WAITS_FOR_HOOKS_MS = 5_000;

export type RunnerContext = {
  readonly runtime: Runtime;
  readonly logger: Logger;
  readonly invariants: Invariants;
  readonly notices: Notices;
  readonly hooks: Deliverer;
  /** The shared context of all runs. It is asked for when a run is made: its bindings lead back to this runner. */
  readonly engine: () => EngineContext;
};

/** Many turns at once, as dispatchers see them: finds work, keeps the lease alive, and gives everything back when it stops. */
export class Runner {
  /** For callers of this process. */
  readonly starts: LocalStarts;
  readonly ends: LocalEnds;
  readonly logger: Logger;

  readonly #store: Store;
  readonly #lanes: readonly Lane[];
  #options: RunnerOptions;
  readonly #hooks: Deliverer;

  readonly #dispatch = new Dispatch();
  readonly #lease: Lease;
  readonly #slots: Slots;
  readonly #live: LiveRuns;
  readonly #claims: Claims;
  readonly #commits: Committer;
  readonly #polls: TicketPolls;
  readonly #turns: Turns;
  readonly #peers: PeerHints;
  readonly #unknownWork: UnknownWork;

  #tellAsking: (() => void) | null = null;
  #tellStopped: (() => void) | null = null;
  /** The stops that are under way. */
  #stops = 0;
  #isOver = false;
  #isCrashed = false;

  constructor(
    store: Store,
    entries: ReadonlyMap<string, WorkflowEntry>,
    context: RunnerContext,
    options: RunnerOptions,
  ) {
    const { runtime, logger, invariants, notices, hooks } = context;
    const { scheduler, clock } = runtime;
    this.#store = store;
    this.#options = options;
    this.#hooks = hooks;
    this.logger = logger;
    this.#lanes = Array.from(entries.values(), ({ name, queue }) => ({ queue, handler: name }));
    const dispatch = this.#dispatch;
    const lostTouch = (): void => this.#lease.lostTouch();
    const lost = (run: Run): void => this.#turns.lost(run);

    this.#lease = new Lease(options.leaseMs, store, runtime, idMaker(runtime), {
      beat: (answer) => this.#heartbeatAnswered(answer),
      died: () => this.#died(),
      failed: (error) => logger.warn("heartbeat.failed", { error: String(error) }),
    });
    const lease = this.#lease;
    const slots = new Slots(options.concurrency, lease, dispatch, scheduler, invariants);
    const live = new LiveRuns(options.live, ({ workflow, id, runNumber }) => {
      logger.debug("run.evicted", { workflow, id, runNumber });
    });
    const claims = new Claims(store, this.#lanes, lease, slots, clock, logger);
    const commits = new Committer(
      store,
      runtime,
      options.batch,
      { logger, invariants, notices },
      {
        lost,
        refused: (run, part, message) => this.#turns.refused(run, part, message),
        failed: lostTouch,
      },
    );
    const polls = new TicketPolls(store, lease, slots, runtime, logger, {
      lost,
      failed: lostTouch,
    });
    const ends = new EndListeners(scheduler);
    const leaves = new EndListeners(scheduler);
    const turns = new Turns(
      store,
      entries,
      context.engine,
      { lease, claims, slots, live, polls, commits, dispatch, leaves },
      notices,
      options,
      scheduler,
      logger,
    );
    const peers = new PeerHints(store.hints, runtime, logger, ends, {
      due: (inMs) => dispatch.soon(inMs),
      changed: (owner, target) => this.starts.doubt(owner, target),
    });
    notices.ended.subscribe(ends.hear);
    if (store.hints !== undefined) notices.ended.subscribe((target) => peers.ended(target));

    this.#slots = slots;
    this.#live = live;
    this.#claims = claims;
    this.#commits = commits;
    this.#polls = polls;
    this.#turns = turns;
    this.#peers = peers;
    this.#unknownWork = new UnknownWork(store, this.#lanes, hooks.names, clock, logger);
    this.starts = new LocalStarts({ lease, slots, live, dispatch, turns, polls, peers, hooks });
    this.ends = new LocalEnds(slots, leaves, ends, peers);
  }

  /** From now on runs may start in this process right away, and `wake` is called when there will be work in so many ms. */
  serve(wake: (inMs: number) => void, options: DispatchOptions = {}): void {
    const { listen = true, asking = null, stopped = null, ...rest } = options;
    if (this.#isOver) throw new StoreClosedError();
    if (this.#dispatch.isServing || this.#isStopping) {
      throw new ValidationError(
        "these workflows have a runner already: await its stop() before another starts",
      );
    }
    this.#options = { ...this.#options, ...rest };
    this.#lease.leaseMs = this.#options.leaseMs;
    this.#slots.concurrency = this.#options.concurrency;
    this.#dispatch.serve(wake);
    this.#tellAsking = asking;
    this.#tellStopped = stopped;
    this.#unknownWork.begin();
    this.#peers.listen(listen);
  }

  /** The time of the database's clock, about. */
  get databaseNow(): DbTime {
    return this.#lease.now;
  }

  get freeSlots(): number {
    return this.#slots.free;
  }

  /** The runs that are leased here and now, for people who watch. */
  get runs(): Run[] {
    return [...this.#slots.runs];
  }

  get isBusy(): boolean {
    return this.#slots.isBusy;
  }

  get #isStopping(): boolean {
    return this.#stops > 0;
  }

  get #mayWork(): boolean {
    return !this.#isStopping && !this.#isCrashed;
  }

  /** Claims due runs, as far as there are slots, and starts them. Resolves when the turns have begun. */
  async start(maxInstances = Infinity, budget: StepBudget | null = null): Promise<Started> {
    const limit = Math.min(this.freeSlots, maxInstances);
    if (!this.#mayWork) return nothing;
    void this.#hooks.look();
    if (limit <= 0) {
      // There may be work that nobody looked for: as after a full claim.
      this.#dispatch.lastClaimWasShort = false;
      this.#peers.overfull();
      return nothing;
    }
    return this.#claims.oneByOne(async () => {
      // A run that ends here must find its hooks registered.
      await this.#hooks.registered();
      if (!this.#mayWork) return nothing;
      const claimed = await this.#claims.due(limit, () => this.#tellAsking?.());
      this.#dispatch.lastClaimWasShort = claimed.length < limit;
      this.#peers.looked(claimed.length);
      if (claimed.length === limit) this.#peers.overfull();
      const turns = this.#turns.begin(claimed, budget);
      const done = turns.then(() => (this.#mayWork ? this.#unknownWork.report() : undefined));
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

  /** How long until something falls due, or another runner may turn out to be dead. */
  async nextLookInMs(): Promise<number> {
    const dueInMs = await this.nextWakeInMs();
    return Math.min(dueInMs ?? Infinity, await this.#claims.nextExpiryInMs());
  }

  /** Lets running bodies end, up to `timeoutMs`, and gives everything back. It costs no attempt. */
  async stop(timeoutMs: number): Promise<void> {
    this.#stops += 1;
    this.#turns.isStopping = true;
    this.#dispatch.stop();
    this.#tellStopped?.();
    this.#tellAsking = this.#tellStopped = null;
    try {
      const hadRuns = this.#slots.isBusy || this.#slots.reserved > 0;
      for (const run of this.#slots.runs) run.drain();
      if (!(await this.#slots.emptiedWithin(timeoutMs))) {
        for (const run of this.#slots.runs) run.giveBack();
        await this.#slots.emptiedWithin(GIVE_BACK_MS);
      }
      this.#live.clear();
      await this.#hooks.stop(timeoutMs);
      await this.#lease.retire();
      if (hadRuns) await this.#peers.lastWords();
    } finally {
      this.#stops -= 1;
      this.#turns.isStopping = this.#isStopping;
    }
  }

  /** A stop after which nothing is served again. */
  close(timeoutMs: number): Promise<void> {
    this.#isOver = true;
    return this.stop(timeoutMs);
  }

  /** Acts as if the process had died here and now: for tests. */
  crash(): void {
    this.#isCrashed = true;
    this.#claims.close();
    this.#commits.close();
    this.#hooks.close();
    this.#lease.abandon();
    for (const run of this.#slots.runs) this.#turns.forget(run, "crashed");
    this.#live.clear();
  }

  #died(): void {
    this.logger.warn("runner.died", { runs: this.#slots.leased });
    this.#turns.lostAll();
  }

  #heartbeatAnswered(answer: Extract<HeartbeatAnswer, { kind: "ok" }>): void {
    const owned = new Map(answer.owned.map((ticket) => [ticket.iid, ticket]));
    this.#slots.confirm(owned);
    this.#turns.confirm(owned);
    for (const run of this.#slots.runs) {
      const ticket = owned.get(run.iid);
      const isCertain = ticket !== undefined && ticket.claimNumber === run.claimNumber;
      const hasNews = isCertain && (ticket.pauseRequested || ticket.eventCount > run.seenEvents);
      // The heartbeat may be older than the claim, or the claim's answer may be old news: only a poll is certain.
      if (!isCertain) this.#polls.doubt(run);
      else if (hasNews) this.#polls.soon(run);
      run.nudge();
    }
    const unknown = this.#claims.unknown(answer.owned);
    if (unknown.length === 0) return;
    this.#claims
      .oneByOne(async () => {
        const adopted = await this.#claims.adopted(unknown);
        // Nobody waits for these turns, which may be long.
        if (adopted.length > 0) void this.#turns.load(adopted, null);
      })
      .catch((error: unknown) => {
        this.logger.warn("adopt.failed", { error: String(error) });
      });
  }
}

const nothing: Started = { count: 0, done: Promise.resolve() };

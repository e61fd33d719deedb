import type { WorkflowEntry } from "../authoring/entry.js";
import type { StepBudget } from "../engine/context.js";
import type { Run } from "../engine/run.js";
import type { Deliverer } from "../hooks/deliverer.js";
import { ValidationError } from "../model/errors.js";
import type { Logger } from "../model/logger.js";
import { StoreClosedError } from "../store/errors.js";
import type { DbTime } from "../store/records.js";
import type { HeartbeatAnswer, Lane, Store } from "../store/store.js";
import type { LocalEnds } from "./local-ends.js";
import type { LocalStarts } from "./local-starts.js";
import type {
  DispatchOptions,
  RunnerOptions,
  Started,
  TickOptions,
  TickResult,
} from "./options.js";
import { runnerComponents, type RunnerContext, type RunnerComponents } from "./components.js";

/** The runner as a dispatcher sees it. The dispatcher decides when to look for work. */
export type DispatchedRunner = Pick<
  Runner,
  "serve" | "freeSlots" | "start" | "tick" | "nextWakeInMs" | "nextLookInMs" | "stop" | "logger"
>;

/** How long a stop waits for the store to take back the runs whose bodies were cut off. */
const GIVE_BACK_MS = 5_000;
/** How long a tick waits for deliveries, where its process may sleep afterwards. */
const TICK_WAITS_FOR_HOOKS_MS = 5_000;

/**
 * Executes many turns at once, for a dispatcher. It finds work, keeps the lease alive, and gives everything back when
 * it stops.
 */
export class Runner {
  /** For callers of this process. */
  readonly starts: LocalStarts;
  readonly ends: LocalEnds;
  readonly logger: Logger;

  readonly #store: Store;
  readonly #lanes: readonly Lane[];
  #options: RunnerOptions;
  readonly #hooks: Deliverer;

  readonly #components: RunnerComponents;

  #tellAsking: (() => void) | null = null;
  #tellStopped: (() => void) | null = null;
  /** The number of stops that are under way. */
  #stops = 0;
  #isOver = false;
  #isCrashed = false;

  constructor(
    store: Store,
    entries: ReadonlyMap<string, WorkflowEntry>,
    context: RunnerContext,
    options: RunnerOptions,
  ) {
    const { logger, hooks } = context;
    this.#store = store;
    this.#options = options;
    this.#hooks = hooks;
    this.logger = logger;
    this.#lanes = Array.from(entries.values(), ({ name, queue }) => ({ queue, handler: name }));
    this.#components = runnerComponents(store, entries, this.#lanes, context, options, {
      beat: (answer) => this.#heartbeatAnswered(answer),
      died: () => this.#died(),
      failed: (error) => logger.warn("heartbeat.failed", { error: String(error) }),
    });
    this.starts = this.#components.starts;
    this.ends = this.#components.ends;
  }

  /**
   * Begins to serve. From now on, runs may start in this process right away, and `wake` is called when there will be
   * work in so many milliseconds.
   */
  serve(wake: (inMs: number) => void, options: DispatchOptions = {}): void {
    const { listen = true, asking = null, stopped = null, ...rest } = options;
    if (this.#isOver) throw new StoreClosedError();
    if (this.#components.dispatch.isServing || this.#isStopping) {
      throw new ValidationError(
        "these workflows have a runner already: await its stop() before another starts",
      );
    }
    this.#options = { ...this.#options, ...rest };
    this.#components.lease.leaseMs = this.#options.leaseMs;
    this.#components.slots.concurrency = this.#options.concurrency;
    this.#components.dispatch.serve(wake);
    this.#tellAsking = asking;
    this.#tellStopped = stopped;
    this.#components.unknownWork.begin();
    this.#components.peers.listen(listen);
  }

  /** The approximate time of the database's clock. */
  get databaseNow(): DbTime {
    return this.#components.lease.now;
  }

  get freeSlots(): number {
    return this.#components.slots.free;
  }

  /** The runs that are leased here and now, for people who watch. */
  get runs(): Run[] {
    return [...this.#components.slots.runs];
  }

  get isBusy(): boolean {
    return this.#components.slots.isBusy;
  }

  get #isStopping(): boolean {
    return this.#stops > 0;
  }

  get #mayWork(): boolean {
    return !this.#isStopping && !this.#isCrashed;
  }

  /** Claims due runs, as many as there are free slots, and starts them. Resolves when the turns have begun. */
  async start(maxInstances = Infinity, budget: StepBudget | null = null): Promise<Started> {
    const limit = Math.min(this.freeSlots, maxInstances);
    if (!this.#mayWork) return nothing;
    void this.#hooks.look();
    if (limit <= 0) {
      // As after a full claim, there may be work that nobody has looked for.
      this.#components.dispatch.claimedAllDue = false;
      this.#components.peers.overfull();
      return nothing;
    }
    return this.#components.claims.oneByOne(async () => {
      // A run that ends here must find its hooks registered.
      await this.#hooks.registered();
      if (!this.#mayWork) return nothing;
      const taken = await this.#components.claims.claimDue(limit, () => this.#tellAsking?.());
      const { claimed } = taken;
      this.#components.dispatch.claimedAllDue = claimed.length < limit;
      this.#components.peers.looked(claimed.length);
      if (claimed.length === limit) this.#components.peers.overfull();
      const turns = this.#components.turns.begin(taken, budget);
      const done = turns.then(() =>
        this.#mayWork ? this.#components.unknownWork.report() : undefined,
      );
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

  /** Returns how long it is until something falls due, or until another runner may turn out to be dead. */
  async nextLookInMs(): Promise<number> {
    const dueInMs = await this.nextWakeInMs();
    return Math.min(dueInMs ?? Infinity, await this.#components.claims.nextExpiryInMs());
  }

  /**
   * Stops the runner. Running bodies may end, up to `timeoutMs`, and then everything is given back. This costs no
   * attempt.
   */
  async stop(timeoutMs: number): Promise<void> {
    this.#stops += 1;
    this.#components.turns.isStopping = true;
    this.#components.dispatch.stop();
    this.#tellStopped?.();
    this.#tellAsking = this.#tellStopped = null;
    try {
      const hadRuns = this.#components.slots.isBusy || this.#components.slots.reserved > 0;
      for (const run of this.#components.slots.runs) run.drain();
      if (!(await this.#components.slots.emptiedWithin(timeoutMs))) {
        for (const run of this.#components.slots.runs) run.giveBack();
        await this.#components.slots.emptiedWithin(GIVE_BACK_MS);
      }
      this.#components.live.clear();
      await this.#hooks.stop(timeoutMs);
      await this.#components.lease.retire();
      if (hadRuns) await this.#components.peers.lastWords();
    } finally {
      this.#stops -= 1;
      this.#components.turns.isStopping = this.#isStopping;
    }
  }

  /** Stops the runner for good: nothing is served again. */
  close(timeoutMs: number): Promise<void> {
    this.#isOver = true;
    return this.stop(timeoutMs);
  }

  /** Acts as if the process had died here and now, for tests. */
  crash(): void {
    this.#isCrashed = true;
    this.#components.claims.close();
    this.#components.commits.close();
    this.#hooks.close();
    this.#components.lease.abandon();
    for (const run of this.#components.slots.runs) this.#components.turns.forget(run, "crashed");
    this.#components.live.clear();
  }

  #died(): void {
    this.logger.warn("runner.died", { runs: this.#components.slots.leased });
    this.#components.turns.lostAll();
  }

  #heartbeatAnswered(answer: Extract<HeartbeatAnswer, { kind: "ok" }>): void {
    const owned = new Map(answer.owned.map((ticket) => [ticket.iid, ticket]));
    this.#components.slots.confirm(owned);
    this.#components.turns.confirm(owned);
    for (const run of this.#components.slots.runs) {
      const ticket = owned.get(run.iid);
      const isCertain = ticket !== undefined && ticket.claimNumber === run.claimNumber;
      const hasNews = isCertain && (ticket.pauseRequested || ticket.eventCount > run.seenEvents);
      // The heartbeat may be older than the claim, or the claim's answer may be old news. Only a poll is certain.
      if (!isCertain) this.#components.polls.doubt(run);
      else if (hasNews) this.#components.polls.soon(run);
      run.nudge();
    }
    const unknown = this.#components.claims.unknownAmong(answer.owned);
    if (unknown.length === 0) return;
    this.#components.claims
      .oneByOne(async () => {
        const adopted = await this.#components.claims.adopt(unknown);
        // Nobody waits for these turns, because they may be long.
        if (adopted.length > 0)
          void this.#components.turns.load({ claimed: adopted, isLate: false }, null);
      })
      .catch((error: unknown) => {
        this.logger.warn("adopt.failed", { error: String(error) });
      });
  }
}

const nothing: Started = { count: 0, done: Promise.resolve() };

import type { WorkflowEntry } from "../authoring/entry.js";
import type { EngineContext, RunHost, StepBudget, TurnEnd } from "../engine/context.js";
import { Run } from "../engine/run.js";
import type { Logger } from "../model/logger.js";
import type { Cancel, Runtime, Scheduler } from "../model/seams.js";
import type { Notices } from "../store/notices.js";
import type { Claimed, LoadedRun, Store } from "../store/store.js";
import type { Part } from "../store/part.js";
import type { Claims, TakenTickets } from "./claims.js";
import type { Committer } from "./committer.js";
import type { Dispatch } from "./dispatch.js";
import type { EndListeners } from "./end-listeners.js";
import type { Lease } from "./lease.js";
import type { LiveRuns } from "./live-runs.js";
import { commitApart } from "./refused-part.js";
import type { Slots } from "./slots.js";
import { Suspects } from "./suspects.js";
import type { TicketPolls } from "./ticket-polls.js";

/**
 * A body that runs longer than this gets a row that says so. The row comes at most twice this long after the start of
 * the body.
 */
const NOTE_RUNNING_MS = 500;

type TurnComponents = {
  readonly lease: Lease;
  readonly claims: Claims;
  readonly slots: Slots;
  readonly live: LiveRuns;
  readonly polls: TicketPolls;
  readonly commits: Committer;
  readonly dispatch: Dispatch;
  /** The listeners that are told when a run leaves its slot. */
  readonly slotListeners: EndListeners;
};

type TurnContext = {
  readonly runtime: Runtime;
  readonly logger: Logger;
  readonly notices: Notices;
  /**
   * Returns the context that all runs share. It is called when the first run is made, because the bindings of runs lead
   * back to this runner.
   */
  readonly engine: () => EngineContext;
};

/**
 * Begins and ends the turns of claimed runs. A run goes on as it stands in memory, is replayed from its history, or
 * begins from the start.
 */
export class Turns {
  readonly #store: Store;
  readonly #entries: ReadonlyMap<string, WorkflowEntry>;
  readonly #engine: () => EngineContext;
  #context: EngineContext | null = null;
  readonly #components: TurnComponents;
  readonly #host: RunHost;
  readonly #suspects: Suspects;
  readonly #notices: Notices;
  readonly #scheduler: Scheduler;
  readonly #logger: Logger;
  #noting: Cancel | null = null;
  /** Whether runs that get their turn are drained at once. */
  isStopping = false;

  constructor(
    store: Store,
    entries: ReadonlyMap<string, WorkflowEntry>,
    components: TurnComponents,
    { engine, notices, runtime, logger }: TurnContext,
    maxTakeovers: number,
  ) {
    this.#store = store;
    this.#entries = entries;
    this.#engine = engine;
    this.#components = components;
    this.#notices = notices;
    this.#scheduler = runtime.scheduler;
    this.#logger = logger;
    const { commits, lease, polls } = components;
    this.#host = { commits, lease, polls, turns: this };
    this.#suspects = new Suspects(store, components, maxTakeovers, runtime.scheduler, logger);
  }

  // How a turn begins.

  /** Begins the turns of claimed runs. Resolves when all of these turns are over. */
  async begin({ claimed, isLate }: TakenTickets, budget: StepBudget | null): Promise<void> {
    const turns: Promise<void>[] = [];
    const toLoad: Claimed[] = [];
    for (const each of claimed) {
      // Also for a new run: a restart leaves the old one in memory.
      const live = this.#components.live.take(each);
      if (live !== null) turns.push(this.#resume(live, each, isLate, budget));
      else if (each.resuming && !this.#suspects.isHopeless(each)) toLoad.push(each);
      else turns.push(this.#enterNew(each, null, isLate, budget));
    }
    if (toLoad.length > 0) turns.push(this.load({ claimed: toLoad, isLate }, budget));
    await Promise.all(turns);
  }

  /**
   * Begins turns that nobody waits for, because they may be long. The next heartbeat finds a ticket that could not get
   * its turn.
   */
  beginAlone(taken: TakenTickets): void {
    this.begin(taken, null).catch((error: unknown) => {
      this.#logger.error("turn.failed", { error: String(error) });
    });
  }

  /**
   * Loads histories and begins the turns of their runs: suspects one by one, the others together. Resolves when all of
   * these turns are over.
   */
  async load({ claimed, isLate }: TakenTickets, budget: StepBudget | null): Promise<void> {
    const turns: Promise<void>[] = [];
    const others: Claimed[] = [];
    for (const given of claimed) {
      const each = this.#suspects.asItWasClaimed(given);
      if (!this.#suspects.isSuspect(each)) others.push(each);
      else turns.push(this.#suspects.alone(each, () => this.#loadAll([each], isLate, budget)));
    }
    if (others.length > 0) turns.push(this.#loadAll(others, isLate, budget));
    await Promise.all(turns);
  }

  /** Loads histories in a later read than the claim. In one read, the last owner's final commit could be missed. */
  async #loadAll(
    claimed: readonly Claimed[],
    isLate: boolean,
    budget: StepBudget | null,
  ): Promise<void> {
    const { slots, lease, claims } = this.#components;
    const arrival = slots.expect(claimed);
    const runner = lease.id;
    try {
      const loaded = await this.#store.load(
        // A dead owner did not say how much it had written.
        claimed.map((each) => ({ ...each, takenOver: each.takeovers > 0 })),
      );
      const byIid = new Map(loaded.map((run) => [run.iid, run]));
      if (!claims.isOurs(runner)) return;
      const turns = claimed
        .filter((each) => arrival.isExpected(each))
        .map((each) => this.#enterNew(each, byIid.get(each.iid) ?? null, isLate, budget));
      arrival.over();
      await Promise.all(turns);
    } catch (error) {
      // The tickets stay ours. The next heartbeat finds them, and their histories are loaded again.
      this.#logger.warn("load.failed", { runs: claimed.length, error: String(error) });
    } finally {
      arrival.over();
      this.#stopNoting();
    }
  }

  /** Continues a live run. It needs no replay: only events that came meanwhile have to be fetched. */
  #resume(run: Run, claimed: Claimed, isLate: boolean, budget: StepBudget | null): Promise<void> {
    const turn = this.#enter(run, isLate, budget);
    const hasUnseenEvents = claimed.eventCount > run.seenEvents;
    run.resume(claimed, hasUnseenEvents);
    if (hasUnseenEvents) this.#components.polls.soon(run);
    return turn;
  }

  #enterNew(
    claimed: Claimed,
    loaded: LoadedRun | null,
    isLate: boolean,
    budget: StepBudget | null,
  ): Promise<void> {
    const wasTakenOver = claimed.takeovers > 0;
    const partsSent = wasTakenOver ? this.#suspects.takePartsSent(claimed) : 0;
    const isHopeless = wasTakenOver && this.#suspects.isHopeless(claimed);
    // The end of a hopeless run charges no step.
    const given = isHopeless ? { ...claimed, takeovers: 0 } : claimed;
    const context = (this.#context ??= this.#engine());
    const run = new Run(context, this.#host, given, loaded, partsSent);
    const turn = this.#enter(run, isLate, budget);
    const entry = this.#entries.get(claimed.workflow) as WorkflowEntry;
    if (isHopeless) run.endAsCrashed(claimed.takeovers);
    else run.begin(entry, loaded === null ? claimed.params : loaded.params, claimed.createdAt);
    return turn;
  }

  /** Gives a slot to a run that has its ticket. Resolves when the turn is over. */
  #enter(run: Run, isLate: boolean, budget: StepBudget | null): Promise<void> {
    // A restarted run can come here before the poll that tells that its old claim is lost.
    const former = this.#components.slots.get(run.iid);
    if (former !== undefined) this.#lose(former, "it was claimed anew");
    run.budget = budget;
    const turn = this.#components.slots.enter(run);
    // A run that may have ended since starts no body before a poll has found its ticket.
    if (isLate) this.#components.polls.doubt(run);
    if (this.isStopping) run.drain();
    return turn;
  }

  /** Reopens a live run whose code called a step before the run was due. */
  reopen(run: Run): void {
    const { live, slots, claims } = this.#components;
    if (!live.has(run) || slots.isArriving(run) || this.isStopping) return;
    const { iid } = run;
    const arrival = slots.expect([{ iid }]);
    claims
      .oneByOne(async () => this.beginAlone(await claims.reopen(run)))
      .catch((error: unknown) => {
        this.#logger.warn("reopen.failed", { error: String(error) });
      })
      .finally(() => {
        arrival.over();
        this.#stopNoting();
      });
  }

  /** Takes the tickets that a heartbeat found ours. */
  confirm(owned: ReadonlyMap<string, { readonly claimNumber: number }>): void {
    this.#suspects.confirm(owned);
  }

  // While a turn lasts.

  /**
   * Starts the timer that notes long-running bodies. There is one for all of them, because most bodies end before it
   * fires.
   */
  noteSoon(): void {
    this.#noting ??= this.#scheduler.after(NOTE_RUNNING_MS, () => {
      this.#noting = null;
      const isLeft = Array.from(this.#components.slots.runs, (run) =>
        run.noteRunning(NOTE_RUNNING_MS),
      );
      if (isLeft.includes(true)) this.noteSoon();
    });
  }

  // How a turn ends.

  ended(run: Run, how: TurnEnd): void {
    const { live, dispatch, lease, slotListeners } = this.#components;
    const end = how === "finished" ? run.end : null;
    this.#leave(run);
    slotListeners.tell(run.key, end);
    if (how === "parked" || how === "paused") live.keep(run);
    // A held run is "gone", but it comes back when its hold ends.
    const wakeAt = how === "parked" || how === "gone" ? run.wakeAt : null;
    if (wakeAt !== null) dispatch.soon(lease.msUntil(wakeAt));
    if (how === "finished") {
      this.#notices.ended.tell(run, end);
      const { posted } = this.#notices;
      if (posted.isHeard) posted.tell("onInstanceFinished", undefined);
    }
    const { workflow, id, runNumber } = run;
    this.#logger.debug(`run.${how}`, { workflow, id, runNumber });
  }

  lost(run: Run): void {
    this.#lose(run, "another runner has it, or it was ended");
  }

  /** Gives up all runs, because the lease ran out and others may have taken everything. */
  lostAll(): void {
    for (const run of this.#components.slots.runs) this.#lose(run, "the lease ran out");
  }

  /** Handles a part whose data the database refuses. */
  refused(run: Run, part: Part, message: string): void {
    const { workflow, id, runNumber } = run;
    this.#logger.error("commit.refused", { workflow, id, runNumber, message });
    this.forget(run, message);
    commitApart(this.#store, part, message).then(
      () => this.#notices.committed.tell([part], undefined),
      (error: unknown) =>
        this.#logger.error("commit.refused", { workflow, id, error: String(error) }),
    );
  }

  #lose(run: Run, reason: string): void {
    const { workflow, id, runNumber } = run;
    this.#logger.debug("run.lost", { workflow, id, runNumber, reason });
    this.forget(run, reason);
    this.#notices.ended.tell(run, null);
  }

  forget(run: Run, reason: string): void {
    run.discard(reason);
    this.#leave(run);
    this.#components.slotListeners.tell(run.key, null);
  }

  #leave(run: Run): void {
    const { polls, slots } = this.#components;
    polls.forget(run);
    slots.leave(run);
    this.#stopNoting();
  }

  /** An idle process has no bodies to note, and a timer would keep it awake. */
  #stopNoting(): void {
    if (this.#noting === null || this.#components.slots.isBusy) return;
    this.#noting();
    this.#noting = null;
  }
}

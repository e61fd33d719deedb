import type { StepBudget } from "../engine/context.js";
import type { Run } from "../engine/run.js";
import type { Logger } from "../model/logger.js";
import type { Scheduler } from "../model/seams.js";
import type { Claimed, LoadedRun, Part, Store } from "../store/store.js";
import type { Claims } from "./claims.js";
import type { Lease } from "./lease.js";
import type { LiveRuns } from "./live-runs.js";
import type { Slots } from "./slots.js";

/** From so many takeovers on, a run may be what kills its owners. */
const SUSPECT_TAKEOVERS = 2;
const COUNT_AGAIN_MS = 100;

type TurnParts = {
  readonly lease: Pick<Lease, "id">;
  readonly claims: Pick<Claims, "isOurs">;
  readonly places: Slots;
  readonly live: LiveRuns;
  readonly scheduler: Scheduler;
};

export interface TurnEvents {
  /** `parts`: how many were sent under this claim. */
  newRun(claimed: Claimed, loaded: LoadedRun | null, parts: number): Run;
  begin(run: Run, claimed: Claimed, loaded: LoadedRun | null): void;
  entered(run: Run): void;
  /** Events came while it was parked. */
  hasNews(run: Run): void;
  /** Its ticket was claimed anew, for another run. */
  displaced(run: Run): void;
}

type Sent = {
  readonly claim: Pick<Claimed, "runNumber" | "claimNumber" | "takeovers" | "takenOver">;
  readonly parts: number;
};

/** How a claimed run gets its turn: as it stands in memory, from its history, or from the start. */
export class Turns {
  readonly #store: Pick<Store, "load" | "commit">;
  readonly #lease: TurnParts["lease"];
  readonly #claims: TurnParts["claims"];
  readonly #places: Slots;
  readonly #live: LiveRuns;
  readonly #scheduler: Scheduler;
  readonly #maxTakeovers: number;
  readonly #logger: Logger;
  readonly #events: TurnEvents;
  #suspectTurn: Promise<void> = Promise.resolve();
  /** That have their turn, or wait for it. */
  #suspects = 0;
  /** What was sent for them under the claims of this runner, by iid: their runs count on from there. */
  readonly #sent = new Map<string, Sent>();

  constructor(
    store: Pick<Store, "load" | "commit">,
    { lease, claims, places, live, scheduler }: TurnParts,
    maxTakeovers: number,
    logger: Logger,
    events: TurnEvents,
  ) {
    this.#store = store;
    this.#lease = lease;
    this.#claims = claims;
    this.#places = places;
    this.#live = live;
    this.#scheduler = scheduler;
    this.#maxTakeovers = maxTakeovers;
    this.#logger = logger;
    this.#events = events;
  }

  /** Resolves when all of these turns are over. */
  async begin(claimed: readonly Claimed[], budget: StepBudget | null): Promise<void> {
    const turns: Promise<void>[] = [];
    const toLoad: Claimed[] = [];
    for (const each of claimed) {
      const live = this.#live.take(each);
      if (live !== null) turns.push(this.#goOn(live, each, budget));
      else if (this.#isHopeless(each) || !each.resuming) {
        turns.push(this.#enterNew(each, null, budget));
      } else toLoad.push(each);
    }
    if (toLoad.length > 0) turns.push(this.load(toLoad, budget));
    await Promise.all(turns);
  }

  /** Those that may kill their owners come one by one. */
  async load(claimed: readonly Claimed[], budget: StepBudget | null): Promise<void> {
    const all = claimed.map((each) => this.#asItWasClaimed(each));
    const others = all.filter((each) => !this.#isSuspect(each));
    const turns = all
      .filter((each) => this.#isSuspect(each))
      .map((each) => this.#loadAlone(each, budget));
    if (others.length > 0) turns.push(this.#loadAll(others, budget));
    await Promise.all(turns);
  }

  /** A heartbeat says what is ours: what was sent for others is of no use any more. */
  confirm(owned: ReadonlyMap<string, { readonly claimNumber: number }>): void {
    for (const [iid, { claim }] of this.#sent) {
      const isOurs = owned.get(iid)?.claimNumber === claim.claimNumber;
      // The heartbeat may be older than the claim; then the run is known here.
      if (!isOurs && !this.#places.isKnown({ iid })) this.#sent.delete(iid);
    }
  }

  /** A live run needs no replay; only events that came meanwhile have to be fetched. */
  #goOn(run: Run, claimed: Claimed, budget: StepBudget | null): Promise<void> {
    const turn = this.#enter(run, budget);
    const hasNews = claimed.eventCount > run.seenEvents;
    run.resume(claimed, hasNews);
    if (hasNews) this.#events.hasNews(run);
    return turn;
  }

  #isHopeless({ takeovers }: Claimed): boolean {
    return takeovers >= this.#maxTakeovers;
  }

  #isSuspect(claimed: Claimed): boolean {
    return claimed.takeovers >= SUSPECT_TAKEOVERS && !this.#isHopeless(claimed);
  }

  /** One whose history did not come was counted, or spared, already: its ticket does not tell any more what it was. */
  #asItWasClaimed(claimed: Claimed): Claimed {
    return { ...claimed, ...this.#sentFor(claimed)?.claim };
  }

  /**
   * Suspects run one at a time: then the one that ends its process is charged, and not its neighbours. One that waits
   * for that is not counted as taken over until it begins: it may wait through any number of deaths.
   */
  #loadAlone(claimed: Claimed, budget: StepBudget | null): Promise<void> {
    const arrival = this.#places.expect([claimed]);
    const runner = this.#lease.id;
    const isOurs = (): boolean => this.#claims.isOurs(runner) && arrival.isExpected(claimed);
    const { takeovers } = claimed;
    const isFirst = this.#suspects === 0;
    const isUncounted = !isFirst || this.#sentFor(claimed) !== null;
    const spared = isFirst ? null : this.#count(claimed, takeovers - 1, isOurs);
    this.#suspects += 1;
    const turn = this.#suspectTurn
      .then(async () => {
        if (spared !== null && !(await spared)) return;
        if (isUncounted && !(await this.#count(claimed, takeovers, isOurs))) return;
        if (isOurs()) await this.#loadAll([claimed], budget);
      })
      .finally(() => {
        this.#suspects -= 1;
        arrival.over();
      });
    this.#suspectTurn = turn;
    return turn;
  }

  /** Writes how often it was taken over without progress. Answers false if the claim is lost. */
  async #count(claimed: Claimed, takeovers: number, isOurs: () => boolean): Promise<boolean> {
    // Before anything is noted: another claim of this process may have the run by now.
    if (!isOurs()) return false;
    const { iid, runNumber, claimNumber, eventCount: seenEvents } = claimed;
    const partNumber = 1 + (this.#sentFor(claimed)?.parts ?? 0);
    const { takenOver } = claimed;
    const claim = { runNumber, claimNumber, takeovers: claimed.takeovers, takenOver };
    this.#sent.set(iid, { claim, parts: partNumber });
    const part: Part = {
      iid,
      runNumber,
      claimNumber,
      partNumber,
      seenEvents,
      takeovers,
      next: { kind: "continue" },
      steps: [],
      attempts: [],
      consumed: [],
      spawns: [],
      deliveries: [],
    };
    while (isOurs()) {
      try {
        const [answer] = await this.#store.commit([part]);
        if (answer?.kind !== "busy") return answer?.kind !== "lost";
      } catch (error) {
        this.#logger.warn("commit.failed", { parts: 1, error: String(error) });
      }
      // Locks are held in real time, also under a test clock.
      await new Promise<void>((resolve) => void this.#scheduler.grace(COUNT_AGAIN_MS, resolve));
    }
    return false;
  }

  /** History comes in a later read than the claim: in one, the last owner's final commit could be missed. */
  async #loadAll(claimed: readonly Claimed[], budget: StepBudget | null): Promise<void> {
    const arrival = this.#places.expect(claimed);
    const runner = this.#lease.id;
    try {
      const loaded = await this.#store.load(
        // A dead owner did not say how much it had written.
        claimed.map((each) => ({ ...each, takenOver: each.takeovers > 0 })),
      );
      const byIid = new Map(loaded.map((run) => [run.iid, run]));
      if (!this.#claims.isOurs(runner)) return;
      const turns = claimed
        .filter((each) => arrival.isExpected(each))
        .map((each) => this.#enterNew(each, byIid.get(each.iid) ?? null, budget));
      arrival.over();
      await Promise.all(turns);
    } catch (error) {
      // The tickets stay ours: the next heartbeat finds them, and they are loaded again.
      this.#logger.warn("load.failed", { runs: claimed.length, error: String(error) });
    } finally {
      arrival.over();
    }
  }

  #enterNew(claimed: Claimed, loaded: LoadedRun | null, budget: StepBudget | null): Promise<void> {
    const parts = this.#sentFor(claimed)?.parts ?? 0;
    this.#sent.delete(claimed.iid);
    const isHopeless = this.#isHopeless(claimed);
    const spared = isHopeless ? { ...claimed, takeovers: 0 } : claimed;
    const run = this.#events.newRun(spared, loaded, parts);
    const turn = this.#enter(run, budget);
    if (isHopeless) run.endAsCrashed(claimed.takeovers);
    else this.#events.begin(run, claimed, loaded);
    return turn;
  }

  #sentFor({ iid, runNumber, claimNumber }: Claimed): Sent | null {
    const sent = this.#sent.get(iid);
    const isSame = sent?.claim.runNumber === runNumber && sent.claim.claimNumber === claimNumber;
    return isSame ? sent : null;
  }

  /** The run has its ticket; resolves when the turn is over. */
  #enter(run: Run, budget: StepBudget | null): Promise<void> {
    // A restarted run can come here before the look that tells that its old claim is lost.
    const former = this.#places.get(run.iid);
    if (former !== undefined) this.#events.displaced(former);
    run.budget = budget;
    const turn = this.#places.enter(run);
    this.#events.entered(run);
    return turn;
  }
}

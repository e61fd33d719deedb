import type { Logger } from "../model/logger.js";
import type { Scheduler } from "../model/seams.js";
import type { Claimed, Store } from "../store/store.js";
import type { Part } from "../store/part.js";
import type { Claims } from "./claims.js";
import type { Lease } from "./lease.js";
import type { Slots } from "./slots.js";

/** From this many takeovers on, a run may be what kills its owners. */
const SUSPECT_TAKEOVERS = 2;
const COUNT_AGAIN_MS = 100;

type Sent = {
  readonly claim: Pick<Claimed, "runNumber" | "claimNumber" | "takeovers" | "takenOver">;
  readonly parts: number;
};

type SuspectComponents = {
  readonly lease: Pick<Lease, "id">;
  readonly claims: Pick<Claims, "isOurs">;
  readonly slots: Slots;
};

/**
 * The runs whose owners have died several times without progress. They have their turns one at a time. Then the run
 * that ends its process is charged, and its neighbours are not. A suspect that waits for its turn is not counted as
 * taken over until it begins, because it may wait through any number of deaths.
 */
export class Suspects {
  readonly #store: Pick<Store, "commit">;
  readonly #components: SuspectComponents;
  readonly #maxTakeovers: number;
  readonly #scheduler: Scheduler;
  readonly #logger: Logger;
  #turn: Promise<void> = Promise.resolve();
  /** The number of suspects that have their turn or wait for it. */
  #count = 0;
  /**
   * The claims under which this runner has sent parts for suspects, and how many parts, by iid. The runs count on from
   * there.
   */
  readonly #sent = new Map<string, Sent>();

  constructor(
    store: Pick<Store, "commit">,
    components: SuspectComponents,
    maxTakeovers: number,
    scheduler: Scheduler,
    logger: Logger,
  ) {
    this.#store = store;
    this.#components = components;
    this.#maxTakeovers = maxTakeovers;
    this.#scheduler = scheduler;
    this.#logger = logger;
  }

  /** Returns whether the run has ended its owners so often that it ends without its code. */
  isHopeless({ takeovers }: Claimed): boolean {
    return takeovers >= this.#maxTakeovers;
  }

  isSuspect(claimed: Claimed): boolean {
    return claimed.takeovers >= SUSPECT_TAKEOVERS && !this.isHopeless(claimed);
  }

  /**
   * Returns the claim as it was first made. A run whose history did not come was already counted or spared, and its
   * ticket says so.
   */
  asItWasClaimed(claimed: Claimed): Claimed {
    return { ...claimed, ...this.#sentFor(claimed)?.claim };
  }

  /**
   * Returns how many parts were sent for the run under this claim, and forgets that. The run itself counts from now on.
   */
  takePartsSent(claimed: Claimed): number {
    if (this.#sent.size === 0) return 0;
    const parts = this.#sentFor(claimed)?.parts ?? 0;
    this.#sent.delete(claimed.iid);
    return parts;
  }

  /**
   * Takes the tickets that a heartbeat found ours. The parts that were sent for other tickets need not be remembered
   * any more.
   */
  confirm(owned: ReadonlyMap<string, { readonly claimNumber: number }>): void {
    for (const [iid, { claim }] of this.#sent) {
      const isOurs = owned.get(iid)?.claimNumber === claim.claimNumber;
      // The heartbeat may be older than the claim. Then the run is known here.
      if (!isOurs && !this.#components.slots.isKnown({ iid })) this.#sent.delete(iid);
    }
  }

  /** Calls `begin` when it is the run's turn, if its claim is still ours. Resolves when the turn is over. */
  alone(claimed: Claimed, begin: () => Promise<void>): Promise<void> {
    const { lease, claims, slots } = this.#components;
    const arrival = slots.expect([claimed]);
    const runner = lease.id;
    const isOurs = (): boolean => claims.isOurs(runner) && arrival.isExpected(claimed);
    const { takeovers } = claimed;
    const isFirst = this.#count === 0;
    const isUncounted = !isFirst || this.#sentFor(claimed) !== null;
    const spared = isFirst ? null : this.#write(claimed, takeovers - 1, isOurs);
    this.#count += 1;
    const turn = this.#turn
      .then(async () => {
        if (spared !== null && !(await spared)) return;
        if (isUncounted && !(await this.#write(claimed, takeovers, isOurs))) return;
        if (isOurs()) await begin();
      })
      .finally(() => {
        this.#count -= 1;
        arrival.over();
      });
    this.#turn = turn;
    return turn;
  }

  /** Writes how often the run was taken over without progress. Returns false if the claim is lost. */
  async #write(claimed: Claimed, takeovers: number, isOurs: () => boolean): Promise<boolean> {
    // This is asked before anything is noted, because another claim of this process may have the run by now.
    if (!isOurs()) return false;
    const { iid, runNumber, claimNumber, takenOver, eventCount: seenEvents } = claimed;
    const partNumber = 1 + (this.#sentFor(claimed)?.parts ?? 0);
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
      // Locks are held in real time, even under a test clock.
      await new Promise<void>((resolve) => void this.#scheduler.grace(COUNT_AGAIN_MS, resolve));
    }
    return false;
  }

  #sentFor({ iid, runNumber, claimNumber }: Claimed): Sent | null {
    const sent = this.#sent.get(iid);
    const isSame = sent?.claim.runNumber === runNumber && sent.claim.claimNumber === claimNumber;
    return isSame ? sent : null;
  }
}

import type { Run } from "../engine/run.js";
import type { Logger } from "../model/logger.js";
import type { Clock } from "../model/seams.js";
import type { Claimed, Lane, OwnedTicket, Store } from "../store/store.js";
import type { Lease } from "./lease.js";
import type { Slots } from "./slots.js";

const INBOX_ROWS = 1_000;
/** The share of each claim that is reserved for new runs, so that resuming runs can never keep them out for ever. */
const SHARE_FOR_NEW = 0.1;

/**
 * Tickets that were taken. `isLate`: the answer was on its way for so long that their runs may have ended since. Heartbeats have
 * kept the lease fresh meanwhile, and they did not tell of runs that were unknown here.
 */
export type TakenTickets = { readonly claimed: readonly Claimed[]; readonly isLate: boolean };

const nothing: TakenTickets = { claimed: [], isLate: false };

/**
 * Takes tickets for this process: due tickets, the tickets of its live runs, and those of claims whose answers got
 * lost.
 */
export class Claims {
  readonly #store: Store;
  readonly #lanes: readonly Lane[];
  readonly #lease: Lease;
  readonly #slots: Slots;
  readonly #clock: Clock;
  readonly #logger: Logger;
  #last: Promise<unknown> = Promise.resolve();
  #judgedAtMs = -Infinity;
  /** When the first lease of another owner ends, and until when that answer is believed, by this process's clock. */
  #expiry = { atMs: -Infinity, askAtMs: -Infinity };
  #isClosed = false;

  constructor(
    store: Store,
    lanes: readonly Lane[],
    lease: Lease,
    slots: Slots,
    clock: Clock,
    logger: Logger,
  ) {
    this.#store = store;
    this.#lanes = lanes;
    this.#lease = lease;
    this.#slots = slots;
    this.#clock = clock;
    this.#logger = logger;
  }

  close(): void {
    this.#isClosed = true;
  }

  /** Returns whether the claims of this runner are still ours. After the runner's death, none of them are. */
  isOurs(runner: string | null): boolean {
    return !this.#isClosed && runner === this.#lease.id;
  }

  /**
   * Runs work that takes tickets, one piece after the other. Only then is a ticket that is neither known nor arriving
   * really unknown.
   */
  oneByOne<T>(work: () => Promise<T>): Promise<T> {
    const result = this.#slots.bringing(this.#last.then(work));
    this.#last = result.catch(() => this.#lease.lostTouch());
    return result;
  }

  async claimDue(limit: number, asking: () => void, wasDead = false): Promise<TakenTickets> {
    const runner = await this.#lease.ensure();
    await this.#judgeOthers();
    asking();
    await this.#store.moveInbox(INBOX_ROWS);
    const sentAtMs = this.#clock.now();
    const answer = await this.#store.claim({
      runner,
      lanes: this.#lanes,
      limit,
      reservedForNew: Math.max(1, Math.floor(limit * SHARE_FOR_NEW)),
    });
    if (answer.kind === "dead") {
      this.#lease.died();
      // The runner was dead as soon as it was registered: a clock leaps, or leases are too short. The next claim tries
      // again.
      return wasDead ? nothing : this.claimDue(limit, asking, true);
    }
    this.#lease.heard(answer.now);
    // Nothing is awaited between here and the turns of these runs, because a runner that died meanwhile must not begin
    // them.
    return this.#taken(runner, answer.claimed, sentAtMs);
  }

  #taken(runner: string, claimed: readonly Claimed[], sentAtMs: number): TakenTickets {
    if (!this.isOurs(runner)) return nothing;
    return { claimed, isLate: this.#lease.isOldNews(sentAtMs) };
  }

  async #judgeOthers(): Promise<void> {
    if (this.#judgesInMs > 0) return;
    this.#judgedAtMs = this.#clock.now();
    const dead = await this.#store.declareDead();
    if (dead.length > 0) this.#logger.warn("runners.died", { runners: dead });
  }

  get #judgesInMs(): number {
    const againInMs = this.#judgedAtMs + this.#lease.leaseMs / 10 - this.#clock.now();
    return Math.max(0, againInMs, this.#lease.judgesInMs);
  }

  /**
   * Returns how long it is until the first owner of runs may be dead and this process may say so. Leases are only ever
   * prolonged, so an answer holds until then. It is one lease at most, because other runners may become owners now.
   */
  async nextExpiryInMs(): Promise<number> {
    if (this.#clock.now() >= Math.min(this.#expiry.askAtMs, this.#expiry.atMs)) {
      const askedAtMs = this.#clock.now();
      const { leaseMs } = this.#lease;
      const inMs = await this.#store.nextExpiryInMs(this.#lease.id ?? "");
      // A check that came a millisecond too early would make the next one a tenth of a lease too late, because nobody
      // is judged again for that long.
      const expiresAtMs = this.#clock.now() + 1 + Math.max(inMs ?? Infinity, this.#judgesInMs);
      this.#expiry = {
        atMs: Math.min(askedAtMs + leaseMs, expiresAtMs),
        askAtMs: askedAtMs + leaseMs / 3,
      };
    }
    return Math.max(0, this.#expiry.atMs - this.#clock.now());
  }

  /** Reopens the ticket of a live run before it is due. */
  async reopen(run: Run): Promise<TakenTickets> {
    const runner = await this.#lease.ensure();
    const { iid, runNumber, claimNumber } = run;
    const sentAtMs = this.#clock.now();
    const claimed = await this.#store.reopen(runner, [{ iid, runNumber, claimNumber }]);
    return this.#taken(runner, claimed, sentAtMs);
  }

  /**
   * Adopts tickets that are ours and unknown here, as if the answers to their claims were lost. Mostly those answers
   * have arrived meanwhile.
   */
  async adopt(tickets: readonly OwnedTicket[]): Promise<Claimed[]> {
    const runner = this.#lease.id;
    const unknown = this.unknownAmong(tickets);
    // New runs that start here are unknown until their creation is answered, so nothing is adopted meanwhile.
    if (runner === null || unknown.length === 0 || this.#slots.reserved > 0) return [];
    const iids = unknown.map(({ iid }) => iid);
    const claimed = this.unknownAmong(await this.#store.adopt(runner, iids));
    return this.isOurs(runner) ? claimed : [];
  }

  unknownAmong<T extends { readonly iid: string }>(tickets: readonly T[]): T[] {
    return tickets.filter((ticket) => !this.#slots.isKnown(ticket));
  }
}

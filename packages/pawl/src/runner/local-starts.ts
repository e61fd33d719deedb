import type { Deliverer } from "../hooks/deliverer.js";
import type {
  Reservation,
  RunStarts,
  StartedInstance,
  WakeReservation,
} from "../instances/ports.js";
import { type EventRecord } from "../store/records.js";
import { targetKey, type Target } from "../model/target.js";
import type { Claimed, EventPlace } from "../store/store.js";
import type { Dispatch } from "./dispatch.js";
import type { Lease } from "./lease.js";
import type { LiveRuns } from "./live-runs.js";
import type { PeerHints } from "./peer-hints.js";
import type { Slots } from "./slots.js";
import type { TicketPolls } from "./ticket-polls.js";
import type { Turns } from "./turns.js";

type LocalStartComponents = {
  readonly lease: Lease;
  readonly slots: Slots;
  readonly live: LiveRuns;
  readonly dispatch: Dispatch;
  readonly turns: Turns;
  readonly polls: TicketPolls;
  readonly peers: PeerHints;
  readonly hooks: Pick<Deliverer, "look">;
};

/**
 * The runner as callers of this process use it. It gives slots to runs that they start or wake, and polls runs that
 * they changed.
 */
export class LocalStarts implements RunStarts {
  readonly #lease: Lease;
  readonly #slots: Slots;
  readonly #live: LiveRuns;
  readonly #dispatch: Dispatch;
  readonly #turns: Turns;
  readonly #polls: TicketPolls;
  readonly #peers: PeerHints;
  readonly #hooks: Pick<Deliverer, "look">;

  constructor({ lease, slots, live, dispatch, turns, polls, peers, hooks }: LocalStartComponents) {
    this.#lease = lease;
    this.#slots = slots;
    this.#live = live;
    this.#dispatch = dispatch;
    this.#turns = turns;
    this.#polls = polls;
    this.#peers = peers;
    this.#hooks = hooks;
  }

  reserve(count: number): Reservation | null {
    const { id: runner } = this.#lease;
    const { isServing, claimedAllDue } = this.#dispatch;
    if (runner === null || !isServing || !claimedAllDue) return null;
    if (!this.#lease.isFresh || this.#slots.free < count) return null;
    this.#slots.reserve(count);
    const sentAtMs = this.#lease.processNow;
    return {
      runner,
      started: (runs) => {
        this.#slots.release(runs.length);
        if (runner !== this.#lease.id) return;
        const isLate = this.#lease.isOldNews(sentAtMs);
        this.#turns.beginAlone({ claimed: runs.map(asClaimed), isLate });
      },
      release: (slots) => this.#slots.release(slots),
    };
  }

  reserveFor(target: Target): WakeReservation | null {
    const run = this.#live.find(targetKey(target));
    const room = run === undefined ? null : this.reserve(1);
    if (run === undefined || room === null) return null;
    const { runner } = room;
    const sentAtMs = this.#lease.processNow;
    return {
      lease: { runner, claimNumber: run.claimNumber },
      started: (claimed: Claimed) => {
        room.release(1);
        if (runner !== this.#lease.id) return;
        this.#turns.beginAlone({ claimed: [claimed], isLate: this.#lease.isOldNews(sentAtMs) });
      },
      release: () => room.release(1),
    };
  }

  wake(): void {
    this.#dispatch.soon(0);
    if (!this.#dispatch.isServing || this.#slots.free === 0) void this.#peers.due();
    void this.#hooks.look();
  }

  sent(event: EventRecord, { iid, runNumber }: EventPlace): boolean {
    const run = this.#slots.get(iid) ?? this.#live.get(iid);
    return run !== undefined && run.runNumber === runNumber && run.receive(event);
  }

  poke(owner: string, target: Target): void {
    if (owner === this.#lease.id) this.doubt(owner, target);
    else this.#peers.changed(owner, target);
  }

  /**
   * Polls a run of this runner that may have been paused or ended. The caller has been answered by then, so no body of
   * the run starts before the poll has found its ticket.
   */
  doubt(owner: string, target: Target): void {
    const run = owner === this.#lease.id ? this.#slots.find(targetKey(target)) : undefined;
    if (run !== undefined) this.#polls.doubt(run);
  }
}

/**
 * Returns the claim of a run that was created already leased. It is built without a spread: with one, this took a
 * twentieth of the time of a short run.
 */
function asClaimed({ iid, workflow, id, params, createdAt }: StartedInstance): Claimed {
  return {
    iid,
    workflow,
    id,
    params,
    createdAt,
    runNumber: 1,
    claimNumber: 1,
    resuming: false,
    takenOver: false,
    takeovers: 0,
    eventCount: 0,
    historyBytes: 0,
    now: createdAt,
  };
}

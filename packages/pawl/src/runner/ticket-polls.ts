import type { Run } from "../engine/run.js";
import type { Logger } from "../model/logger.js";
import type { Cancel, Runtime } from "../model/seams.js";
import type { DbTime } from "../store/records.js";
import type { PollAnswer, Store } from "../store/store.js";
import type { Lease } from "./lease.js";
import type { Slots } from "./slots.js";

interface TicketPollEvents {
  lost(run: Run): void;
  failed(error: unknown): void;
}

const BUSY_MS = 20;
const RETRY_MS = 1_000;

/**
 * Polls the tickets of leased runs for the time, new events and a pause. All polls that are wanted together are one
 * read.
 */
export class TicketPolls {
  readonly #store: Store;
  readonly #lease: Pick<Lease, "msUntil">;
  readonly #slots: Pick<Slots, "has">;
  readonly #runtime: Runtime;
  readonly #logger: Logger;
  readonly #events: TicketPollEvents;
  readonly #wanted = new Set<Run>();
  readonly #alarms = new Map<Run, Cancel>();

  constructor(
    store: Store,
    lease: Pick<Lease, "msUntil">,
    slots: Pick<Slots, "has">,
    runtime: Runtime,
    logger: Logger,
    events: TicketPollEvents,
  ) {
    this.#store = store;
    this.#lease = lease;
    this.#slots = slots;
    this.#runtime = runtime;
    this.#logger = logger;
    this.#events = events;
  }

  soon(run: Run): void {
    if (this.#wanted.size === 0) this.#runtime.scheduler.round(() => void this.#poll());
    this.#wanted.add(run);
  }

  /** The run's ticket may not be ours any more. No body of the run starts until a poll has found its ticket. */
  doubt(run: Run): void {
    run.isDoubted = true;
    this.soon(run);
  }

  /** Polls the ticket when the database's time is `at`. A run has one alarm, and a later call replaces it. */
  at(run: Run, at: DbTime): void {
    this.#alarms.get(run)?.();
    const cancel = this.#runtime.scheduler.after(this.#lease.msUntil(at), () => {
      this.#alarms.delete(run);
      this.soon(run);
    });
    this.#alarms.set(run, cancel);
  }

  forget(run: Run): void {
    this.#alarms.get(run)?.();
    this.#alarms.delete(run);
    this.#wanted.delete(run);
    run.isDoubted = false;
  }

  async #poll(): Promise<void> {
    const runs = [...this.#wanted].filter((run) => this.#slots.has(run));
    this.#wanted.clear();
    if (runs.length === 0) return;
    const requests = runs.map(({ iid, runNumber, claimNumber, seenEvents }) => {
      return { iid, runNumber, claimNumber, seenEvents };
    });
    let answers: PollAnswer[];
    try {
      answers = await this.#store.poll(requests);
    } catch (error) {
      this.#events.failed(error);
      this.#logger.warn("poll.failed", { runs: runs.length, error: String(error) });
      this.#runtime.scheduler.after(RETRY_MS, () => this.#again(runs));
      return;
    }
    const busy: Run[] = [];
    for (const [n, run] of runs.entries()) {
      const answer = answers[n];
      // A part that parked or ended the run may have been answered meanwhile.
      const isSame = run.isLeased && run.claimNumber === requests[n]?.claimNumber;
      if (answer === undefined || !isSame || !this.#slots.has(run)) continue;
      if (answer.kind === "ok") {
        // A run that was doubted after this poll was sent needs another.
        if (!this.#wanted.has(run)) run.isDoubted = false;
        run.polled(answer);
      } else if (answer.kind === "busy") busy.push(run);
      else if (run.isLostForSure()) this.#events.lost(run);
    }
    // Locks are held in real time, even under a test clock.
    if (busy.length > 0) this.#runtime.scheduler.grace(BUSY_MS, () => this.#again(busy));
  }

  #again(runs: readonly Run[]): void {
    for (const run of runs) if (this.#slots.has(run)) this.soon(run);
  }
}

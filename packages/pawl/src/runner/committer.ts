import type { FrozenPart } from "../engine/part-draft.js";
import type { Run } from "../engine/run.js";
import { stackOf } from "../model/codec/error-shape.js";
import type { Invariants } from "../model/invariants.js";
import type { Logger } from "../model/logger.js";
import type { Runtime } from "../model/seams.js";
import type { Notices } from "../store/notices.js";
import type { Store } from "../store/store.js";
import type { Part, PartAnswer } from "../store/part.js";

export type BatchLimits = {
  readonly parts: number;
  readonly bytes: number;
  /**
   * From this many parts on, a second batch may go beside that of other runs. A smaller one costs the database more
   * than it gains.
   */
  readonly half: number;
};

interface CommitEvents {
  lost(run: Run): void;
  /** The database refuses the data of the part. */
  refused(run: Run, part: Part, message: string): void;
  /** A commit was not answered, so the store may be away. */
  failed(error: unknown): void;
}

/** The places where the committer reports: for operators, and to other parts of the process. */
type CommitReports = {
  readonly logger: Logger;
  readonly invariants: Invariants;
  readonly notices: Pick<Notices, "committed">;
};

const BUSY_MS = 5;
const MAX_BUSY_MS = 200;
const RESEND_MS = 250;

/**
 * Group commit. While a batch is on its way, the parts of all other runs collect and go out as the next one.
 *
 * Where the database is another process, a large batch goes out as two halves, so that the runs of one half go on while
 * the other is written. Otherwise the runs would wait for the database, and the database for the runs.
 *
 * A part whose fate is unknown is sent again unchanged, and applies once.
 */
export class Committer {
  readonly #store: Store;
  readonly #runtime: Runtime;
  readonly #limits: BatchLimits;
  readonly #half: number;
  readonly #events: CommitEvents;
  readonly #reports: CommitReports;
  readonly #waiting = new Set<Run>();
  readonly #busy = new Map<Run, number>();
  #inFlight = 0;
  #sendIsDue = false;
  #isClosed = false;

  constructor(
    store: Store,
    runtime: Runtime,
    limits: BatchLimits,
    reports: CommitReports,
    events: CommitEvents,
  ) {
    this.#store = store;
    this.#runtime = runtime;
    this.#limits = limits;
    this.#half = store.isRemote === true ? limits.half : Infinity;
    this.#reports = reports;
    this.#events = events;
  }

  submit(run: Run): void {
    this.#waiting.add(run);
    this.#scheduleSend();
  }

  /** Closes the committer. It sends nothing more, and resends nothing. */
  close(): void {
    this.#isClosed = true;
    this.#waiting.clear();
  }

  /** Schedules a batch for the next round, so that all runs that move together travel together. */
  #scheduleSend(): void {
    if (this.#sendIsDue || !this.#maySend || this.#isClosed) return;
    this.#sendIsDue = true;
    this.#runtime.scheduler.round(() => {
      this.#sendIsDue = false;
      this.#sendNext(0);
      if (this.#waiting.size > 0) this.#scheduleSend();
    });
  }

  /** Sends the next batch. `answered` is the number of runs that will soon have something to send again. */
  #sendNext(answered: number): void {
    if (!this.#maySend) return;
    const batch = this.#collect(this.#batchSize(answered));
    if (batch.length > 0) void this.#send(batch);
  }

  get #maySend(): boolean {
    return this.#inFlight === 0 || (this.#inFlight === 1 && this.#waiting.size >= this.#half);
  }

  #batchSize(answered: number): number {
    const moving = this.#waiting.size + answered;
    const isHalved = this.#inFlight === 0 && moving >= 2 * this.#half;
    return Math.min(this.#limits.parts, isHalved ? Math.ceil(moving / 2) : moving);
  }

  #collect(atMost: number): [Run, Part][] {
    const batch: [Run, Part][] = [];
    let bytes = 0;
    for (const run of this.#waiting) {
      let frozen: FrozenPart | null = null;
      try {
        frozen = run.part();
      } catch (error) {
        this.#threw(run, error);
      }
      if (frozen === null) {
        this.#waiting.delete(run);
        this.#busy.delete(run);
        continue;
      }
      if (batch.length > 0 && bytes + frozen.bytes > this.#limits.bytes) break;
      this.#waiting.delete(run);
      batch.push([run, frozen.part]);
      bytes += frozen.bytes;
      if (batch.length === atMost) break;
    }
    return batch;
  }

  /** One run that throws must not keep the others of its batch from hearing their answers. */
  #threw(run: Run, error: unknown): void {
    const { workflow, id, runNumber } = run;
    this.#reports.invariants.report("run.throws", {
      workflow,
      id,
      runNumber,
      stack: stackOf(error),
    });
    this.#events.lost(run);
  }

  async #send(batch: readonly [Run, Part][]): Promise<void> {
    this.#inFlight += 1;
    const parts = batch.map(([, part]) => part);
    const answers = await this.#answersTo(parts);
    this.#inFlight -= 1;
    if (this.#isClosed || answers === null) return;
    // The next batch goes out first, so that the database works while these runs go on.
    this.#sendNext(batch.length);
    for (let n = 0; n < batch.length; n++) {
      const [run, part] = batch[n] as [Run, Part];
      try {
        this.#tell(run, part, answers[n]);
      } catch (error) {
        this.#threw(run, error);
      }
    }
    if (this.#waiting.size > 0) this.#scheduleSend();
    const { committed } = this.#reports.notices;
    if (committed.isHeard) committed.tell(parts, undefined);
  }

  async #answersTo(parts: readonly Part[]): Promise<PartAnswer[] | null> {
    while (!this.#isClosed) {
      try {
        return await this.#store.commit(parts);
      } catch (error) {
        this.#events.failed(error);
        this.#reports.logger.warn("commit.failed", { parts: parts.length, error: String(error) });
      }
      await this.#runtime.scheduler.sleep(RESEND_MS * (0.5 + this.#runtime.random.next()));
    }
    return null;
  }

  #tell(run: Run, part: Part, answer: PartAnswer | undefined): void {
    if (answer === undefined) return this.#unanswered(run, part);
    if (answer.kind !== "busy") this.#busy.delete(run);
    switch (answer.kind) {
      case "ok":
        return run.committed(answer);
      case "lost":
        return this.#events.lost(run);
      case "bad":
        return this.#events.refused(run, part, answer.message);
      case "busy":
        return this.#sendAgain(run);
    }
  }

  /**
   * Handles a part that the store did not answer. Nothing is known of it, so the run is loaded again from what is
   * durable.
   */
  #unanswered(run: Run, { iid, partNumber }: Part): void {
    this.#reports.invariants.report("commit.answers", { iid, partNumber });
    this.#events.lost(run);
  }

  /**
   * Sends the run's part again soon. Somebody holds the ticket's lock for a moment, such as a caller's terminate or a
   * poll.
   */
  #sendAgain(run: Run): void {
    const tries = this.#busy.get(run) ?? 0;
    this.#busy.set(run, tries + 1);
    const ms = Math.min(MAX_BUSY_MS, BUSY_MS * 2 ** tries);
    // Locks are held in real time, even under a test clock.
    this.#runtime.scheduler.grace(ms * (0.5 + this.#runtime.random.next()), () => {
      if (!this.#isClosed) this.submit(run);
    });
  }
}

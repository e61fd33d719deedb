import type { Run } from "../engine/run.js";
import type { Scheduler } from "../model/seams.js";
import { targetKey, type Target } from "../store/records.js";

type Named = { readonly iid: string };

export interface SlotEvents {
  taken(): void;
  freed(): void;
}

/** A stay of runs that will be here soon: their history, or the answer about them, is on its way. */
export type Arrival = {
  /** Whether the run was neither lost nor claimed anew meanwhile. */
  isExpected(run: Named): boolean;
  /** They are here, or will not come. */
  over(): void;
};

type Expected = {
  /** Tells one arrival from another. */
  readonly arrival: Arrival;
  readonly claimNumber: number | null;
  misses: number;
};

/** Who has a place in this process: runs whose tickets it holds, those that arrive, and new ones not yet created. */
export class Slots {
  readonly #scheduler: Scheduler;
  readonly #events: SlotEvents;
  readonly #leased = new Map<string, Run>();
  readonly #byTarget = new Map<string, Run>();
  /** How the ends of turns are awaited. */
  readonly #turns = new Map<Run, () => void>();
  /** By iid. */
  readonly #arriving = new Map<string, Expected>();
  #reserved = 0;
  /** Claims and adoptions: what they bring after a goodbye would look like a crash. */
  #onTheirWay = 0;
  readonly #onNextEnd: (() => void)[] = [];

  constructor(scheduler: Scheduler, events: SlotEvents) {
    this.#scheduler = scheduler;
    this.#events = events;
  }

  get used(): number {
    return this.#leased.size + this.#arriving.size + this.#reserved;
  }

  get reserved(): number {
    return this.#reserved;
  }

  /** The runs that are leased here and now. */
  get runs(): Iterable<Run> {
    return this.#leased.values();
  }

  get leased(): number {
    return this.#leased.size;
  }

  get isBusy(): boolean {
    return this.#leased.size > 0 || this.#arriving.size > 0;
  }

  has(run: Run): boolean {
    return this.#leased.get(run.iid) === run;
  }

  get(iid: string): Run | undefined {
    return this.#leased.get(iid);
  }

  find(target: Target): Run | undefined {
    return this.#byTarget.get(targetKey(target));
  }

  isArriving({ iid }: Named): boolean {
    return this.#arriving.has(iid);
  }

  isKnown({ iid }: Named): boolean {
    return this.#leased.has(iid) || this.#arriving.has(iid);
  }

  /** With their claim numbers if their tickets are ours already. */
  expect(runs: readonly (Named & { readonly claimNumber?: number })[]): Arrival {
    const isExpected = ({ iid }: Named): boolean => this.#arriving.get(iid)?.arrival === arrival;
    const over = (): void => {
      for (const { iid } of runs.filter(isExpected)) this.#arriving.delete(iid);
      this.#freed();
    };
    const arrival: Arrival = { isExpected, over };
    for (const { iid, claimNumber = null } of runs) {
      this.#arriving.set(iid, { arrival, claimNumber, misses: 0 });
    }
    this.#events.taken();
    return arrival;
  }

  /** A heartbeat says what is ours. Who is missing twice will not come: once, it may be older than the claim. */
  confirm(owned: ReadonlyMap<string, { readonly claimNumber: number }>): void {
    for (const [iid, expected] of this.#arriving) {
      if (expected.claimNumber === null) continue;
      const isOurs = owned.get(iid)?.claimNumber === expected.claimNumber;
      expected.misses = isOurs ? 0 : expected.misses + 1;
      if (expected.misses < 2) continue;
      this.#arriving.delete(iid);
      this.#freed();
    }
  }

  /** The run has its ticket; resolves when it leaves. */
  enter(run: Run): Promise<void> {
    this.#arriving.delete(run.iid);
    this.#leased.set(run.iid, run);
    this.#byTarget.set(targetKey(run), run);
    this.#events.taken();
    return new Promise((resolve) => void this.#turns.set(run, resolve));
  }

  leave(run: Run): void {
    if (this.has(run)) {
      this.#leased.delete(run.iid);
      this.#byTarget.delete(targetKey(run));
    }
    this.#turns.get(run)?.();
    this.#turns.delete(run);
    this.#freed();
  }

  reserve(count: number): void {
    this.#reserved += count;
  }

  /** The new runs are here, or will not come. */
  release(count: number): void {
    this.#reserved -= count;
    this.#tell();
  }

  /** Waits for what may bring runs. */
  expecting<T>(work: Promise<T>): Promise<T> {
    this.#onTheirWay += 1;
    return work.finally(() => {
      this.#onTheirWay -= 1;
      this.#tell();
    });
  }

  /** Whether nobody has a place any more, and nobody will, `ms` from now at the latest. */
  async emptiedWithin(ms: number): Promise<boolean> {
    // Not by the clock: a timer may fire before that shows its time.
    const patience = { isOver: ms <= 0 };
    const cancel = this.#scheduler.after(ms, () => {
      patience.isOver = true;
      this.#tell();
    });
    while (this.#isHoldingOn && !patience.isOver) {
      await new Promise<void>((resolve) => void this.#onNextEnd.push(resolve));
    }
    cancel();
    return !this.#isHoldingOn;
  }

  get #isHoldingOn(): boolean {
    return this.isBusy || this.#onTheirWay > 0 || this.#reserved > 0;
  }

  #freed(): void {
    this.#tell();
    this.#events.freed();
  }

  #tell(): void {
    for (const resolve of this.#onNextEnd.splice(0)) resolve();
  }
}

import type { Run } from "../engine/run.js";
import type { Invariants } from "../model/invariants.js";
import type { Scheduler } from "../model/seams.js";
import type { Dispatch } from "./dispatch.js";
import type { Lease } from "./lease.js";

type Named = { readonly iid: string };

/** Runs that will be here soon. Their history, or the answer about them, is on its way. */
type Arrival = {
  /** Returns whether the run was neither lost nor claimed anew meanwhile. */
  isExpected(run: Named): boolean;
  /** Ends the arrival: the runs are here, or will not come. */
  over(): void;
};

type Expected = {
  /** Tells one arrival from another. */
  readonly arrival: Arrival;
  readonly claimNumber: number | null;
  misses: number;
};

/**
 * The slots of this process. They are taken by runs whose tickets it holds, by runs that arrive, and by new runs that
 * are not yet created.
 */
export class Slots {
  /** The number of slots. */
  concurrency: number;
  readonly #lease: Pick<Lease, "keepAlive">;
  readonly #dispatch: Dispatch;
  readonly #scheduler: Scheduler;
  readonly #invariants: Invariants;
  readonly #leased = new Map<string, Run>();
  readonly #byKey = new Map<string, Run>();
  /** The functions to call when the turns of these runs end. */
  readonly #turnEnds = new Map<Run, () => void>();
  /** The runs that arrive, by iid. */
  readonly #arriving = new Map<string, Expected>();
  #reserved = 0;
  /**
   * The number of claims and adoptions that are under way. A run that they bring after a goodbye would look like a
   * crash.
   */
  #onTheirWay = 0;
  readonly #onNextEnd: (() => void)[] = [];

  constructor(
    concurrency: number,
    lease: Pick<Lease, "keepAlive">,
    dispatch: Dispatch,
    scheduler: Scheduler,
    invariants: Invariants,
  ) {
    this.concurrency = concurrency;
    this.#lease = lease;
    this.#dispatch = dispatch;
    this.#scheduler = scheduler;
    this.#invariants = invariants;
  }

  get free(): number {
    const used = this.#leased.size + this.#arriving.size + this.#reserved;
    return Math.max(0, this.concurrency - used);
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

  /** By `targetKey`. */
  find(key: string): Run | undefined {
    return this.#byKey.get(key);
  }

  isArriving({ iid }: Named): boolean {
    return this.#arriving.has(iid);
  }

  isKnown({ iid }: Named): boolean {
    return this.#leased.has(iid) || this.#arriving.has(iid);
  }

  /** Expects runs. They have claim numbers if their tickets are ours already. */
  expect(runs: readonly (Named & { readonly claimNumber?: number })[]): Arrival {
    const isExpected = ({ iid }: Named): boolean => this.#arriving.get(iid)?.arrival === arrival;
    const over = (): void => {
      const missing = runs.filter(isExpected);
      if (missing.length === 0) return;
      for (const { iid } of missing) this.#arriving.delete(iid);
      this.#freed();
    };
    const arrival: Arrival = { isExpected, over };
    for (const { iid, claimNumber = null } of runs) {
      this.#arriving.set(iid, { arrival, claimNumber, misses: 0 });
    }
    this.#lease.keepAlive(this.isBusy);
    return arrival;
  }

  /**
   * Takes the tickets that a heartbeat found ours. A run that is missing twice will not come. If it is missing once,
   * the heartbeat may be older than its claim.
   */
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

  /** Gives a slot to a run that has its ticket. Resolves when the run leaves. */
  enter(run: Run): Promise<void> {
    const { iid, key, workflow, id } = run;
    if (this.#leased.has(iid)) this.#invariants.report("slots.one", { workflow, id });
    this.#arriving.delete(iid);
    this.#leased.set(iid, run);
    this.#byKey.set(key, run);
    this.#lease.keepAlive(true);
    return new Promise((resolve) => void this.#turnEnds.set(run, resolve));
  }

  leave(run: Run): void {
    if (this.#leased.get(run.iid) === run) this.#leased.delete(run.iid);
    if (this.#byKey.get(run.key) === run) this.#byKey.delete(run.key);
    this.#turnEnds.get(run)?.();
    this.#turnEnds.delete(run);
    this.#freed();
  }

  reserve(count: number): void {
    this.#reserved += count;
  }

  /** Releases reserved slots: the new runs are here, or will not come. */
  release(count: number): void {
    this.#reserved -= count;
    this.#tell();
  }

  /** Counts work that may bring runs, until that work is done. */
  bringing<T>(work: Promise<T>): Promise<T> {
    this.#onTheirWay += 1;
    return work.finally(() => {
      this.#onTheirWay -= 1;
      this.#tell();
    });
  }

  /** Waits until no run has a slot or will get one, for `ms` at most. Returns whether that is so. */
  async emptiedWithin(ms: number): Promise<boolean> {
    // This does not ask the clock, because a timer may fire before the clock shows its time.
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
    this.#lease.keepAlive(this.isBusy);
    // A full claim has left work behind: now there is room for it.
    if (!this.#dispatch.claimedAllDue) this.#dispatch.soon(0);
  }

  #tell(): void {
    if (this.#onNextEnd.length === 0) return;
    for (const resolve of this.#onNextEnd.splice(0)) resolve();
  }
}

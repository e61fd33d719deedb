import type { Cancel, Runtime } from "../model/seams.js";
import type { DbTime } from "../store/records.js";
import type { HeartbeatAnswer, Store } from "../store/store.js";

type Renewed = Extract<HeartbeatAnswer, { kind: "ok" }>;

export interface LeaseEvents {
  beat(answer: Renewed): void;
  /** The lease ran out, and others may have taken everything. Nothing that was leased is ours any more. */
  died(): void;
  failed(error: unknown): void;
}

/** No body starts after this share of a lease that was not renewed, because its result might come too late. */
const SAFE_SHARE = 0.8;
const BEATS_PER_LEASE = 3;
const MAX_RETRY_MS = 1_000;

/**
 * The right of this process to its tickets. It is one row, renewed by one statement. Its times are counted by the
 * process's clock from before each request, so that they end before the database's.
 */
export class Lease {
  /** A change takes effect at the next registration or heartbeat. */
  leaseMs: number;
  readonly #store: Store;
  readonly #runtime: Runtime;
  readonly #newId: () => string;
  readonly #events: LeaseEvents;
  /** The runner's id in the database; null before it is registered. Only the lease sets it. */
  id: string | null = null;
  #registering: Promise<string> | null = null;
  #renewedAtMs = -Infinity;
  /** The time since when every call has been answered. Others are judged only after one lease of that. */
  #inTouchSinceMs = -Infinity;
  #clockGapMs = 0;
  #timer: Cancel | null = null;
  #isNeeded = false;
  #isAbandoned = false;
  #beating: Promise<void> | null = null;

  constructor(
    leaseMs: number,
    store: Store,
    runtime: Runtime,
    newId: () => string,
    events: LeaseEvents,
  ) {
    this.leaseMs = leaseMs;
    this.#store = store;
    this.#runtime = runtime;
    this.#newId = newId;
    this.#events = events;
  }

  get isFresh(): boolean {
    return this.#runtime.clock.now() < this.#renewedAtMs + this.leaseMs * SAFE_SHARE;
  }

  /**
   * How long until this process may judge others. After an outage all leases look expired, while their owners are just
   * coming back.
   */
  get judgesInMs(): number {
    return Math.max(0, this.#inTouchSinceMs + this.leaseMs - this.#runtime.clock.now());
  }

  /** The time of the process's clock, for `isOldNews`. */
  get processNow(): number {
    return this.#runtime.clock.now();
  }

  /** Returns whether a heartbeat would have told meanwhile what has happened since something was sent. */
  isOldNews(sentAtMs: number): boolean {
    return this.#runtime.clock.now() >= sentAtMs + this.leaseMs / BEATS_PER_LEASE;
  }

  /** Returns about how long it is until the database's clock shows `at`. */
  msUntil(at: DbTime): number {
    return Math.max(0, at - this.now);
  }

  /** The approximate time of the database's clock. */
  get now(): DbTime {
    return this.#runtime.clock.now() + this.#clockGapMs;
  }

  heard(now: DbTime): void {
    this.#clockGapMs = now - this.#runtime.clock.now();
  }

  lostTouch(): void {
    this.#inTouchSinceMs = Infinity;
  }

  /** Returns the id of a registered runner whose lease is young enough to claim with. */
  async ensure(): Promise<string> {
    if (this.id === null) return (this.#registering ??= this.#register());
    if (this.#runtime.clock.now() >= this.#renewedAtMs + this.leaseMs / BEATS_PER_LEASE) {
      await this.beat();
    }
    return this.id ?? this.ensure();
  }

  async #register(): Promise<string> {
    try {
      const id = this.#newId();
      const sentAtMs = this.#runtime.clock.now();
      await this.#store.register(id, this.leaseMs);
      if (this.#isAbandoned) return id;
      this.#touched(sentAtMs);
      this.id = id;
      return id;
    } finally {
      this.#registering = null;
    }
  }

  #touched(sentAtMs: number): void {
    this.#renewedAtMs = sentAtMs;
    if (this.#inTouchSinceMs === Infinity) this.#inTouchSinceMs = sentAtMs;
  }

  beat(): Promise<void> {
    return (this.#beating ??= this.#beat().finally(() => {
      this.#beating = null;
    }));
  }

  async #beat(): Promise<void> {
    const id = this.id;
    if (id === null) return;
    const sentAtMs = this.#runtime.clock.now();
    let answer: HeartbeatAnswer;
    try {
      answer = await this.#store.heartbeat(id, this.leaseMs);
    } catch (error) {
      this.lostTouch();
      this.#events.failed(error);
      throw error;
    }
    if (id !== this.id) return;
    if (answer.kind === "dead") return this.died();
    this.#touched(sentAtMs);
    this.heard(answer.now);
    this.#events.beat(answer);
  }

  /** Gives up the runner's id, because a dead id is used up. The next claim registers another. */
  died(): void {
    if (this.id === null) return;
    this.id = null;
    this.#renewedAtMs = -Infinity;
    this.#events.died();
  }

  /**
   * Sends heartbeats while something is leased. An idle process asks nothing of the database, so its lease may be old when it
   * is needed again: the first beat then comes at once.
   */
  keepAlive(isNeeded: boolean): void {
    if (this.#isNeeded === isNeeded || this.#isAbandoned) return;
    this.#isNeeded = isNeeded;
    this.#timer?.();
    this.#timer = null;
    if (isNeeded) this.#plan(this.#nextBeatInMs);
  }

  /** Counted from the last beat, unless there is no lease to renew, or the process's clock has stepped back. */
  get #nextBeatInMs(): number {
    const everyMs = this.leaseMs / BEATS_PER_LEASE;
    if (this.id === null) return everyMs;
    const inMs = this.#renewedAtMs + everyMs - this.#runtime.clock.now();
    return Math.min(everyMs, Math.max(0, inMs));
  }

  #plan(ms: number): void {
    this.#timer = this.#runtime.scheduler.after(ms, () => {
      this.#timer = null;
      this.beat().then(
        () => this.#planAgain(this.#nextBeatInMs),
        () => this.#planAgain(Math.min(MAX_RETRY_MS, this.leaseMs / BEATS_PER_LEASE)),
      );
    });
  }

  /** After a beat. The lease may have become unneeded and needed again meanwhile: then the next beat is planned already. */
  #planAgain(ms: number): void {
    if (this.#isNeeded && this.#timer === null) this.#plan(ms);
  }

  /** Says a clean goodbye, so that others need not wait for the lease to run out. */
  async retire(): Promise<void> {
    const id = this.id;
    this.keepAlive(false);
    if (id === null) return;
    this.id = null;
    this.#renewedAtMs = -Infinity;
    await this.#store.retire(id);
  }

  /** Acts as if the process had died, and says nothing to anyone. */
  abandon(): void {
    this.keepAlive(false);
    this.#isAbandoned = true;
    this.id = null;
    this.#renewedAtMs = -Infinity;
  }
}

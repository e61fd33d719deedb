import type { Cancel, Runtime } from "../model/seams.js";
import type { DbTime } from "../store/records.js";
import type { HeartbeatAnswer, Store } from "../store/store.js";

type Held = Extract<HeartbeatAnswer, { kind: "ok" }>;

export interface LeaseEvents {
  beat(answer: Held): void;
  /** The lease ran out and others may have taken everything: nothing that was leased is ours. */
  died(): void;
  failed(error: unknown): void;
}

/** No body starts in the last part of a lease that was not renewed: its result might come too late. */
const SAFE_SHARE = 0.8;
const BEATS_PER_LEASE = 3;
const MAX_RETRY_MS = 1_000;

/**
 * The right of this process to its tickets: one row, renewed by one statement. Its times are the process's own and
 * counted from before the request, so that they end before the database's.
 */
export class Lease {
  /** A change holds from the next registration or beat on. */
  leaseMs: number;
  readonly #store: Store;
  readonly #runtime: Runtime;
  readonly #newId: () => string;
  readonly #events: LeaseEvents;
  /** The runner's id in the database; null before it is registered. Only the lease sets it. */
  id: string | null = null;
  #registering: Promise<string> | null = null;
  #renewedAtMs = -Infinity;
  /** Since when every call was answered: others are judged only after one lease of that. */
  #inTouchSinceMs = -Infinity;
  #clockGapMs = 0;
  #timer: Cancel | null = null;
  #isHeld = false;
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

  /** After an outage all leases look expired, and their owners are just coming back. */
  get judgesInMs(): number {
    return Math.max(0, this.#inTouchSinceMs + this.leaseMs - this.#runtime.clock.now());
  }

  /** About how long until the database's clock shows `at`. */
  msUntil(at: DbTime): number {
    return Math.max(0, at - this.now);
  }

  /** About what the database's clock shows. */
  get now(): DbTime {
    return this.#runtime.clock.now() + this.#clockGapMs;
  }

  heard(now: DbTime): void {
    this.#clockGapMs = now - this.#runtime.clock.now();
  }

  lostTouch(): void {
    this.#inTouchSinceMs = Infinity;
  }

  /** A registered runner whose lease is young enough to claim with. */
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

  /** This id is used up; the next claim registers another. */
  died(): void {
    if (this.id === null) return;
    this.id = null;
    this.#renewedAtMs = -Infinity;
    this.#events.died();
  }

  /** Beats while something is leased; an idle process asks nothing of the database. */
  hold(isHeld: boolean): void {
    if (this.#isHeld === isHeld || this.#isAbandoned) return;
    this.#isHeld = isHeld;
    this.#timer?.();
    this.#timer = null;
    if (isHeld) this.#plan(this.leaseMs / BEATS_PER_LEASE);
  }

  #plan(ms: number): void {
    this.#timer = this.#runtime.scheduler.after(ms, () => {
      this.beat().then(
        () => this.#planIfHeld(this.leaseMs / BEATS_PER_LEASE),
        () => this.#planIfHeld(Math.min(MAX_RETRY_MS, this.leaseMs / BEATS_PER_LEASE)),
      );
    });
  }

  #planIfHeld(ms: number): void {
    if (this.#isHeld) this.#plan(ms);
  }

  /** A clean goodbye: others need not wait for the lease to run out. */
  async retire(): Promise<void> {
    const id = this.id;
    this.hold(false);
    if (id === null) return;
    this.id = null;
    this.#renewedAtMs = -Infinity;
    await this.#store.retire(id);
  }

  /** As if the process had died: nothing is said to anyone. */
  abandon(): void {
    this.hold(false);
    this.#isAbandoned = true;
    this.id = null;
    this.#renewedAtMs = -Infinity;
  }
}

import { describeError, encodeError } from "../model/error-codec.js";
import type { HookName, Hooks } from "../model/hooks.js";
import type { Logger } from "../model/logger.js";
import type { Cancel, Runtime } from "../model/seams.js";
import type { HookRow, HookSettlement, Store } from "../store/store.js";
import { Delivery, type DeliveryOutcome } from "./delivery.js";
import { namesOf } from "./handlers.js";

/** Deliveries that a process has under way at a time. */
const CONCURRENCY = 20;
const TIMEOUT_MS = 30_000;
/** After this a delivery that was not settled is made again: longer than the timeout and the store's own retries. */
export const DELIVERY_LEASE_MS = 60_000;
/** With the delays below, the last attempt is an hour after the first. */
const MAX_ATTEMPTS = 15;
const FIRST_RETRY_MS = 1_000;
const MAX_RETRY_MS = 10 * 60_000;
/** After a look that failed. */
const LOOK_AGAIN_MS = 5_000;
/** How long a stop waits for the store to hear of what was cut off. */
const GIVE_BACK_MS = 5_000;

type HookStore = Pick<Store, "registerHooks" | "claimHooks" | "settleHooks">;

/**
 * Brings rows of the outbox to the hooks of this process, beside all other work: nobody waits for a hook. Looks when a
 * row may have been written here, when a delivery that failed is to be tried again, and with every tick.
 */
export class Deliverer {
  readonly names: readonly HookName[];
  readonly #hooks: Hooks;
  readonly #store: HookStore;
  readonly #runtime: Runtime;
  readonly #logger: Logger;

  #registration: Promise<void> | null = null;
  #looking: Promise<void> | null = null;
  /** There may be rows that the last look did not take. */
  #hasMore = false;
  readonly #running = new Set<Delivery>();
  readonly #ended: HookSettlement[] = [];
  #settling: Promise<void> | null = null;
  /** By the second for which they are set: so there are never many. */
  readonly #alarms = new Map<number, Cancel>();
  #isStopping = false;
  #isClosed = false;

  constructor(store: HookStore, hooks: Hooks, runtime: Runtime, logger: Logger) {
    this.#store = store;
    this.#hooks = hooks;
    this.#runtime = runtime;
    this.#logger = logger;
    this.names = namesOf(hooks);
  }

  has(name: HookName): boolean {
    return this.names.includes(name);
  }

  /** Resolves when the database knows the hooks of this process: from then on every process writes for them. */
  registered(): Promise<void> {
    if (this.names.length === 0) return done;
    this.#registration ??= this.#store.registerHooks(this.names).catch((error: unknown) => {
      this.#registration = null;
      throw error;
    });
    return this.#registration;
  }

  /** Those whose next delivery is worth waking up for. */
  get awaited(): readonly HookName[] {
    return this.#running.size < CONCURRENCY && !this.#isStopping ? this.names : [];
  }

  /** A row for this hook may have been written. */
  posted(name: HookName): void {
    if (this.has(name)) void this.look();
  }

  /** Takes due rows, as far as there is room. Resolves when they are on their way. */
  look(): Promise<void> {
    if (this.names.length === 0 || this.#isStopping || this.#isClosed) return done;
    this.#hasMore = true;
    this.#looking ??= this.#lookWhileThereIsRoom().finally(() => {
      this.#looking = null;
    });
    return this.#looking;
  }

  /** Resolves when no look is under way. */
  looked(): Promise<void> {
    return this.#looking ?? done;
  }

  async #lookWhileThereIsRoom(): Promise<void> {
    while (this.#hasMore && !this.#isStopping && !this.#isClosed) {
      const limit = CONCURRENCY - this.#running.size;
      if (limit === 0) return; // the next that ends looks again
      this.#hasMore = false;
      try {
        await this.registered();
        const rows = await this.#store.claimHooks({
          hooks: this.names,
          limit,
          leaseMs: DELIVERY_LEASE_MS,
          maxAttempts: MAX_ATTEMPTS,
        });
        if (this.#isClosed) return;
        if (rows.length === limit) this.#hasMore = true;
        for (const row of rows) this.#begin(row);
      } catch (error) {
        if (this.#isClosed) return;
        this.#logger.warn("hooks.failed", { error: String(error) });
        this.#lookIn(LOOK_AGAIN_MS);
      }
    }
  }

  #begin(row: HookRow): void {
    const delivery = new Delivery(row, this.#hooks, this.#runtime, TIMEOUT_MS);
    this.#running.add(delivery);
    void delivery.outcome.then((outcome) => {
      this.#running.delete(delivery);
      if (outcome !== null) this.#settle(row, outcome);
      if (this.#hasMore) void this.look();
    });
  }

  #settle(row: HookRow, outcome: DeliveryOutcome): void {
    const { id, claimNumber } = row;
    const failure = outcome.kind === "done" ? null : this.#failure(row, outcome.error);
    this.#ended.push({ id, claimNumber, failure });
    this.#settling ??= this.#settleAll().finally(() => {
      this.#settling = null;
    });
  }

  #failure({ id, hook, attempts }: HookRow, thrown: unknown): HookSettlement["failure"] {
    const error = encodeError(thrown);
    const mostMs = Math.min(MAX_RETRY_MS, FIRST_RETRY_MS * 2 ** (attempts - 1));
    const inMs = Math.round(mostMs * (0.5 + this.#runtime.random.next() / 2));
    const retryInMs = attempts < MAX_ATTEMPTS ? inMs : null;
    const { name, message } = describeError(error);
    const fields = { hook, id, attempt: attempts, error: `${name}: ${message}` };
    if (retryInMs === null) this.#logger.error("hook.givenUp", fields);
    else this.#logger.warn("hook.failed", { ...fields, retryInMs });
    return { error, retryInMs };
  }

  /** While some are being settled, others collect: one write for all of them. */
  async #settleAll(): Promise<void> {
    while (this.#ended.length > 0 && !this.#isClosed) {
      const settlements = this.#ended.splice(0);
      try {
        await this.#store.settleHooks(settlements);
        for (const { failure } of settlements) {
          if (failure !== null && failure.retryInMs !== null) this.#lookIn(failure.retryInMs);
        }
      } catch (error) {
        // Nothing is lost: they are delivered again after their lease.
        this.#logger.warn("hooks.failed", { error: String(error) });
        this.#lookIn(DELIVERY_LEASE_MS);
      }
    }
  }

  /** Where no runner ticks, nobody else would try again. */
  #lookIn(ms: number): void {
    if (this.#isStopping || this.#isClosed) return;
    const nowMs = this.#runtime.clock.now();
    const second = Math.ceil((nowMs + ms) / 1_000);
    if (this.#alarms.has(second)) return;
    const ring = (): void => {
      this.#alarms.delete(second);
      void this.look();
    };
    this.#alarms.set(second, this.#runtime.scheduler.after(second * 1_000 - nowMs, ring));
  }

  #cancelAlarms(): void {
    for (const cancel of this.#alarms.values()) cancel();
    this.#alarms.clear();
  }

  /** Resolves when nothing is under way; true if that is so within `ms`, in real time. */
  async quietWithin(ms: number): Promise<boolean> {
    if (!this.#isBusy) return true;
    const { scheduler } = this.#runtime;
    return this.#quietBefore((late) => scheduler.grace(ms, late));
  }

  /** Lets deliveries end, up to `timeoutMs`; the others fail, and are made again elsewhere or later. */
  async stop(timeoutMs: number): Promise<void> {
    const { scheduler } = this.#runtime;
    this.#isStopping = true;
    this.#cancelAlarms();
    if (this.#isBusy && !(await this.#quietBefore((late) => scheduler.after(timeoutMs, late)))) {
      for (const delivery of this.#running) delivery.cutOff("the process stops");
      await this.#quietBefore((late) => scheduler.after(GIVE_BACK_MS, late));
    }
    this.#isStopping = false;
  }

  /** As if the process had died here and now: for tests. */
  crash(): void {
    this.#isClosed = true;
    this.#cancelAlarms();
    for (const delivery of this.#running) delivery.abandon();
  }

  get #isBusy(): boolean {
    return this.#looking !== null || this.#running.size > 0 || this.#settling !== null;
  }

  #quietBefore(timer: (late: () => void) => Cancel): Promise<boolean> {
    return new Promise((resolve) => {
      const cancel = timer(() => resolve(false));
      void this.#quiet().then(() => {
        cancel();
        resolve(true);
      });
    });
  }

  async #quiet(): Promise<void> {
    while (this.#isBusy) {
      const running = Array.from(this.#running, ({ outcome }) => outcome);
      await Promise.allSettled([this.#looking, this.#settling, ...running]);
    }
  }
}

const done = Promise.resolve();

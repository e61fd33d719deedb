import { describeError, encodeError } from "../model/error-codec.js";
import type { HookName, Hooks } from "../model/hooks.js";
import type { Logger } from "../model/logger.js";
import type { Cancel, Runtime } from "../model/seams.js";
import type { Notices } from "../store/notices.js";
import type { HookRow, HookSettlement, Store } from "../store/store.js";
import { Delivery, type DeliveryOutcome } from "./delivery.js";
import { namesOf } from "./handlers.js";

/** Deliveries to one hook that a process has under way at a time: one that hangs leaves the others alone. */
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

type HookStore = Pick<Store, "registerHooks" | "claimHooks" | "settleHooks" | "nextDueInMs">;

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
  /** For these there may be rows that the last look did not take. */
  readonly #mayHaveMore = new Set<HookName>();
  readonly #running = new Set<Delivery>();
  readonly #ended: HookSettlement[] = [];
  #settling: Promise<void> | null = null;
  /** By the second for which they are set: so there are never many. */
  readonly #alarms = new Map<number, Cancel>();
  /** An alarm has rung, and nobody has asked since when the next delivery is due. */
  #owesAlarm = false;
  #isStopping = false;
  #isClosed = false;

  constructor(
    store: HookStore,
    hooks: Hooks,
    runtime: Runtime,
    logger: Logger,
    notices: Pick<Notices, "posted">,
  ) {
    this.#store = store;
    this.#hooks = hooks;
    this.#runtime = runtime;
    this.#logger = logger;
    this.names = namesOf(hooks);
    if (this.names.length > 0) notices.posted.subscribe((name) => this.#posted(name));
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
    return this.#isStopping ? [] : this.names.filter((name) => this.#roomFor(name) > 0);
  }

  /** A row for this hook may have been written. */
  #posted(name: HookName): void {
    if (this.has(name)) void this.look();
  }

  /** Takes due rows, as far as there is room. Resolves when they are on their way. */
  look(): Promise<void> {
    for (const name of this.names) this.#mayHaveMore.add(name);
    return this.#lookOn();
  }

  #lookOn(): Promise<void> {
    if (this.names.length === 0 || this.#isStopping || this.#isClosed) return done;
    this.#looking ??= this.#lookWhileThereIsRoom();
    return this.#looking;
  }

  #roomFor(name: HookName): number {
    const running = Array.from(this.#running).filter(({ row }) => row.hook === name);
    return CONCURRENCY - running.length;
  }

  /** Resolves when no look is under way. */
  looked(): Promise<void> {
    return this.#looking ?? done;
  }

  async #lookWhileThereIsRoom(): Promise<void> {
    try {
      await this.registered();
      for (;;) {
        // Without room, the next delivery that ends looks on.
        const hook = this.names.find((name) => this.#mayHaveMore.has(name) && this.#roomFor(name));
        if (this.#isStopping || this.#isClosed) return;
        if (hook !== undefined) {
          this.#mayHaveMore.delete(hook);
          await this.#take(hook, this.#roomFor(hook));
        } else if (this.#owesAlarm) await this.#setNextAlarm();
        else return;
      }
    } catch (error) {
      if (this.#isClosed) return;
      this.#logger.warn("hooks.failed", { error: String(error) });
      this.#lookIn(LOOK_AGAIN_MS);
    } finally {
      // Here, so that no hint falls between the last look and the end.
      this.#looking = null;
    }
  }

  async #take(hook: HookName, limit: number): Promise<void> {
    const rows = await this.#store.claimHooks({
      hooks: [hook],
      limit,
      leaseMs: DELIVERY_LEASE_MS,
      maxAttempts: MAX_ATTEMPTS,
    });
    if (this.#isClosed) return;
    if (rows.length === limit) this.#mayHaveMore.add(hook);
    for (const row of rows) this.#begin(row);
  }

  #begin(row: HookRow): void {
    const delivery = new Delivery(row, this.#hooks, this.#runtime, TIMEOUT_MS);
    this.#running.add(delivery);
    void delivery.outcome.then((outcome) => {
      this.#running.delete(delivery);
      if (outcome !== null) this.#settle(row, outcome);
      if (this.#mayHaveMore.has(row.hook)) void this.#lookOn();
    });
  }

  #settle(row: HookRow, outcome: DeliveryOutcome): void {
    if (this.#isClosed) return;
    const { id, claimNumber } = row;
    const failure = outcome.kind === "done" ? null : this.#failure(row, outcome.error);
    this.#ended.push({ id, claimNumber, failure });
    this.#settling ??= this.#settleAll();
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
    do {
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
    } while (this.#ended.length > 0 && !this.#isClosed);
    this.#settling = null;
  }

  /**
   * The alarm may have rung early by the store's clock, or for a row whose claim was never answered: only the store
   * knows when to look again.
   */
  async #setNextAlarm(): Promise<void> {
    this.#owesAlarm = false;
    const dueInMs = await this.#store.nextDueInMs([], this.names);
    if (dueInMs !== null) this.#lookIn(dueInMs);
  }

  /** Where no runner ticks, nobody else would try again. */
  #lookIn(ms: number): void {
    if (this.#isStopping || this.#isClosed) return;
    const nowMs = this.#runtime.clock.now();
    const second = Math.ceil((nowMs + ms) / 1_000);
    if (this.#alarms.has(second)) return;
    const ring = (): void => {
      this.#alarms.delete(second);
      this.#owesAlarm = true;
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

  /** For good: what is still under way is abandoned, as if the process had died. */
  close(): void {
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

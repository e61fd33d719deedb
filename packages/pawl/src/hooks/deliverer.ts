import { describeError, encodeError } from "../model/error-codec.js";
import type { HookName, Hooks } from "../model/hooks.js";
import type { Logger } from "../model/logger.js";
import type { Cancel, Runtime } from "../model/seams.js";
import type { Notices } from "../store/notices.js";
import type { Store } from "../store/store.js";
import type { HookRow, HookSettlement } from "../store/outbox.js";
import { Delivery, type DeliveryOutcome } from "./delivery.js";
import { namesOf } from "./handlers.js";

/**
 * How many deliveries to each hook a process has under way at a time. A hook that hangs does not hold up the others.
 */
const CONCURRENCY = 20;
const TIMEOUT_MS = 30_000;
/**
 * A delivery that is not settled after this long is made again. It is longer than the timeout and the store's retries.
 */
export const DELIVERY_LEASE_MS = 60_000;
/** With the delays below, the last attempt comes about an hour after the first at most. */
const MAX_ATTEMPTS = 15;
const FIRST_RETRY_MS = 1_000;
const MAX_RETRY_MS = 10 * 60_000;
/** The pause after a look that failed. */
const LOOK_AGAIN_MS = 5_000;
/** How long a stop waits for the store to learn of the deliveries that were cut off. */
const GIVE_BACK_MS = 5_000;

type HookStore = Pick<Store, "registerHooks" | "claimHooks" | "settleHooks" | "nextDueInMs">;

/**
 * Takes rows of the outbox to the hooks of this process. Nothing else waits for a hook. The deliverer looks for rows
 * when this process may have written one, when a failed delivery is due again, and with every tick.
 */
export class Deliverer {
  readonly names: readonly HookName[];
  readonly #hooks: Hooks;
  readonly #store: HookStore;
  readonly #runtime: Runtime;
  readonly #logger: Logger;

  #registration: Promise<void> | null = null;
  #looking: Promise<void> | null = null;
  /** The hooks for which there may be rows that the last look did not take. */
  readonly #mayHaveMore = new Set<HookName>();
  readonly #running = new Set<Delivery>();
  readonly #ended: HookSettlement[] = [];
  #settling: Promise<void> | null = null;
  /** The alarms, at most one for each second: so there are never many. */
  readonly #alarms = new Map<number, Cancel>();
  /** True from when an alarm has rung until the store was asked when the next delivery is due. */
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

  /**
   * Resolves when the database knows the hooks of this process. From then on every process writes deliveries for them.
   */
  registered(): Promise<void> {
    if (this.names.length === 0) return done;
    this.#registration ??= this.#store.registerHooks(this.names).catch((error: unknown) => {
      this.#registration = null;
      throw error;
    });
    return this.#registration;
  }

  /** The hooks whose next delivery is worth waking up for, because there is room for it. */
  get awaited(): readonly HookName[] {
    return this.#isStopping ? [] : this.names.filter((name) => this.#roomFor(name) > 0);
  }

  /** Looks for rows, because one may have been written for this hook. */
  #posted(name: HookName): void {
    if (this.has(name)) void this.look();
  }

  /** Takes due rows, as far as there is room. Resolves when their deliveries have begun. */
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
        // Without room, the next delivery that ends continues the look.
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
      // The field is cleared in here, so that no hint is lost between the last look and the end of this promise.
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

  /** Settles ended deliveries, all in one write. While a write is on its way, the next ones collect. */
  async #settleAll(): Promise<void> {
    do {
      const settlements = this.#ended.splice(0);
      try {
        await this.#store.settleHooks(settlements);
        for (const { failure } of settlements) {
          if (failure !== null && failure.retryInMs !== null) this.#lookIn(failure.retryInMs);
        }
      } catch (error) {
        // Nothing is lost: these rows are delivered again after their lease.
        this.#logger.warn("hooks.failed", { error: String(error) });
        this.#lookIn(DELIVERY_LEASE_MS);
      }
    } while (this.#ended.length > 0 && !this.#isClosed);
    this.#settling = null;
  }

  /**
   * Asks the store when to look again; only the store knows. The alarm may have rung early by the store's clock, or the
   * answer to a row's claim may have been lost.
   */
  async #setNextAlarm(): Promise<void> {
    this.#owesAlarm = false;
    const dueInMs = await this.#store.nextDueInMs([], this.names);
    if (dueInMs !== null) this.#lookIn(dueInMs);
  }

  /** Sets an alarm to look again. In a process without a runner nothing else would. */
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

  /** Resolves to true as soon as nothing is under way, or to false after `ms` of real time. */
  async quietWithin(ms: number): Promise<boolean> {
    if (!this.#isBusy) return true;
    const { scheduler } = this.#runtime;
    return this.#quietBefore((late) => scheduler.grace(ms, late));
  }

  /** Lets deliveries end for up to `timeoutMs`. The others fail, and are made again elsewhere or later. */
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

  /** Ends the deliverer for good. Deliveries that are still under way are abandoned, as if the process had died. */
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

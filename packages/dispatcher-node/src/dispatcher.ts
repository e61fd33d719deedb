import { setImmediate as macrotask } from "node:timers/promises";
import type { Runner } from "pawl";
import { MAX_TIMER_MS } from "./timeout.js";

export type PollBounds = { readonly minMs: number; readonly maxMs: number };

/** The factors by which the poll gets shorter after a look that found work, and longer after one that found none. */
const ON_WORK = 0.8;
const WHEN_IDLE = 1.2;
/**
 * The first pause when something is due and a claim does not get it, because it is locked or was taken just now. The
 * pause doubles each time.
 */
const FRUITLESS_MS = 5;
/** How long after finding runs to ask when the next work is due: the runs that were found go first. */
const SETTLE_MS = 30;
const FIRST_BACKOFF_MS = 250;
const MAX_BACKOFF_MS = 5_000;

/**
 * Decides when a runner looks for work: on a hint, when something falls due, and with every poll. Times are those of
 * `performance.now()`. They need not be exact: after each look the store says when to look next.
 */
export class Dispatcher {
  readonly #runner: Runner;
  readonly #poll: PollBounds;
  #pollMs: number;
  #fruitless = 0;
  #settledAtMs = 0;
  #failures = 0;
  #isStopped = false;
  /** The earliest time for which work was announced since the last look began. */
  #dueAtMs = Infinity;
  /** Ends the current rest if its time has come, or else sets its timer anew. Null while there is no rest. */
  #reconsider: (() => void) | null = null;

  constructor(runner: Runner, poll: PollBounds) {
    this.#runner = runner;
    this.#poll = poll;
    this.#pollMs = poll.minMs;
  }

  /** Notes that there may be work, now or in `inMs`. All hints that come during a look lead to one more look. */
  readonly wake = (inMs = 0): void => {
    const atMs = performance.now() + inMs;
    if (atMs >= this.#dueAtMs) return;
    this.#dueAtMs = atMs;
    this.#reconsider?.();
  };

  /**
   * Notes that the runner asks the store for work only now, maybe long after its look began. Hints that came until now
   * are answered by this look and need no other.
   */
  asking(): void {
    if (this.#dueAtMs <= performance.now()) this.#dueAtMs = Infinity;
  }

  stop(): void {
    this.#isStopped = true;
    this.#reconsider?.();
  }

  /** Looks for work until `stop`. Never rejects. */
  async run(): Promise<void> {
    while (!this.#isStopped) {
      // One look answers all hints that come together. The pause also lets other work of the process have its turn.
      await macrotask();
      this.#dueAtMs = Infinity;
      await this.#rest(await this.#lookOrBackOff());
    }
  }

  async #lookOrBackOff(): Promise<number> {
    try {
      const restMs = await this.#look();
      this.#failures = 0;
      return restMs;
    } catch (error) {
      // A look that began before the stop may find the store closed.
      if (this.#isStopped) return 0;
      const mostMs = Math.min(MAX_BACKOFF_MS, FIRST_BACKOFF_MS * 2 ** this.#failures);
      this.#failures += 1;
      const retryInMs = Math.round(mostMs * (0.5 + Math.random() / 2));
      this.#runner.logger.warn("claim.failed", { error: String(error), retryInMs });
      return retryInMs;
    }
  }

  /** Claims runs that are due, as far as there is room. Returns how long to rest, in milliseconds. */
  async #look(): Promise<number> {
    let found = 0;
    while (!this.#isStopped) {
      const room = this.#runner.freeSlots;
      const { count, done } = await this.#runner.start();
      // Turns may be long, so the dispatcher does not wait for them.
      done.catch((error: unknown) => {
        this.#runner.logger.error("turn.failed", { error: String(error) });
      });
      found += count;
      this.#adapt(count > 0);
      // Without room there is nothing to look for; the runner wakes the dispatcher when a slot becomes free.
      if (room === 0 || this.#runner.freeSlots === 0) return this.#pollMs;
      if (count < room) break;
    }
    if (found > 0) {
      this.#fruitless = 0;
      this.#settledAtMs = performance.now() + SETTLE_MS;
    }
    // This also delays the question of a later look that found nothing.
    const unsettledMs = this.#settledAtMs - performance.now();
    if (unsettledMs > 0) await this.#rest(Math.min(unsettledMs, this.#pollMs));
    // If a hint came meanwhile there is no need to ask.
    if (this.#isStopped || this.#dueAtMs <= performance.now()) return 0;
    const dueInMs = await this.#runner.nextLookInMs();
    this.#fruitless = found === 0 && dueInMs === 0 ? this.#fruitless + 1 : 0;
    const leastMs = this.#fruitless === 0 ? 0 : FRUITLESS_MS * 2 ** (this.#fruitless - 1);
    return Math.min(Math.max(dueInMs, leastMs), this.#pollMs);
  }

  #adapt(foundWork: boolean): void {
    const { minMs, maxMs } = this.#poll;
    const wanted = this.#pollMs * (foundWork ? ON_WORK : WHEN_IDLE);
    this.#pollMs = Math.min(maxMs, Math.max(minMs, wanted));
  }

  #rest(ms: number): Promise<void> {
    const endsAtMs = performance.now() + ms;
    let timer: NodeJS.Timeout | undefined;
    return new Promise<void>((resolve) => {
      this.#reconsider = () => {
        clearTimeout(timer);
        // While the store cannot be reached, a hint does not shorten the pause.
        const atMs = this.#failures > 0 ? endsAtMs : Math.min(endsAtMs, this.#dueAtMs);
        const leftMs = atMs - performance.now();
        if (this.#isStopped || leftMs <= 0) return resolve();
        timer = setTimeout(resolve, Math.min(Math.ceil(leftMs), MAX_TIMER_MS));
      };
      this.#reconsider();
    }).finally(() => {
      this.#reconsider = null;
    });
  }
}

import { AsyncLocalStorage } from "node:async_hooks";
import type { Cancel, Runtime } from "../../src/model/seams.js";
import { webRuntime } from "../../src/runtime.js";
import type { ManualClock } from "../../src/testing/clock.js";
import { Dice } from "./random.js";

type Timer = { at: number; order: number; run: () => void };

const asyncContext = new AsyncLocalStorage<unknown>();

/**
 * The one loop for everything that happens: tasks in order, then the next timer. Time passes only between
 * them, so a seed gives one history.
 */
export class World {
  readonly dice: Dice;
  /** The database's clock, which is the true one. */
  readonly clock: ManualClock;
  readonly #startMs: number;
  readonly #tasks: (() => void)[] = [];
  readonly #timers: Timer[] = [];
  #order = 0;
  /** Counts the tasks and timers that have run. All microtasks of one are done before the next. */
  turn = 0;

  constructor(seed: number, clock: ManualClock) {
    this.dice = new Dice(seed);
    this.clock = clock;
    this.#startMs = clock.now();
  }

  get elapsedMs(): number {
    return this.now - this.#startMs;
  }

  get now(): number {
    return this.clock.now();
  }

  task(run: () => void): void {
    this.#tasks.push(run);
  }

  after(ms: number, run: () => void): Cancel {
    const timer = { at: this.now + Math.max(0, Math.ceil(ms)), order: this.#order++, run };
    // Timers are sorted by insertion, because there are few and the next one is asked for often.
    let n = this.#timers.length;
    while (n > 0 && (this.#timers[n - 1] as Timer).at > timer.at) n -= 1;
    this.#timers.splice(n, 0, timer);
    return () => {
      const index = this.#timers.indexOf(timer);
      if (index >= 0) this.#timers.splice(index, 1);
    };
  }

  sleep(ms: number): Promise<void> {
    return new Promise((resolve) => void this.after(ms, resolve));
  }

  /** Runs until `done` says so, or nothing is left to happen, or `until` has come. */
  async run(until: number, done: () => boolean): Promise<void> {
    for (;;) {
      await drained();
      if (done()) return;
      const task = this.#tasks.shift();
      if (task !== undefined) {
        this.turn += 1;
        task();
        continue;
      }
      const next = this.#timers[0];
      if (next === undefined || next.at > until) return;
      this.#timers.shift();
      this.clock.set(Math.max(this.now, next.at));
      this.turn += 1;
      next.run();
    }
  }
}

/** Resolves when every queued microtask has run. */
function drained(): Promise<void> {
  return new Promise((resolve) => void setImmediate(resolve));
}

/** A process that can stop for a while, or for ever, between any two things it does. */
export class Process {
  readonly name: string;
  readonly world: World;
  readonly runtime: Runtime;
  isAlive = true;
  #isFrozen = false;
  readonly #held: (() => void)[] = [];

  constructor(world: World, name: string, skewMs: number) {
    this.world = world;
    this.name = name;
    const dice = world.dice.fork();
    this.runtime = {
      clock: { now: () => world.now + skewMs },
      random: dice,
      scheduler: {
        after: (ms, callback) => this.after(ms, callback),
        grace: (ms, callback) => this.after(ms, callback),
        sleep: (ms) => new Promise((resolve) => void this.after(ms, resolve)),
        stride: () => webRuntime.scheduler.stride(),
        macrotask: (callback) => world.task(() => this.enter(callback)),
        round: (callback) => world.task(() => this.enter(callback)),
      },
      context: {
        run: (value, callback) => asyncContext.run(value, callback),
        get: () => asyncContext.getStore(),
      },
    };
  }

  after(ms: number, callback: () => void): Cancel {
    let isCancelled = false;
    const cancel = this.world.after(ms, () => this.enter(() => isCancelled || callback()));
    return () => {
      isCancelled = true;
      cancel();
    };
  }

  /** Goes on in this process, unless it is dead or frozen. */
  enter(callback: () => void): void {
    if (!this.isAlive) return;
    if (this.#isFrozen) this.#held.push(callback);
    else callback();
  }

  get isFrozen(): boolean {
    return this.#isFrozen;
  }

  freeze(ms: number): void {
    if (this.#isFrozen) return;
    this.#isFrozen = true;
    this.world.after(ms, () => {
      this.#isFrozen = false;
      for (const callback of this.#held.splice(0)) this.world.task(() => this.enter(callback));
    });
  }
}

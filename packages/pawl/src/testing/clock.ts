import type { Clock } from "../model/seams.js";

/** A clock that moves only when told to, in milliseconds since the epoch. */
export class ManualClock implements Clock {
  #now: number;

  constructor(startMs = 1_700_000_000_000) {
    this.#now = startMs;
  }

  now(): number {
    return this.#now;
  }

  /** Moves the clock forward by this many milliseconds. */
  advance(ms: number): void {
    this.#now += ms;
  }

  /** Sets the clock to this time. */
  set(ms: number): void {
    this.#now = ms;
  }
}

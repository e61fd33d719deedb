import type { Random } from "../../src/model/seams.js";

/** Chance from a seed: the same seed makes the same choices. */
export class Dice implements Random {
  #state: number;

  constructor(seed: number) {
    this.#state = seed >>> 0;
    for (let n = 0; n < 4; n++) this.next();
  }

  /** Returns a number from 0 up to 1, by mulberry32. */
  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    let t = this.#state;
    t = Math.imul(t ^ (t >>> 15), t | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296;
  }

  bytes(target: Uint8Array): void {
    for (let i = 0; i < target.length; i++) target[i] = this.upTo(255);
  }

  /** Returns a whole number from 0 to `max`. */
  upTo(max: number): number {
    return Math.floor(this.next() * (max + 1));
  }

  between(min: number, max: number): number {
    return min + this.upTo(max - min);
  }

  chance(probability: number): boolean {
    return this.next() < probability;
  }

  pick<T>(items: readonly T[]): T {
    return items[this.upTo(items.length - 1)] as T;
  }

  fork(): Dice {
    return new Dice(this.upTo(0x7fffffff));
  }
}

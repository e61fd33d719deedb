/** The keys that were added last. Beyond so many, the older half is forgotten at once: to look for the oldest each time takes long. */
export class Recent {
  readonly #max: number;
  readonly #keys = new Set<string>();

  constructor(max: number) {
    this.#max = max;
  }

  add(key: string): void {
    this.#keys.delete(key);
    if (this.#keys.size >= this.#max) this.#forgetHalf();
    this.#keys.add(key);
  }

  /** Whether it was there. */
  take(key: string): boolean {
    return this.#keys.delete(key);
  }

  #forgetHalf(): void {
    let left = this.#max / 2;
    for (const key of this.#keys) {
      if (left-- <= 0) return;
      this.#keys.delete(key);
    }
  }
}

/**
 * The values that were noted last, by key. When there are too many, the older half is forgotten at once, because
 * finding the oldest one each time takes long.
 */
export class BoundedMap<T> {
  readonly #max: number;
  readonly #noted = new Map<string, T>();

  constructor(max: number) {
    this.#max = max;
  }

  note(key: string, value: T): void {
    this.#noted.delete(key);
    if (this.#noted.size >= this.#max) this.#forgetHalf();
    this.#noted.set(key, value);
  }

  get(key: string): T | undefined {
    return this.#noted.get(key);
  }

  /** Returns the value, and forgets it. */
  take(key: string): T | undefined {
    const value = this.#noted.get(key);
    if (value !== undefined) this.#noted.delete(key);
    return value;
  }

  #forgetHalf(): void {
    let left = this.#max / 2;
    for (const key of this.#noted.keys()) {
      if (left-- <= 0) return;
      this.#noted.delete(key);
    }
  }
}

const DEADLINE_MS = 30_000;

/** Looks until the answer is not false, null or undefined. The deadline turns a hang into a failure. */
export async function until<T>(
  look: () => Promise<T> | T,
  what: string,
  lookAgainMs = 5,
): Promise<Exclude<T, false | null | undefined>> {
  const deadline = performance.now() + DEADLINE_MS;
  for (;;) {
    const seen = await look();
    if (seen !== false && seen !== null && seen !== undefined) {
      return seen as Exclude<T, false | null | undefined>;
    }
    if (performance.now() > deadline) throw new Error(`after ${DEADLINE_MS} ms: not ${what}`);
    await new Promise((resolve) => setTimeout(resolve, lookAgainMs));
  }
}

/** Something that happens once, awaited by others. */
export class Signal {
  readonly #promise: Promise<void>;
  #resolve: () => void = () => {};

  constructor() {
    this.#promise = new Promise((resolve) => (this.#resolve = resolve));
  }

  give(): void {
    this.#resolve();
  }

  wait(): Promise<void> {
    return this.#promise;
  }
}

/**
 * The runner's line to its dispatcher. It tells when to look for work, and whether work is left that nobody has looked
 * for.
 */
export class Dispatch {
  #wake: ((inMs: number) => void) | null = null;
  /** A dispatcher is at work. */
  isServing = false;
  /** The last claim took everything that was due. New work may start here at once, because no older work is left. */
  claimedAllDue = false;

  serve(wake: (inMs: number) => void): void {
    this.#wake = wake;
    this.isServing = true;
  }

  stop(): void {
    this.#wake = null;
    this.isServing = false;
  }

  /** Tells the dispatcher that there will be work in `inMs`. */
  soon(inMs: number): void {
    this.#wake?.(inMs);
  }
}

/** The runner's line to its dispatcher: when to look for work, and whether work is left that nobody has looked for. */
export class Dispatch {
  #wake: ((inMs: number) => void) | null = null;
  /** A dispatcher is at work. */
  isServing = false;
  /** The last claim took all that was due: new work may start here at once, since none is older. */
  lastClaimWasShort = false;

  serve(wake: (inMs: number) => void): void {
    this.#wake = wake;
    this.isServing = true;
  }

  stop(): void {
    this.#wake = null;
    this.isServing = false;
  }

  /** There will be work in so many ms. */
  soon(inMs: number): void {
    this.#wake?.(inMs);
  }

  /** A slot is free: if a full claim has left work behind, there is room for it now. */
  slotFreed(): void {
    if (!this.lastClaimWasShort) this.#wake?.(0);
  }
}

import type { Target } from "./records.js";

/** What one process tells the others on its database. Any of them may get lost: nothing is decided by a hint. */
export type Hint =
  /** Something is due, and whoever tells does not see to it. */
  | { readonly kind: "due" }
  /** A run that this runner holds was changed: an event, pause, terminate, restart … */
  | { readonly kind: "changed"; readonly owner: string; readonly target: Target }
  /** Somebody wants to be told when this run has ended. */
  | { readonly kind: "awaited"; readonly target: Target }
  | { readonly kind: "ended"; readonly target: Target };

/** Where a process that has told something can be answered; no other hears that. */
export type Teller = string;

export interface HintListener {
  hear(hint: Hint, teller: Teller): void;
  /** It listens, from now on or again: what was told before may have been missed. */
  listening(): void;
  /** It does not hear anything for a while; null if it never will. */
  failed(error: unknown, retryInMs: number | null): void;
}

/** A way to tell other processes, where the database has one. */
export interface HintChannel {
  readonly isListening: boolean;
  /** Hears the others, never itself, until it is cancelled. */
  listen(listener: HintListener): () => void;
  /**
   * All, or one. Soon, together with others, and beside everything else. Resolves when it was told or got lost; never
   * rejects.
   */
  tell(hint: Hint, to?: Teller): Promise<void>;
}

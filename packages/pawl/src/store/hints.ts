import type { Target } from "../model/target.js";

/** A message from one process to the others on its database. Any hint may get lost, so nothing is decided by one. */
export type Hint =
  /** Something is due, and the process that tells it does not see to it itself. */
  | { readonly kind: "due" }
  /** A run that the runner `owner` holds was changed by an event, a pause, a terminate, a restart … */
  | { readonly kind: "changed"; readonly owner: string; readonly target: Target }
  /** The sender wants to be told when this run has ended. */
  | { readonly kind: "awaited"; readonly target: Target }
  | { readonly kind: "ended"; readonly target: Target };

/** The address of a process that has told a hint. An answer sent there is heard by no other process. */
export type Teller = string;

export interface HintListener {
  hear(hint: Hint, teller: Teller): void;
  /** The channel listens from now on, or again. Hints that were told before may have been missed. */
  listening(): void;
  /** The channel hears nothing until it tries again; null if it never will. */
  failed(error: unknown, retryInMs: number | null): void;
}

/** A way to tell hints to other processes, where the database has one. */
export interface HintChannel {
  readonly isListening: boolean;
  /** Listens to the other processes, never to this one, until it is cancelled. */
  listen(listener: HintListener): () => void;
  /**
   * Tells a hint to all processes, or to one. It goes out soon, together with others and beside everything else. The
   * promise resolves when the hint was told or got lost; it never rejects.
   */
  tell(hint: Hint, to?: Teller): Promise<void>;
}

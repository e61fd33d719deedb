import { fnv1a } from "../model/hash.js";
import type { Attempt } from "./attempt.js";

type Code = {
  /** Whose body is calling; null outside of steps. */
  currentAttempt(): Attempt | null;
  /** Resolves when all that the code has seen is durable. */
  durable(): Promise<void>;
};

/**
 * Where a run's children come from: the run, the step, and which of its children. A body that is tried again, or
 * code that is replayed, names the same origins in the same order, and so creates each child once.
 */
export class Children {
  readonly #parent: string;
  readonly #code: Code;
  #outsideSteps = 0;

  constructor(iid: string, runNumber: number, code: Code) {
    this.#parent = `${iid}-${runNumber}`;
    this.#code = code;
  }

  barrier(): Promise<void> {
    return this.#code.durable();
  }

  nextOrigin(): { readonly origin: string; readonly id: string } {
    const attempt = this.#code.currentAttempt();
    const origin =
      attempt === null
        ? `${this.#parent}-0-${++this.#outsideSteps}`
        : `${this.#parent}-${hash(`${attempt.step.count} ${attempt.step.name}`)}-${++attempt.children}`;
    // Ids must not begin with a hyphen, and internal ids may.
    return { origin, id: `c${origin}` };
  }
}

/** 64 bits of FNV-1a, twice with different seeds: enough to tell apart the steps of one run. */
function hash(text: string): string {
  return [0x811c9dc5, 0x01234567].map((seed) => fnv1a(text, seed).toString(36)).join("");
}

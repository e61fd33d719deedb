import { fnv1a } from "../model/hash.js";
import type { Attempt } from "./attempt.js";

type Code = {
  /** Whose body is calling; null outside of steps. */
  currentAttempt(): Attempt | null;
  /** Resolves when all that the code has seen is durable. */
  durable(): Promise<void>;
};

/** Counts the children of one place by what is asked for. */
export type ChildCounts = Map<string, number>;

/**
 * Where a run's children come from: the run, the step, and which of its children. A body that is tried again, or
 * code that is replayed, names the same origins, and so creates each child once: one with an id whenever it asks for
 * that one, others in their order.
 */
export class Children {
  readonly #parent: string;
  readonly #code: Code;
  readonly #outsideSteps: ChildCounts = new Map();

  constructor(iid: string, runNumber: number, code: Code) {
    this.#parent = `${iid}-${runNumber}`;
    this.#code = code;
  }

  barrier(): Promise<void> {
    return this.#code.durable();
  }

  nextOrigin(named: string | null): { readonly origin: string; readonly id: string } {
    const attempt = this.#code.currentAttempt();
    const place = attempt === null ? "0" : hash(`${attempt.step.count} ${attempt.step.name}`);
    const nth = countUp(attempt?.children ?? this.#outsideSteps, named ?? "");
    const which = named === null ? `${nth}` : `${hash(named)}-${nth}`;
    const origin = `${this.#parent}-${place}-${which}`;
    // Ids must not begin with a hyphen, and internal ids may.
    return { origin, id: `c${origin}` };
  }
}

function countUp(counts: ChildCounts, what: string): number {
  const count = (counts.get(what) ?? 0) + 1;
  counts.set(what, count);
  return count;
}

/** 64 bits of FNV-1a, twice with different seeds: enough to tell apart the steps of one run. */
function hash(text: string): string {
  return [0x811c9dc5, 0x01234567].map((seed) => fnv1a(text, seed).toString(36)).join("");
}

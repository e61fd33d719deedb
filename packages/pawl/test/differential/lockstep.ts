import { WorkflowError } from "../../src/model/errors.js";
import type { Store } from "../../src/store/store.js";
import type { TestTransaction } from "../../src/testing/conformance/index.js";

/** A store and what its caller keeps of it. Cursors are opaque, so each store gets its own back. */
export type Peer = {
  readonly name: string;
  readonly store: Store;
  begin(): Promise<TestTransaction>;
  readonly cursors: Map<string, string>;
};

/** Thrown where stores part. It tells all that was asked until then, and the answer that differs. */
export class Divergence extends Error {
  static {
    this.prototype.name = "Divergence";
  }
}

/** Asks all stores the same question, and accepts only the model's answer. */
export class Lockstep {
  readonly #trace: string[] = [];

  constructor(
    readonly model: Peer,
    readonly others: readonly Peer[],
  ) {}

  /** `comparable` removes from an answer what is not specified. */
  async ask<T>(
    question: string,
    ask: (store: Store, peer: Peer) => Promise<T>,
    comparable: (answer: T) => unknown = (answer) => answer,
  ): Promise<T> {
    const answer = await ask(this.model.store, this.model);
    const expected = canonical(comparable(answer));
    this.#trace.push(`${question}\n    → ${expected}`);
    await Promise.all(
      this.others.map(async (peer) => {
        const actual = await ask(peer.store, peer).then(
          (other) => canonical(comparable(other)),
          (error: unknown) => `throws ${describe(error)}`,
        );
        if (actual !== expected) this.diverge(`${peer.name} answers\n    → ${actual}`);
      }),
    );
    return answer;
  }

  note(line: string): void {
    this.#trace.push(line);
  }

  diverge(how: string): never {
    const lines = this.#trace.map((line, n) => `${n + 1}. ${line}`);
    throw new Divergence([...lines, "", how, ""].join("\n"));
  }
}

function describe(error: unknown): string {
  if (error instanceof WorkflowError)
    return `${error.code}: ${error.message} ${describe(error.cause)}`;
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}

/** JSON with sorted keys, so that neither the order of keys nor a key that is undefined matters. */
export function canonical(value: unknown): string {
  return JSON.stringify(value, (_key, part: unknown) =>
    typeof part === "object" && part !== null && !Array.isArray(part)
      ? Object.fromEntries(Object.entries(part).toSorted(([a], [b]) => (a < b ? -1 : 1)))
      : part,
  );
}

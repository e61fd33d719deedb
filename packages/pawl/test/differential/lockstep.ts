import { WorkflowError } from "../../src/model/errors.js";
import type { Store } from "../../src/store/store.js";
import type { TestTransaction } from "../../src/testing/conformance/index.js";

/** A store and what its caller holds of it: cursors are opaque, so each store gets its own back. */
export type Peer = {
  readonly name: string;
  readonly store: Store;
  begin(): Promise<TestTransaction>;
  readonly cursors: Map<string, string>;
};

/** Where two stores part: all that was asked until then, and both answers. */
export class Divergence extends Error {
  static {
    this.prototype.name = "Divergence";
  }
}

/** Asks every store the same and accepts only the same answer. The first peer, the model, says what is right. */
export class Lockstep {
  readonly #trace: string[] = [];

  constructor(
    readonly model: Peer,
    readonly others: readonly Peer[],
  ) {}

  /** `comparable` takes out of an answer what is not specified. */
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
        if (actual !== expected) this.#diverge(peer, actual);
      }),
    );
    return answer;
  }

  note(line: string): void {
    this.#trace.push(line);
  }

  #diverge({ name }: Peer, actual: string): never {
    const steps = this.#trace.map((line, n) => `${n + 1}. ${line}`);
    throw new Divergence(`${steps.join("\n")}\n\n${name} answers\n    → ${actual}\n`);
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

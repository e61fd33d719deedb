import { encodeError } from "../model/error-codec.js";
import { SerializationError } from "../model/errors.js";
import type { Store } from "../store/store.js";
import type { Part, PartAnswer } from "../store/part.js";

/**
 * Commits a part that the database refuses, step by step. Only the step that cannot be stored fails, and the run goes
 * on from there. This should not happen, because everything that is stored was checked before.
 */
export async function commitApart(store: Store, part: Part, message: string): Promise<void> {
  let { partNumber } = part;
  const send = async (change: Partial<Part>): Promise<PartAnswer | undefined> => {
    partNumber += 1;
    const next = { kind: "continue" } as const;
    const apart = { ...part, steps: [], attempts: [], consumed: [], next, ...change, partNumber };
    return (await store.commit([apart]))[0];
  };
  for (const step of part.steps) {
    const consumed = part.consumed.filter(({ ord }) => ord === step.ord);
    const answer = await send({ steps: [step], consumed });
    if (answer?.kind !== "bad") continue;
    const error = encodeError(new SerializationError(message));
    await send({ steps: [{ ...step, status: "errored", result: null, error, wake: null }] });
  }
  await send({ next: { kind: "release", inMs: 0, historyBytes: 0 } });
}

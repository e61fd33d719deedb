import type { Scheduler } from "../model/seams.js";

/** Tells what happens in the same round of the event loop. One for each engine: all that ask in a round share a callback. */
export function rounds(scheduler: Scheduler): () => () => boolean {
  let current: object | null = null;
  return () => {
    if (current === null) {
      current = {};
      scheduler.round(() => (current = null));
    }
    const round = current;
    return () => round === current;
  };
}

import type { Scheduler } from "../model/seams.js";

/**
 * Returns a function that marks the current round of the event loop. The marker that it returns tells whether it is
 * still the same round. Each engine has one such function, and all that ask in a round share a callback.
 */
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

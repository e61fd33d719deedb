import type { Runtime } from "./model/seams.js";

/** What every modern JavaScript runtime has. With `testing/`, the only place that touches the real world. */
declare const crypto: { getRandomValues(target: Uint8Array): Uint8Array };
declare function setTimeout(callback: () => void, ms: number): unknown;

export const webRuntime: Runtime = {
  clock: { now: () => Date.now() },
  random: {
    next: () => Math.random(),
    bytes: (target) => void crypto.getRandomValues(target),
  },
  scheduler: { sleep: (ms) => new Promise((resolve) => void setTimeout(resolve, ms)) },
};

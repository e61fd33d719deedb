import type { StepWrite } from "./store.js";

/** About what a row takes besides its texts, in the database and on its way there. */
export const ROW_BYTES = 200;

type Texts = Pick<StepWrite, "result" | "error">;

/** About what these steps add to their run's history, and to a batch. */
export function bytesOfAll(steps: readonly Texts[]): number {
  let bytes = 0;
  for (const { result, error } of steps) {
    bytes +=
      ROW_BYTES + (result === null ? 0 : result.length) + (error === null ? 0 : error.length);
  }
  return bytes;
}

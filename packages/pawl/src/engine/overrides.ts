import type { StepContext } from "../authoring/step.js";

/** What a test puts in the place of steps, by their names. Each is asked at the moment it would act. */
export interface StepOverrides {
  /** What the next attempt calls instead of the step's body; null for the body itself. */
  body(step: string): ((context: StepContext) => unknown) | null;
  /** Whether a wait for an event that begins now times out at once, whatever has been sent. */
  timesOut(step: string): boolean;
  skipsSleep(step: string): boolean;
  skipsRetryDelay(step: string): boolean;
}

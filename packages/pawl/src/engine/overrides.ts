import type { StepContext } from "../authoring/step.js";

/** A test's replacements for steps, by step name. The engine asks for each at the moment when it would act. */
export interface StepOverrides {
  /** Returns the function that the next attempt calls instead of the step's body; null for the body itself. */
  body(step: string): ((context: StepContext) => unknown) | null;
  /** Whether a wait for an event that begins now times out at once, whatever has been sent. */
  timesOut(step: string): boolean;
  skipsSleep(step: string): boolean;
  skipsRetryDelay(step: string): boolean;
}

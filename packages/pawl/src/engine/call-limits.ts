import { MaxStepsExceededError } from "../model/errors.js";

/**
 * How often in a row the code may call steps that need no waiting: those that have ended, or were called wrongly. They are
 * answered at once, so an endless loop of them would keep its process from anything else. This many take half a second at most.
 */
export const MAX_REPEATS = 20_000;

export function tooManySteps(maxSteps: number): Error {
  return new MaxStepsExceededError(`the run called more than ${maxSteps} steps`);
}

export function tooManyRepeats(): Error {
  return new MaxStepsExceededError(
    `the run called steps again that had ended, or wrongly, ${MAX_REPEATS} times in a row: ` +
      `step names must differ in every round of a loop`,
  );
}

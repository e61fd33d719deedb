import type { WorkflowStep } from "../authoring/step.js";
import { doMethod } from "./kinds/do.js";
import type { StepKind } from "./kinds/kind.js";
import { sleepMethod, sleepUntilMethod } from "./kinds/sleep.js";
import { waitForEventMethod } from "./kinds/wait-for-event.js";
import type { Run } from "./run.js";

/** The methods of `step`: how each reads its arguments, and which kind of step it calls. */
export const stepMethods = {
  do: doMethod,
  sleep: sleepMethod,
  sleepUntil: sleepUntilMethod,
  waitForEvent: waitForEventMethod,
} satisfies { readonly [M in keyof WorkflowStep]: { readonly kind: StepKind } };

type Method = (name: string, first?: unknown, second?: unknown) => Promise<unknown>;

/** The `step` that a run's code is given. Its methods need no `this`. */
export function stepApi(run: Run): WorkflowStep {
  const api: { readonly [M in keyof WorkflowStep]: Method } = {
    do: (name, config, callback) => run.call(doMethod, name, config, callback),
    sleep: (name, duration) => run.call(sleepMethod, name, duration),
    sleepUntil: (name, when) => run.call(sleepUntilMethod, name, when),
    waitForEvent: (name, options) => run.call(waitForEventMethod, name, options),
  };
  return api as WorkflowStep;
}

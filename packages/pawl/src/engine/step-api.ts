import type { WorkflowStep } from "../authoring/step.js";
import { doMethod } from "./kinds/do.js";
import type { StepKind } from "./kinds/kind.js";
import { sleepMethod, sleepUntilMethod } from "./kinds/sleep.js";
import { waitForEventMethod } from "./kinds/wait-for-event.js";
import type { StepCalls } from "./step-calls.js";

/** The methods of `step`: how each reads its arguments, and which kind of step it calls. */
export const stepMethods = {
  do: doMethod,
  sleep: sleepMethod,
  sleepUntil: sleepUntilMethod,
  waitForEvent: waitForEventMethod,
} satisfies { readonly [M in keyof WorkflowStep]: { readonly kind: StepKind } };

type Method = (name: string, first?: unknown, second?: unknown) => Promise<unknown>;

/** The `step` that a run's code is given. Its methods need no `this`. */
export function stepApi(calls: StepCalls): WorkflowStep {
  const api: { readonly [M in keyof WorkflowStep]: Method } = {
    do: (name, config, callback) => calls.call(doMethod, name, config, callback),
    sleep: (name, duration) => calls.call(sleepMethod, name, duration),
    sleepUntil: (name, when) => calls.call(sleepUntilMethod, name, when),
    waitForEvent: (name, options) => calls.call(waitForEventMethod, name, options),
  };
  return api as WorkflowStep;
}

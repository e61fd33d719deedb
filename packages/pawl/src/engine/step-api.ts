import type {
  StepContext,
  WaitForEventOptions,
  WorkflowStep,
  WorkflowStepConfig,
} from "../authoring/step.js";
import { parseDurationMs } from "../model/duration.js";
import { ValidationError } from "../model/errors.js";
import { validEventType, validStepName } from "../model/names.js";
import { quote } from "../model/quote.js";
import type { EngineContext } from "./context.js";
import type { Run } from "./run.js";

type Callback = (context: StepContext) => unknown;

/** The `step` that a run's code is given: checks what the author wrote, and asks the run. */
export function stepApi(run: Run, { limits, policyOf, overrides }: EngineContext): WorkflowStep {
  const steps = {
    do: (name: string, second: unknown, third?: unknown) =>
      called(run, () => {
        const hasConfig = typeof second !== "function";
        const callback = hasConfig ? third : second;
        validStepName(name, limits);
        if (typeof callback !== "function") {
          throw new ValidationError(
            `step ${quote(name)} needs a function to call, got ${quote(callback)}`,
          );
        }
        const config = hasConfig ? (second as WorkflowStepConfig | undefined) : undefined;
        const policy = policyOf(name, config);
        return run.do(name, callback as Callback, policy);
      }),

    sleep: (name: string, duration: string | number) =>
      called(run, () => {
        validStepName(name, limits);
        const field = `duration of step ${quote(name)}`;
        const inMs = parseDurationMs(duration, { field, maxMs: limits.maxSleepMs });
        return run.call("sleep", name, (step) => {
          step.wake = { inMs: overrides?.skipsSleep(name) === true ? 0 : inMs };
        });
      }),

    sleepUntil: (name: string, when: Date | number) =>
      called(run, () => {
        validStepName(name, limits);
        const at = when instanceof Date ? when.getTime() : when;
        if (typeof at !== "number" || !Number.isFinite(at)) {
          throw new ValidationError(
            `time of step ${quote(name)} must be a Date or milliseconds since 1970, got ${quote(when)}`,
          );
        }
        return run.call("sleep", name, (step) => {
          if (at - run.now > limits.maxSleepMs) {
            const days = limits.maxSleepMs / 86_400_000;
            return step.refuse(
              new ValidationError(`time of step ${quote(name)} must be at most ${days} days ahead`),
            );
          }
          const isSkipped = overrides?.skipsSleep(name) === true;
          step.wake = isSkipped ? { inMs: 0 } : { at: Math.round(at) };
        });
      }),

    waitForEvent: (name: string, options: WaitForEventOptions) =>
      called(run, () => {
        validStepName(name, limits);
        if (typeof options !== "object" || options === null) {
          throw new ValidationError(`step ${quote(name)} needs { type }, got ${quote(options)}`);
        }
        const { type, timeout = limits.eventTimeoutDefaultMs } = options;
        checkEventType(name, type, limits);
        const inMs = parseDurationMs(timeout, {
          field: `timeout of step ${quote(name)}`,
          minMs: limits.eventTimeoutMinMs,
          maxMs: limits.eventTimeoutMaxMs,
        });
        return run.call("waitForEvent", name, (step) => {
          step.eventType = type;
          step.wake = { inMs };
          step.timesOutAtOnce = overrides?.timesOut(name) === true;
        });
      }),
  };
  return steps as WorkflowStep;
}

/** Mistakes reject. */
function called(run: Run, call: () => Promise<unknown>): Promise<unknown> {
  try {
    return call();
  } catch (error) {
    return run.refuse(error);
  }
}

function checkEventType(name: string, type: unknown, limits: EngineContext["limits"]): void {
  try {
    validEventType(type, limits);
  } catch (error) {
    throw new ValidationError(`step ${quote(name)}: ${(error as Error).message}`);
  }
}

import type { StepWrite, Wake } from "../store/store.js";
import type { Step } from "./step.js";

/** About what a row takes besides its texts. */
const ROW_BYTES = 100;

/** "resting": called, not begun, and given back so. Anything else that is not settled runs. */
export type Doing = "waiting" | "starting" | "resting" | null;

export function stepWrite(step: Step, doing: Doing, nowMs: number): StepWrite {
  const { settled } = step;
  return {
    ord: step.ord,
    name: step.name,
    count: step.count,
    type: step.type,
    status: statusOf(step, doing),
    seq: settled?.seq ?? null,
    calledAfter: step.calledAfter,
    attempts: attemptsOf(step, doing),
    tookMs: Math.max(0, nowMs - step.calledAtMs),
    wake: doing === "resting" ? null : wakeOf(step),
    waitKey: step.eventType,
    result: settled?.ok === true && step.type !== "sleep" ? settled.text : null,
    error: settled === null ? step.lastError : settled.ok ? null : settled.text,
  };
}

function statusOf({ settled }: Step, doing: Doing): StepWrite["status"] {
  if (settled !== null) return settled.ok ? "completed" : "errored";
  return doing === "waiting" || doing === "resting" ? "waiting" : "running";
}

/** A step with one attempt only spends it when its start is written, not when it fails. */
function attemptsOf(step: Step, doing: Doing): number {
  return doing === "starting" && step.body?.policy.maxAttempts === 1 ? 1 : step.attempts;
}

function wakeOf({ type, settled, wakeAt, wake }: Step): Wake | null {
  if (wakeAt !== null) return type === "do" && settled !== null ? null : { at: wakeAt };
  return settled === null ? wake : null;
}

/** What a step adds to its run's history. */
export function bytesOf(step: Pick<StepWrite, "result" | "error">): number {
  return ROW_BYTES + (step.result?.length ?? 0) + (step.error?.length ?? 0);
}

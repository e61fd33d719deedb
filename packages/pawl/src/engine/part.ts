import type { StepWrite, Wake } from "../store/store.js";
import type { Step } from "./step.js";

/** About what a row takes besides its texts. */
const ROW_BYTES = 100;

export function stepWrite(step: Step, isWaiting: boolean, nowMs: number): StepWrite {
  const { settled } = step;
  return {
    ord: step.ord,
    name: step.name,
    count: step.count,
    type: step.type,
    status: statusOf(step, isWaiting),
    seq: settled?.seq ?? null,
    calledAfter: step.calledAfter,
    attempts: attemptsOf(step, isWaiting),
    tookMs: Math.max(0, nowMs - step.calledAtMs),
    wake: wakeOf(step),
    waitKey: step.eventType,
    result: settled?.ok === true && step.type !== "sleep" ? settled.text : null,
    error: settled === null ? step.lastError : settled.ok ? null : settled.text,
  };
}

function statusOf({ settled }: Step, isWaiting: boolean): StepWrite["status"] {
  if (settled !== null) return settled.ok ? "completed" : "errored";
  return isWaiting ? "waiting" : "running";
}

/** A step with one attempt only spends it when its start is written, not when it fails. */
function attemptsOf(step: Step, isWaiting: boolean): number {
  const spends =
    step.settled === null && !isWaiting && step.needsStartRow && step.body?.policy.maxAttempts === 1;
  return spends ? 1 : step.attempts;
}

function wakeOf({ type, settled, wakeAt, wake }: Step): Wake | null {
  if (wakeAt !== null) return type === "do" && settled !== null ? null : { at: wakeAt };
  return settled === null ? wake : null;
}

/** What a step adds to its run's history. */
export function bytesOf(step: Pick<StepWrite, "result" | "error">): number {
  return ROW_BYTES + (step.result?.length ?? 0) + (step.error?.length ?? 0);
}

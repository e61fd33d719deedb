import { encodeError } from "../model/error-codec.js";
import type { DbTime } from "../store/records.js";
import type { AttemptWrite } from "../store/store.js";
import { runnerDied } from "./settlements.js";
import type { Step } from "./step.js";

/** How far a dead owner had come, and when its run was taken over. */
export type TakenOver = { readonly seq: number; readonly at: DbTime };

/**
 * Whether a dead owner may have used up an attempt of a step: if the row says so; or if it could start without a
 * row, with what was durable. A single attempt is spent by its row alone.
 */
export function mayHaveBegun(step: Step, takenOver: TakenOver | null): boolean {
  if (step.type !== "do" || step.body?.policy.maxAttempts === 1) return false;
  // Who gives a run back says that its steps do not run any more.
  if (step.recordedAs === "running") return true;
  if (takenOver === null) return false;
  if (step.recordedAs === "waiting") return (step.wakeAt ?? 0) <= takenOver.at;
  // Whether the dead owner's code called it in its stride cannot be told: what is no step may take longer this time.
  return step.barrier <= takenOver.seq;
}

/** Counts the attempt that a dead owner may have begun, and answers its record. */
export function charge(step: Step, now: DbTime): AttemptWrite {
  const began = beganAt(step);
  step.attempts += 1;
  step.needsStartRow = true;
  step.lastError = encodeError(runnerDied({ name: step.name, attempt: step.attempts }));
  return {
    ord: step.ord,
    n: step.attempts,
    tookMs: began === null ? 0 : Math.max(0, now - began),
    error: step.lastError,
  };
}

/** As far as a row tells; most steps have none before they end. */
function beganAt({ attempts, recordedAt, wakeAt }: Step): DbTime | null {
  return attempts === 0 ? recordedAt : wakeAt;
}

import { decodeError, encodeError } from "../model/error-codec.js";
import { RunnerDiedError, StepMaxAttemptsExceeded } from "../model/errors.js";
import { quote } from "../model/quote.js";
import type { DbTime } from "../store/records.js";
import type { AttemptWrite } from "../store/part.js";
import type { OpenStep, Settled, Step } from "./step.js";

/** The last settlement of a dead owner, and the time at which its run was taken over. */
export type TakenOver = { readonly seq: number; readonly at: DbTime };

/**
 * Returns whether a dead owner may have used up an attempt of the step's body. Either the row says so, or the body
 * could start without a row because all that it had to wait for was durable. A single attempt is spent by its row
 * alone.
 */
export function mayHaveBegun(
  { recordedAs, call }: Step,
  { body, wakeAt }: OpenStep,
  takenOver: TakenOver | null,
): boolean {
  if (body?.policy.maxAttempts === 1) return false;
  // An owner that gives a run back rewrites the rows of the steps that do not run any more.
  if (recordedAs === "running") return true;
  if (takenOver === null) return false;
  if (recordedAs === "waiting") return (wakeAt ?? 0) <= takenOver.at;
  // It is unknown whether the dead owner's code called the step in its stride: an await of something else may take
  // longer now.
  return (call?.barrier ?? 0) <= takenOver.seq;
}

/** Counts the attempt that a dead owner may have begun, and returns its record. */
export function charge({ ord, name }: Step, open: OpenStep, now: DbTime): AttemptWrite {
  const beganAt = open.attempts === 0 ? open.recordedAt : open.wakeAt;
  open.attempts += 1;
  if (open.startRow === "unneeded") open.startRow = "needed";
  open.lastError = encodeError(runnerDied(name, open.attempts));
  // Most steps have no row before they end. Then nothing tells when the attempt began.
  const tookMs = beganAt === null ? 0 : Math.max(0, now - beganAt);
  return { ord, n: open.attempts, tookMs, error: open.lastError };
}

/** Returns the settlement of a step whose attempts are used up before its body has ended once in this process. */
export function noAttemptsLeft({ name }: Step, { attempts, lastError }: OpenStep): Settled {
  // Nothing but the start of a single attempt is recorded, so there may be no error.
  const cause = lastError === null ? runnerDied(name, attempts) : decodeError(lastError);
  const message = `step ${quote(name)} was begun ${attempts} times and has no attempt left`;
  return { ok: false, text: encodeError(new StepMaxAttemptsExceeded(message, { cause })) };
}

function runnerDied(name: string, attempt: number): Error {
  return new RunnerDiedError(
    `the runner of attempt ${attempt} of step ${quote(name)} died before the attempt ended`,
  );
}

import { isTerminal } from "../../model/status.js";
import { type DbTime, type StepRecord } from "../../store/records.js";
import { isSettled } from "../../model/step-types.js";
import type { Wake } from "../../model/wake.js";
import type { Part, PartAnswer, StepWrite } from "../../store/part.js";
import { after, end, eventsOfRun, giveUp, isLeased, pauseRequested, type ModelRun } from "./run.js";

/** Applies a part of the run's present claim to the run. */
export function applyPart(run: ModelRun, part: Part, now: DbTime): PartAnswer {
  // Only a part of this very claim can have ended the turn, so this part was applied before.
  if (!isLeased(run)) return { ...ended(run), now: run.finishedAt ?? now };
  for (const step of part.steps) writeStep(run, part, step, now);
  for (const { ord, n, tookMs, error } of part.attempts) {
    if (run.attempts.some((known) => known.ord === ord && known.n === n)) continue;
    run.attempts.push({ ord, n, startedAt: now - tookMs, endedAt: now, error });
  }
  for (const { number, ord } of part.consumed) {
    const event = run.events[number - 1];
    if (event?.record.consumedBy !== null) continue;
    event.record = { ...event.record, consumedBy: ord, deliveredAt: now };
  }
  return endTurn(run, part, now);
}

/**
 * Decides what becomes of the ticket. A finish beats a pause, a pause beats a park, and an unseen event beats
 * a park.
 */
function endTurn(
  run: ModelRun,
  { next, partNumber, takeovers, seenEvents }: Part,
  now: DbTime,
): PartAnswer {
  const isNewer = partNumber > run.partNumber;
  if (isNewer && takeovers !== undefined) run.takeovers = takeovers;
  if (isNewer && (takeovers !== undefined || next.kind !== "continue")) {
    run.partNumber = partNumber;
  }
  switch (next.kind) {
    case "continue":
      break;
    case "park":
      if (!isNewer) break; // it was refused before
      if (run.events.length > seenEvents && !pauseRequested(run)) break;
      giveUp(run, "park", wakeAt(next.wake, now), next.waitMask, next.historyBytes);
      break;
    case "release":
      if (!isNewer) break;
      giveUp(run, "release", now + next.inMs, 0, next.historyBytes);
      break;
    case "complete":
      run.output = next.output;
      end(run, after(run, "complete"), now);
      break;
    case "fail":
      run.error = next.error;
      end(run, after(run, "fail"), now);
      break;
  }
  if (!isLeased(run)) return { ...ended(run), now };
  const events = eventsOfRun(run).slice(seenEvents);
  return { kind: "ok", now, state: "leased", pauseRequested: pauseRequested(run), events };
}

function wakeAt(wake: Wake | null, now: DbTime): DbTime | null {
  if (wake === null) return null;
  return "at" in wake ? wake.at : now + wake.inMs;
}

/** The answer to a part whose run is no longer leased. */
function ended(run: ModelRun): Omit<Extract<PartAnswer, { kind: "ok" }>, "now"> {
  const state = isTerminal(run.status) ? "finished" : run.status === "paused" ? "paused" : "parked";
  return { kind: "ok", state, pauseRequested: false, events: [] };
}

/** Writes a step. Only a newer part overwrites a step, whose identity and start stay. */
function writeStep(
  run: ModelRun,
  { claimNumber, partNumber }: Part,
  step: StepWrite,
  now: DbTime,
): void {
  const { tookMs, wake, isNew: _hint, ...written } = step;
  const record: StepRecord = {
    ...written,
    startedAt: now - tookMs,
    endedAt: isSettled(step.status) ? now : null,
    wakeAt: wakeAt(wake, now),
    claimNumber,
  };
  const known = run.steps.find((other) => other.record.ord === step.ord);
  if (known === undefined) {
    run.steps.push({ record, partNumber });
    return;
  }
  const isNewer =
    claimNumber > known.record.claimNumber ||
    (claimNumber === known.record.claimNumber && partNumber > known.partNumber);
  if (!isNewer) return;
  const { name, count, type, calledAfter, startedAt } = known.record;
  known.record = { ...record, name, count, type, calledAfter, startedAt };
  known.partNumber = partNumber;
}

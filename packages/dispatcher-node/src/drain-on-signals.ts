import { constants } from "node:os";
import type { RunningRunner } from "./start-runner.js";
import type { RunningServer } from "./serve.js";
import { checkTimeout, MAX_TIMER_MS } from "./timeout.js";

export type DrainOptions = {
  /** How long steps and requests that run may take to end; default 20 seconds. */
  readonly timeoutMs?: number | undefined;
  /** Default SIGTERM and SIGINT. */
  readonly signals?: readonly NodeJS.Signals[] | undefined;
};

const SIGNALS: readonly NodeJS.Signals[] = ["SIGTERM", "SIGINT"];
const TIMEOUT_MS = 20_000;
/** After the timeout a runner gives back what it cut off: a store that does not answer must not hold up the end. */
const GIVE_BACK_MS = 7_000;

/** What one call drains, of all that share the process: it ends when the last of them is done. */
let draining = 0;
let haveAllStopped = true;

/**
 * The first signal stops all of these and ends the process with code 0, or 1 if they could not be stopped in time; a
 * second one ends it at once, with 128 + its number. Called more than once, the process ends when all are stopped.
 * Answers how to take the handlers away again.
 */
export function drainOnSignals(
  parts: readonly (Pick<RunningRunner, "stop"> | Pick<RunningServer, "close">)[],
  { timeoutMs = TIMEOUT_MS, signals = SIGNALS }: DrainOptions = {},
): () => void {
  checkTimeout("drainOnSignals", timeoutMs);
  let isDraining = false;
  const onSignal = (signal: NodeJS.Signals): void => {
    if (isDraining) process.exit(128 + constants.signals[signal]);
    isDraining = true;
    draining += 1;
    void drained(parts, timeoutMs).then((isStopped) => {
      draining -= 1;
      haveAllStopped &&= isStopped;
      if (draining === 0) process.exit(haveAllStopped ? 0 : 1);
    });
  };
  for (const signal of signals) process.on(signal, onSignal);
  return () => {
    for (const signal of signals) process.off(signal, onSignal);
  };
}

/** Whether they could be stopped in time. */
function drained(parts: Parameters<typeof drainOnSignals>[0], timeoutMs: number): Promise<boolean> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, Math.min(timeoutMs + GIVE_BACK_MS, MAX_TIMER_MS), false);
    Promise.all(
      parts.map(async (part) =>
        "stop" in part ? part.stop({ timeoutMs }) : part.close({ timeoutMs }),
      ),
    )
      .then(
        () => resolve(true),
        () => resolve(false),
      )
      .finally(() => clearTimeout(timer));
  });
}

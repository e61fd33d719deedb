import { constants } from "node:os";
import type { RunningRunner } from "./start-runner.js";
import type { RunningServer } from "./serve.js";
import { checkTimeout, MAX_TIMER_MS } from "./timeout.js";

export type DrainOptions = {
  /** How long running steps and requests may take to end, in milliseconds. Default 20 seconds. */
  readonly timeoutMs?: number | undefined;
  /** The signals that drain. Default SIGTERM and SIGINT. */
  readonly signals?: readonly NodeJS.Signals[] | undefined;
};

const SIGNALS: readonly NodeJS.Signals[] = ["SIGTERM", "SIGINT"];
const TIMEOUT_MS = 20_000;
/**
 * How long after the timeout a runner may take to give back what it cut off. A store that does not answer must not hold
 * up the end of the process.
 */
const GIVE_BACK_MS = 7_000;

/** How many calls of `drainOnSignals` are draining. The process ends when the last of them is done. */
let draining = 0;
let haveAllStopped = true;

/**
 * Stops these runners and servers on SIGTERM or SIGINT, and then ends the process. The first signal stops all of them
 * together and ends the process with code 0, or with 1 if they could not be stopped within `timeoutMs` and 7 seconds
 * more. A second signal ends the process at once, with code 128 + its number; what it held is taken over after the
 * lease. If several parts of an application call this, the process ends when all of theirs have stopped.
 *
 * Returns a function that removes the handlers again.
 *
 * @example
 * ```ts
 * drainOnSignals([await serve(pawl, { port: 3000 }), startRunner(pawl)]);
 * ```
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

/** Stops all parts. Resolves to whether they stopped in time. */
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

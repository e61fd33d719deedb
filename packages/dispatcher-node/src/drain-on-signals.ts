import { constants } from "node:os";
import type { RunningRunner } from "./start-runner.js";
import type { RunningServer } from "./serve.js";

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

/**
 * The first signal stops all of these and ends the process with code 0, or 1 if they could not be stopped in time; a
 * second one ends it at once, with 128 + its number. Answers how to take the handlers away again.
 */
export function drainOnSignals(
  parts: readonly (Pick<RunningRunner, "stop"> | Pick<RunningServer, "close">)[],
  { timeoutMs = TIMEOUT_MS, signals = SIGNALS }: DrainOptions = {},
): () => void {
  let isDraining = false;
  const onSignal = (signal: NodeJS.Signals): void => {
    if (isDraining) process.exit(128 + constants.signals[signal]);
    isDraining = true;
    setTimeout(() => process.exit(1), timeoutMs + GIVE_BACK_MS).unref();
    Promise.all(
      parts.map((part) => ("stop" in part ? part.stop({ timeoutMs }) : part.close({ timeoutMs }))),
    ).then(
      () => process.exit(0),
      () => process.exit(1),
    );
  };
  for (const signal of signals) process.on(signal, onSignal);
  return () => {
    for (const signal of signals) process.off(signal, onSignal);
  };
}

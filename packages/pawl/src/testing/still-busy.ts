import { quote } from "../model/quote.js";
import type { Runner } from "../runner/runner.js";

/** How many runs a message names. */
const RUNS_SHOWN = 5;

/** Returns the error of a harness that is still busy when its real time is up. It says what the harness waits for. */
export function stillBusy(pendingVerbs: readonly string[], runners: readonly Runner[]): Error {
  if (pendingVerbs.length > 0) {
    return new Error(
      `the store did not answer ${[...new Set(pendingVerbs)].join(", ")} in time: ${whatRuns(runners)}. ` +
        `If the database is only slow, give the harness more timeoutMs`,
    );
  }
  return new Error(
    `still busy, and real time is up: ${whatRuns(runners)}. ` +
      `If it waits for a timeout of a step, move the clock`,
  );
}

/** Names the runs of these runners, and the steps that they run. */
export function whatRuns(runners: readonly Runner[]): string {
  const runs = runners.flatMap((runner) => runner.runs);
  const lines = runs.slice(0, RUNS_SHOWN).map(({ workflow, id, runningSteps }) => {
    const steps = runningSteps.map((name) => `step ${quote(name)}`).join(", ");
    const what = steps === "" ? "awaits something that is not a running step" : `runs ${steps}`;
    return `instance ${quote(id)} of workflow ${quote(workflow)} ${what}`;
  });
  if (runs.length > lines.length) lines.push(`and ${runs.length - lines.length} more`);
  return lines.join("; ") || "nothing runs here";
}

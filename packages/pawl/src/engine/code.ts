import type { WorkflowEntry } from "../authoring/entry.js";
import type { WorkflowEvent } from "../authoring/entrypoint.js";
import type { DbTime } from "../store/records.js";
import type { Children } from "./children.js";
import type { EngineContext } from "./context.js";
import { failure, outcomeOf, type RunOutcome } from "./outcome.js";
import type { Run } from "./run.js";
import { stepApi } from "./step-api.js";

export interface CodeEvents {
  /** It calls no step any more; its output may still be checked. */
  returned(): void;
  ended(outcome: RunOutcome): void;
}

/** Calls the workflow's code, once for a run in memory. What it throws is its outcome. */
export function startCode(
  run: Run,
  entry: WorkflowEntry,
  context: EngineContext,
  children: Children,
  given: { readonly params: string | null; readonly createdAt: DbTime },
  events: CodeEvents,
): void {
  const { params, createdAt } = given;
  const start = async (): Promise<unknown> =>
    entry.start({
      event: {
        payload: (params === null
          ? undefined
          : context.codec.decode(params)) as WorkflowEvent["payload"],
        timestamp: new Date(createdAt),
        instanceId: run.id,
        workflowName: run.workflow,
        runNumber: run.runNumber,
      },
      step: stepApi(run, context),
      env: context.env,
      workflows: context.bindingsFor(children),
    });
  start().then(
    (value) => {
      events.returned();
      outcomeOf(value, entry, context, (outcome) => events.ended(outcome));
    },
    (error: unknown) => events.ended(failure(error)),
  );
}

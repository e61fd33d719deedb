import type { WorkflowEntry } from "../authoring/entry.js";
import type { WorkflowEvent } from "../authoring/entrypoint.js";
import { validate } from "../authoring/schema.js";
import { encodeError } from "../model/error-codec.js";
import { ValidationError } from "../model/errors.js";
import { quote } from "../model/quote.js";
import type { DbTime } from "../store/records.js";
import type { EngineContext } from "./context.js";
import type { Run } from "./run.js";
import { stepApi } from "./step-api.js";
import type { StepCalls } from "./step-calls.js";

/** How a run ends, as text. */
export type RunOutcome = { readonly output: string } | { readonly error: string };

/** The arguments of a run's code. */
type CodeInput = {
  /** The params as text; null if there are none. */
  readonly params: string | null;
  readonly createdAt: DbTime;
  /** The bindings for the run's code. */
  readonly workflows: unknown;
  readonly steps: StepCalls;
};

/**
 * Calls the workflow's code once for a run in memory, and tells the run how the code ended. An error that the code
 * throws is the run's outcome.
 */
export function startCode(
  run: Run,
  entry: WorkflowEntry,
  input: CodeInput,
  context: EngineContext,
): void {
  start(run, entry, input, context).then(
    (value) => {
      run.codeReturned();
      if (entry.output === undefined) run.codeEnded(outcomeOf(value, entry, context));
      else void checkOutput(value, entry, context).then((outcome) => run.codeEnded(outcome));
    },
    (error: unknown) => run.codeEnded(failure(error)),
  );
}

async function start(
  run: Run,
  entry: WorkflowEntry,
  { params, createdAt, workflows, steps }: CodeInput,
  { codec, env }: EngineContext,
): Promise<unknown> {
  const payload = params === null ? undefined : codec.decode(params);
  return entry.start({
    event: {
      payload: payload as WorkflowEvent["payload"],
      timestamp: new Date(createdAt),
      instanceId: run.id,
      workflowName: run.workflow,
      runNumber: run.runNumber,
    },
    step: stepApi(steps),
    env,
    workflows,
  });
}

/** An output that does not fit its schema is the run's error. */
async function checkOutput(
  value: unknown,
  entry: WorkflowEntry,
  context: EngineContext,
): Promise<RunOutcome> {
  try {
    const result = await validate(entry.output as NonNullable<WorkflowEntry["output"]>, value);
    if (result.ok) return outcomeOf(result.value, entry, context);
    throw new ValidationError(`the output does not fit its schema: ${result.message}`);
  } catch (error) {
    return failure(error);
  }
}

/** An output that cannot be stored is the run's error. */
function outcomeOf(
  value: unknown,
  { name }: WorkflowEntry,
  { codec, limits }: EngineContext,
): RunOutcome {
  const what = `output of workflow ${quote(name)}`;
  try {
    return { output: codec.encode(value, { what, maxBytes: limits.outputMaxBytes }) };
  } catch (error) {
    return failure(error);
  }
}

export function failure(error: unknown): RunOutcome {
  return { error: encodeError(error) };
}

import type { WorkflowEntry } from "../authoring/entry.js";
import { validate } from "../authoring/schema.js";
import { encodeError } from "../model/error-codec.js";
import { ValidationError } from "../model/errors.js";
import { quote } from "../model/quote.js";
import type { EngineContext } from "./context.js";

/** How a run ends, as text. */
export type RunOutcome = { readonly output: string } | { readonly error: string };

/** What the code returned; an output that does not fit or cannot be stored is the run's error. */
export function outcomeOf(
  value: unknown,
  { name, output }: WorkflowEntry,
  context: EngineContext,
  end: (outcome: RunOutcome) => void,
): void {
  const encoded = (valid: unknown): RunOutcome => {
    const { codec, limits } = context;
    const what = `output of workflow ${quote(name)}`;
    try {
      return { output: codec.encode(valid, { what, maxBytes: limits.outputMaxBytes }) };
    } catch (error) {
      return failure(error);
    }
  };
  // Without a schema there is nothing to wait for.
  if (output === undefined) return end(encoded(value));
  validate(output, value).then(
    (result) =>
      end(
        result.ok
          ? encoded(result.value)
          : failure(new ValidationError(`the output does not fit its schema: ${result.message}`)),
      ),
    (error: unknown) => end(failure(error)),
  );
}

export function failure(error: unknown): RunOutcome {
  return { error: encodeError(error) };
}

import { ValidationError, WorkflowError } from "./errors.js";
import type { Limits } from "./limits.js";
import { quote } from "./quote.js";

// Lengths count Unicode code points, whatever the database's encoding; columns have 4 bytes for each. A caller's
// mistake (instance, event) throws a `WorkflowError` with a code; an author's mistake (step, workflow, queue) throws a
// `ValidationError`.

/** Matches control characters (C0, DEL, C1) and lone surrogates: some databases refuse them, others change them. */
export const unstorable = /[\p{Cc}\p{Cs}]/u;
const identifier = /^[a-zA-Z0-9_][a-zA-Z0-9-_]*$/;

export function validInstanceId(given: unknown, limits: Limits, what = "instance id"): string {
  const problem = identifierProblem(given, limits.instanceIdMaxLength);
  if (problem !== undefined) throw new WorkflowError("INVALID_INSTANCE_ID", `${what} ${problem}`);
  return given as string;
}

export function validEventType(given: unknown, limits: Limits): string {
  const problem = identifierProblem(given, limits.eventTypeMaxLength);
  if (problem !== undefined) throw new WorkflowError("INVALID_EVENT_TYPE", `event type ${problem}`);
  return given as string;
}

export function validEventId(given: unknown, limits: Limits): string {
  const problem = nameProblem(given, limits.eventIdMaxLength);
  if (problem !== undefined) throw new WorkflowError("INVALID_REQUEST", `event id ${problem}`);
  return given as string;
}

export function validWorkflowName(given: unknown, limits: Limits): string {
  const problem = nameProblem(given, limits.workflowNameMaxLength);
  if (problem !== undefined) throw new ValidationError(`workflow name ${problem}`);
  // The name is a segment of URL paths, and every URL parser removes "." and "..", even percent-encoded.
  if (given === "." || given === "..")
    throw new ValidationError(`workflow name must not be ${quote(given)}`);
  return given as string;
}

export function validQueueName(given: unknown, limits: Limits): string {
  const problem = nameProblem(given, limits.queueNameMaxLength);
  if (problem !== undefined) throw new ValidationError(`queue name ${problem}`);
  return given as string;
}

export function validStepName(given: unknown, limits: Limits): string {
  const problem = nameProblem(given, limits.stepNameMaxLength);
  if (problem !== undefined) throw new ValidationError(`step name ${problem}`);
  return given as string;
}

function identifierProblem(given: unknown, maxLength: number): string | undefined {
  const problem = nameProblem(given, maxLength);
  if (problem !== undefined) return problem;
  if (identifier.test(given as string)) return undefined;
  return `may only have letters, digits, "_" and "-" and must not start with "-", got ${quote(given)}`;
}

function nameProblem(given: unknown, maxLength: number): string | undefined {
  if (typeof given !== "string") return `must be a string, got ${quote(given)}`;
  if (given === "") return "must not be empty";
  if (isLongerThan(given, maxLength))
    return `must have at most ${maxLength} characters, got ${quote(given)}`;
  if (unstorable.test(given))
    return `must not have control characters or lone surrogates, got ${quote(given)}`;
  return undefined;
}

function isLongerThan(text: string, maxLength: number): boolean {
  if (text.length <= maxLength) return false;
  if (text.length > maxLength * 2) return true; // a code point has at most 2 units
  return Array.from(text).length > maxLength;
}

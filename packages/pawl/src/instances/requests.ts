import { validItems } from "../authoring/binding-options.js";
import type { CreateOptions } from "../authoring/bindings.js";
import { WorkflowError } from "../model/errors.js";
import type { Limits } from "../model/limits.js";
import { requestedOptions, type Known } from "../model/known-options.js";
import { quote } from "../model/quote.js";
import type { Target } from "../model/target.js";

// Checks of requests, apart from those of names and values. TypeScript stops most mistakes, but not those of JavaScript
// and HTTP.

export function invalidRequest(message: string, options?: ErrorOptions): WorkflowError {
  return new WorkflowError("INVALID_REQUEST", message, options);
}

export function instanceNotFound({ workflow, id }: Target): WorkflowError {
  return new WorkflowError(
    "INSTANCE_NOT_FOUND",
    `workflow ${quote(workflow)} has no instance ${quote(id)}`,
  );
}

export function validBatch<T extends CreateOptions>(
  given: readonly T[],
  limits: Limits,
): readonly T[] {
  const batch = validItems(given);
  if (batch.length <= limits.batchMaxInstances) return batch;
  throw invalidRequest(
    `a batch may have at most ${limits.batchMaxInstances} instances, got ${batch.length}`,
  );
}

type Bounds<Count> = { readonly maxInstances?: Count; readonly maxSteps?: Count };
const bounds: Known<Bounds<unknown>> = { maxInstances: true, maxSteps: true };

/** Checks how much a tick may do. */
export function validBounds(given: Bounds<unknown>): Bounds<number | undefined> {
  const { maxInstances, maxSteps } = requestedOptions("options of tick", given, bounds);
  return {
    maxInstances: validCount("maxInstances", maxInstances),
    maxSteps: validCount("maxSteps", maxSteps),
  };
}

function validCount(name: string, count: unknown): number | undefined {
  if (count === undefined || count === Infinity) return undefined;
  if (Number.isSafeInteger(count) && (count as number) >= 1) return count as number;
  throw invalidRequest(`${name} must be a whole number from 1, got ${quote(count)}`);
}

export function validPageSize(given: number | undefined, limits: Limits): number {
  const pageSize = given ?? limits.pageSizeDefault;
  if (Number.isInteger(pageSize) && pageSize >= 1 && pageSize <= limits.pageSizeMax)
    return pageSize;
  throw invalidRequest(
    `pageSize must be a whole number from 1 to ${limits.pageSizeMax}, got ${quote(given)}`,
  );
}

export function validCursor(given: string | undefined): { cursor?: string } {
  if (given === undefined) return {};
  if (typeof given === "string") return { cursor: given };
  throw new WorkflowError("INVALID_CURSOR", `cursor must be a string, got ${quote(given)}`);
}

import { WorkflowError } from "../model/errors.js";
import type { Limits } from "../model/limits.js";
import { quote } from "../model/quote.js";
import type { Target } from "../store/records.js";

// What callers can get wrong besides names and values. TypeScript stops most of it, but not JavaScript and HTTP.

export function invalidRequest(message: string, options?: ErrorOptions): WorkflowError {
  return new WorkflowError("INVALID_REQUEST", message, options);
}

export function instanceNotFound({ workflow, id }: Target): WorkflowError {
  return new WorkflowError(
    "INSTANCE_NOT_FOUND",
    `workflow ${quote(workflow)} has no instance ${quote(id)}`,
  );
}

/** The given options, if they are an object. */
export function validObject<T extends object>(what: string, given: T): T {
  if (typeof given !== "object" || given === null || Array.isArray(given)) {
    throw invalidRequest(`${what} must be an object, got ${quote(given)}`);
  }
  return given;
}

export function validBatch<T extends object>(given: readonly T[], limits: Limits): readonly T[] {
  if (!Array.isArray(given)) throw invalidRequest(`a batch must be an array, got ${quote(given)}`);
  if (given.length > limits.batchMaxInstances) {
    throw invalidRequest(
      `a batch may have at most ${limits.batchMaxInstances} instances, got ${given.length}`,
    );
  }
  return given.map((item: T, i) => validObject(elementOf(i), item));
}

/** How an element of a batch is named, to whoever sent it. */
export function elementOf(i: number): string {
  return `instances[${i}]`;
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

import { WorkflowError, type WorkflowErrorCode } from "../../model/errors.js";

/** A promise that the store did not keep. */
export class ConformanceError extends Error {
  static {
    this.prototype.name = "ConformanceError";
  }
}

export function fail(message: string): never {
  throw new ConformanceError(message);
}

export function ok(condition: boolean, what: string): asserts condition {
  if (!condition) fail(what);
}

/**
 * Asserts the same structure and values. An undefined key counts as missing, and the order of keys does not
 * matter.
 */
export function equal<T>(actual: T, expected: T, what: string): void {
  if (!same(actual, expected)) {
    fail(`${what}\n  expected: ${shown(expected)}\n  actual:   ${shown(actual)}`);
  }
}

/** Like `equal`, for the given keys only. */
export function matches<T extends object>(actual: T, expected: Partial<T>, what: string): void {
  const keys = Object.keys(expected) as (keyof T)[];
  equal(Object.fromEntries(keys.map((key) => [key, actual[key]])) as Partial<T>, expected, what);
}

/** Asserts the same texts in any order. */
export function equalSets(
  actual: readonly string[],
  expected: readonly string[],
  what: string,
): void {
  equal(actual.toSorted(), expected.toSorted(), what);
}

export function defined<T>(value: T | null | undefined, what: string): T {
  if (value === null || value === undefined) fail(`${what}: got ${String(value)}`);
  return value;
}

export function only<T>(items: readonly T[], what: string): T {
  equal(items.length, 1, `${what}: exactly one`);
  return defined(items[0], what);
}

/** Asserts the kind of an answer, and returns the answer as that type. */
export function kindOf<A extends { readonly kind: string }, K extends A["kind"]>(
  answer: A | undefined,
  kind: K,
  what: string,
): Extract<A, { readonly kind: K }> {
  if (answer?.kind !== kind) fail(`${what}: expected "${kind}", got ${shown(answer)}`);
  return answer as Extract<A, { readonly kind: K }>;
}

export async function rejection(promise: Promise<unknown>, what: string): Promise<Error> {
  const outcome = await promise.then(
    (value) => ({ value }),
    (error: unknown) => ({ error }),
  );
  if ("value" in outcome) fail(`${what}: expected an error, got ${shown(outcome.value)}`);
  ok(outcome.error instanceof Error, `${what}: what is thrown must be an Error`);
  return outcome.error;
}

export async function refused(
  promise: Promise<unknown>,
  code: WorkflowErrorCode,
  what: string,
): Promise<void> {
  const error = await rejection(promise, what);
  ok(
    error instanceof WorkflowError,
    `${what}: expected a WorkflowError, got ${error.name}: ${error.message}`,
  );
  equal(error.code, code, what);
}

function same(a: unknown, b: unknown): boolean {
  if (Object.is(a, b)) return true;
  if (typeof a !== "object" || typeof b !== "object" || a === null || b === null) return false;
  if (Array.isArray(a) !== Array.isArray(b)) return false;
  if (Array.isArray(a) && a.length !== (b as unknown[]).length) return false;
  const keys = new Set([...Object.keys(a), ...Object.keys(b)]);
  return [...keys].every((key) =>
    same((a as Record<string, unknown>)[key], (b as Record<string, unknown>)[key]),
  );
}

const shownMaxLength = 600;

function shown(value: unknown): string {
  const text = JSON.stringify(value) ?? String(value);
  return text.length > shownMaxLength
    ? `${text.slice(0, shownMaxLength)}… (${text.length} characters)`
    : text;
}

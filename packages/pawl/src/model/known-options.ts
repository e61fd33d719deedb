import { ValidationError, WorkflowError } from "./errors.js";
import { quote } from "./quote.js";

/** The names of all options of a type, each with `true`: the compiler refuses a list from which one is missing. */
export type Known<Options> = { readonly [Name in keyof Required<Options>]: true };

/**
 * Returns the given object, and throws `ValidationError` if it is not a plain one. A Map or a class instance would seem
 * to have no keys at all, and so to set nothing.
 */
export function plainObject<T extends object>(what: string, given: T, example: string): T {
  if (typeof given === "object" && given !== null) {
    const prototype: unknown = Object.getPrototypeOf(given);
    // A plain object of another realm has that realm's `Object.prototype`, which ends its chain too.
    const isPlain = prototype === null || Object.getPrototypeOf(prototype) === null;
    if (isPlain && !Array.isArray(given)) return given;
  }
  throw new ValidationError(
    `${what} must be a plain object such as ${example}, got ${quote(given)}`,
  );
}

/**
 * Returns the given options, and throws `ValidationError` if one of them is not known: as a rule it is misspelt, and
 * would be ignored.
 */
export function checkOptions<Options extends object>(
  what: string,
  given: Options,
  known: Readonly<Record<string, true>>,
): Options {
  if (!isObject(given)) {
    throw new ValidationError(`${what} must be an object, got ${quote(given)}`);
  }
  const strange = strangeIn(given, known);
  if (strange === undefined) return given;
  const names = Object.keys(known).join(", ");
  throw new ValidationError(`${what}: unknown option ${quote(strange)}; the options are ${names}`);
}

/** Does the same for the options of a request, whose caller gets an `INVALID_REQUEST`, in process as over HTTP. */
export function requestedOptions<Options extends object>(
  what: string,
  given: Options,
  known: Readonly<Record<string, true>>,
): Options {
  if (!isObject(given)) throw invalid(`${what} must be an object, got ${quote(given)}`);
  const strange = strangeIn(given, known);
  if (strange === undefined) return given;
  const names = Object.keys(known).join(", ");
  throw invalid(`${what} has no ${quote(strange)}; it may have ${names}`);
}

function invalid(message: string): WorkflowError {
  return new WorkflowError("INVALID_REQUEST", message);
}

function isObject(given: unknown): given is object {
  return typeof given === "object" && given !== null && !Array.isArray(given);
}

function strangeIn(given: object, known: Readonly<Record<string, true>>): string | undefined {
  return Object.keys(given).find((name) => !Object.hasOwn(known, name));
}

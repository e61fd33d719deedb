import { ValidationError, WorkflowError } from "./errors.js";
import { quote } from "./quote.js";

/** Every option, named once: the compiler sees to it that none is missing. */
export type Known<Options> = { readonly [Name in keyof Required<Options>]: true };

/** The given one, whose keys are all there is to it: a Map or a class would seem to have none. */
export function plainObject<T extends object>(what: string, given: T, example: string): T {
  if (typeof given === "object" && given !== null) {
    const prototype: unknown = Object.getPrototypeOf(given);
    // One of another realm has that realm's own, which ends the chain too.
    const isPlain = prototype === null || Object.getPrototypeOf(prototype) === null;
    if (isPlain && !Array.isArray(given)) return given;
  }
  throw new ValidationError(
    `${what} must be a plain object such as ${example}, got ${quote(given)}`,
  );
}

/** The given options. One that there is not is refused: it is misspelt as a rule, and would be ignored. */
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
  throw new ValidationError(`${what}: there is no ${quote(strange)}; there are ${names}`);
}

/** The same of what a request asks for: its caller is to blame, in process as over HTTP. */
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

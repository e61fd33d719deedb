import { ValidationError } from "./errors.js";
import { quote } from "./quote.js";

/** Every option, named once: the compiler sees to it that none is missing. */
export type Known<Options> = { readonly [Name in keyof Required<Options>]: true };

/** The given options. One that there is not is refused: it is misspelt as a rule, and would be ignored. */
export function checkOptions<Options extends object>(
  what: string,
  given: Options,
  known: Readonly<Record<string, true>>,
): Options {
  if (typeof given !== "object" || given === null || Array.isArray(given)) {
    throw new ValidationError(`${what} must be an object, got ${quote(given)}`);
  }
  const strange = Object.keys(given).find((name) => !Object.hasOwn(known, name));
  if (strange === undefined) return given;
  const names = Object.keys(known).join(", ");
  throw new ValidationError(`${what}: there is no ${quote(strange)}; there are ${names}`);
}

import { ValidationError } from "../model/errors.js";
import { quote } from "../model/quote.js";

/** A name that goes into statement text: letters, digits and underscores, and short enough for every database. */
const IDENTIFIER = /^[A-Za-z_][A-Za-z0-9_]{0,39}$/;

export function checkedCount(field: string, count: number): number {
  if (!Number.isInteger(count) || count < 1) {
    throw new ValidationError(`${field} must be a whole number from 1, got ${quote(count)}`);
  }
  return count;
}

export function checkedIdentifier(field: string, name: string): string {
  if (!IDENTIFIER.test(name)) {
    throw new ValidationError(
      `${field} must be 1 to 40 letters, digits and underscores, and not start with a digit`,
    );
  }
  return name;
}

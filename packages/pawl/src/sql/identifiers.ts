import { ValidationError } from "../model/errors.js";

/** Names that go into statement text: letters, digits and underscores, and short enough for every database. */
const IDENTIFIER = /^[A-Za-z_][A-Za-z0-9_]{0,39}$/;

export function checkedIdentifier(field: string, name: string): string {
  if (!IDENTIFIER.test(name)) {
    throw new ValidationError(
      `${field} must be 1 to 40 letters, digits and underscores, and not start with a digit`,
    );
  }
  return name;
}

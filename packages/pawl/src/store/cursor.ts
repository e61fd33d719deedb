import { WorkflowError } from "../model/errors.js";
import { unstorable } from "../model/names.js";

const VERSION = 1;
/** The engine's cursors are far shorter, even those with many values. Anything longer is not worth decoding. */
const MAX_LENGTH = 1024;
const MAX_LENGTH_PER_VALUE = 64;

/**
 * Makes a cursor, which is opaque to callers: base64url of `[version, query, ...position]`. `query` is a fingerprint of
 * the query that the page answered, so that a cursor is not used with another query by mistake.
 */
export function encodeCursor(query: string, position: readonly (string | number)[]): string {
  return toBase64Url(JSON.stringify([VERSION, fingerprint(query), ...position]));
}

/** A hash of 53 bits, from two rounds of FNV-1a. */
function fingerprint(query: string): number {
  let low = 0x811c9dc5;
  let high = 0x01000193;
  for (let i = 0; i < query.length; i++) {
    const unit = query.charCodeAt(i);
    low = Math.imul(low ^ unit, 0x01000193);
    high = Math.imul(high ^ unit ^ low, 0x85ebca6b);
  }
  return (high & 0x1fffff) * 2 ** 32 + (low >>> 0);
}

/** The types of a position. `int32` is for columns of that size, which some databases refuse to compare with more. */
type PositionShape = readonly ("string" | "integer" | "int32")[];

export function decodeCursor(
  cursor: string,
  query: string,
  shape: PositionShape,
): (string | number)[] {
  const maxLength = Math.max(MAX_LENGTH, MAX_LENGTH_PER_VALUE * shape.length);
  const decoded = cursor.length <= maxLength ? parse(cursor) : undefined;
  if (!Array.isArray(decoded)) throw invalid("it is not a cursor of this API");
  const [version, of, ...position] = decoded as unknown[];
  if (version !== VERSION) throw invalid("it comes from another version");
  if (of !== fingerprint(query)) throw invalid("it belongs to another query");
  const fits =
    position.length === shape.length && position.every((value, i) => isOfShape(value, shape[i]));
  if (!fits) throw invalid("it is damaged");
  return position as (string | number)[];
}

function isOfShape(value: unknown, shape: PositionShape[number] | undefined): boolean {
  switch (shape) {
    case "int32":
      return Number.isInteger(value) && Math.abs(value as number) < 2 ** 31;
    case "integer":
      return Number.isSafeInteger(value);
    case "string":
      return typeof value === "string" && !unstorable.test(value);
    default:
      return false;
  }
}

function invalid(why: string): WorkflowError {
  return new WorkflowError("INVALID_CURSOR", `cursor is not usable: ${why}`);
}

function parse(cursor: string): unknown {
  try {
    return JSON.parse(fromBase64Url(cursor));
  } catch {
    return undefined;
  }
}

const ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/** Everything beyond ASCII is escaped first, so that each character is one byte. */
function toBase64Url(json: string): string {
  const ascii = json.replaceAll(
    /[^\x20-\x7e]/g,
    (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
  let encoded = "";
  for (let i = 0; i < ascii.length; i += 3) {
    const chunk = [ascii.charCodeAt(i), ascii.charCodeAt(i + 1), ascii.charCodeAt(i + 2)];
    const bytes = chunk.filter((byte) => !Number.isNaN(byte));
    const bits = ((bytes[0] ?? 0) << 16) | ((bytes[1] ?? 0) << 8) | (bytes[2] ?? 0);
    for (let n = 0; n <= bytes.length; n++) encoded += ALPHABET[(bits >> (18 - 6 * n)) & 63];
  }
  return encoded;
}

function fromBase64Url(encoded: string): string {
  let ascii = "";
  for (let i = 0; i < encoded.length; i += 4) {
    const digits = Array.from(encoded.slice(i, i + 4), (digit) => ALPHABET.indexOf(digit));
    if (digits.includes(-1)) throw new Error("not base64url");
    const bits = digits.reduce((sum, digit, n) => sum | (digit << (18 - 6 * n)), 0);
    for (let n = 0; n < digits.length - 1; n++)
      ascii += String.fromCharCode((bits >> (16 - 8 * n)) & 255);
  }
  return ascii;
}

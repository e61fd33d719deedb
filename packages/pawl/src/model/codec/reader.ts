import { SerializationError } from "../errors.js";
import { quote } from "../quote.js";
import { fromBase64 } from "./base64.js";
import { buildError, isErrorClassName } from "./error-shape.js";
import {
  byteClasses,
  isByteClassName,
  maxBigintDigits,
  maxDepth,
  reservedKey,
  unescapeKey,
} from "./tags.js";

type JsonObject = Record<string, unknown>;

/**
 * Returns the value of an encoded text. Anything malformed is refused with a `SerializationError`: a text may also come
 * from an HTTP client.
 */
export function readText(text: string): unknown {
  const json = parse(text);
  // Most texts are plain JSON, which already is the value.
  return text.includes(`${reservedKey}"`) ? revive(json, 0) : json;
}

/** Returns the value of a parsed part of an encoded text. It changes that JSON in place, so the caller must drop it. */
export function fromTagged(json: unknown): unknown {
  return revive(json, 0);
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw new SerializationError("cannot read a value: the text is not JSON", { cause });
  }
}

/** Replaces tagged objects by their values, in place: `JSON.parse` made these objects for this call alone. */
function revive(json: unknown, depth: number): unknown {
  if (typeof json !== "object" || json === null) return json;
  // The reader allows one level more than the writer. To the writer a Date is no container, yet it is written as an
  // object.
  if (depth > maxDepth) throw unreadable(`more than ${maxDepth} levels of nesting`);
  if (Array.isArray(json)) return reviveItems(json, depth);
  if (Object.hasOwn(json, reservedKey)) return reviveTagged(json as JsonObject, depth);
  return reviveProperties(json as JsonObject, depth);
}

function reviveItems(items: unknown[], depth: number): unknown[] {
  for (let i = 0; i < items.length; i++) items[i] = revive(items[i], depth + 1);
  return items;
}

function reviveProperties(object: JsonObject, depth: number): JsonObject {
  const keys = Object.keys(object);
  // `JSON.parse` makes `__proto__` an own property, so assigning to it changes that property and no prototype.
  for (const key of keys) object[key] = revive(object[key], depth + 1);
  if (keys.every((key) => unescapeKey(key) === key)) return object;
  // `fromEntries` defines properties instead of assigning them, so `__proto__` stays data here too.
  return Object.fromEntries(keys.map((key) => [unescapeKey(key), object[key]]));
}

function reviveTagged(json: JsonObject, depth: number): unknown {
  const { [reservedKey]: tag, value } = json;
  switch (tag) {
    case "undefined":
      return undefined;
    case "number":
      return reviveNumber(value);
    case "bigint":
      return reviveBigint(value);
    case "Date":
      return reviveDate(value);
    case "Map":
      return reviveMap(value, depth);
    case "Set":
      if (!Array.isArray(value)) throw malformed(tag);
      return new Set(reviveItems(value, depth));
    case "Error":
      return reviveError(json, depth);
    default:
      return reviveBytes(tag, value);
  }
}

const oddNumbers = new Map<unknown, number>([
  ["NaN", Number.NaN],
  ["Infinity", Infinity],
  ["-Infinity", -Infinity],
  ["-0", -0],
]);

function reviveNumber(value: unknown): number {
  const number = oddNumbers.get(value);
  if (number === undefined) throw malformed("number");
  return number;
}

function reviveBigint(value: unknown): bigint {
  if (typeof value !== "string" || !/^-?\d+$/.test(value)) throw malformed("bigint");
  if (value.length > maxBigintDigits)
    throw unreadable(`a bigint of more than ${maxBigintDigits} digits`);
  return BigInt(value);
}

function reviveDate(value: unknown): Date {
  if (value === null) return new Date(Number.NaN);
  const date = typeof value === "string" ? new Date(value) : undefined;
  if (date === undefined || Number.isNaN(date.getTime())) throw malformed("Date");
  return date;
}

function reviveMap(value: unknown, depth: number): Map<unknown, unknown> {
  if (!Array.isArray(value)) throw malformed("Map");
  const map = new Map<unknown, unknown>();
  for (const entry of value as unknown[]) {
    if (!Array.isArray(entry) || entry.length !== 2) throw malformed("Map");
    map.set(revive(entry[0], depth + 1), revive(entry[1], depth + 1));
  }
  return map;
}

function reviveError(json: JsonObject, depth: number): Error {
  const { name, message, code } = json;
  const className = json["class"] ?? name;
  if (typeof name !== "string" || typeof message !== "string") throw malformed("Error");
  if (!isErrorClassName(className)) throw malformed("Error");
  if (code !== undefined && typeof code !== "string" && typeof code !== "number") {
    throw malformed("Error");
  }
  const cause = revive(json["cause"], depth + 1);
  const errors = revive(json["errors"], depth + 1);
  if (errors !== undefined && !Array.isArray(errors)) throw malformed("Error");
  return buildError({
    class: className,
    name,
    message,
    ...(code === undefined ? {} : { code }),
    ...(cause === undefined ? {} : { cause }),
    ...(errors === undefined ? {} : { errors }),
  });
}

function reviveBytes(tag: unknown, value: unknown): unknown {
  if (typeof tag !== "string" || !isByteClassName(tag)) {
    throw unreadable(`the unknown type ${quote(tag)}, maybe of a newer version`);
  }
  if (typeof value !== "string") throw malformed(tag);
  try {
    const { buffer } = fromBase64(value);
    const View = byteClasses[tag] as new (buffer: ArrayBuffer) => unknown;
    return tag === "ArrayBuffer" ? buffer : new View(buffer);
  } catch {
    throw malformed(tag); // not base64, or not a multiple of the element's size
  }
}

function malformed(tag: string): SerializationError {
  return unreadable(`a malformed ${tag}`);
}

function unreadable(found: string): SerializationError {
  return new SerializationError(`cannot read a value: the text has ${found}`);
}

import { readText } from "./codec/reader.js";
import { writeText, type EncodeContext } from "./codec/writer.js";

export { fromTagged } from "./codec/reader.js";
export type { EncodeContext };

/**
 * Turns values into text for storage, and back. A value is encoded once. Workflow code always sees `decode(text)`, in
 * the first run as in every replay: each call returns a new value, never the one that was encoded.
 */
export interface Codec {
  /**
   * Returns the text to store. Throws `SerializationError` for a value that cannot be stored and `PayloadTooLargeError`
   * for one over `context.maxBytes`; either ends a step without another attempt.
   */
  encode(value: unknown, context: EncodeContext): string;
  /** Returns a new value for a text that `encode` returned. */
  decode(text: string): unknown;
}

/**
 * The default codec: JSON, plus the values that JSON loses. Plain values are written exactly as `JSON.stringify` writes
 * them. `undefined`, `NaN`, `Infinity`, `-0`, bigints, dates, maps, sets, bytes and errors become tagged objects such
 * as `{"$pawl":"Date","value":"2026-01-31T12:00:00.000Z"}`.
 *
 * Of an object, only own enumerable properties with string keys are stored. An instance of an Array subclass comes back
 * as an array, Node's `Buffer` as a `Uint8Array`, an object without a prototype as a plain one, and a reference that is
 * shared as one copy per use. Functions, symbols, instances of other classes and cycles are refused.
 */
export const jsonPlusCodec: Codec = {
  encode: writeText,
  decode: readText,
};

/**
 * Returns a value as JSON for sending: the text of `jsonPlusCodec`, parsed. Each value is encoded on its own, so an
 * object that it is put into does not count towards its limit of nesting.
 */
export function toTagged(value: unknown, what: string): Json {
  return JSON.parse(jsonPlusCodec.encode(value, { what, maxBytes: Infinity })) as Json;
}

export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };

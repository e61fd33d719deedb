import { readText } from "./codec/reader.js";
import { writeText, type EncodeContext } from "./codec/writer.js";

export { fromTagged } from "./codec/reader.js";
export type { EncodeContext };

/**
 * How values become text and back. A value is encoded once; what the code sees, in the first run as in every
 * replay, is `decode(text)`: a new value per call, never the one that was encoded.
 *
 * `encode` throws `SerializationError` or `PayloadTooLargeError`; both end a step without another attempt.
 */
export interface Codec {
  encode(value: unknown, context: EncodeContext): string;
  decode(text: string): unknown;
}

/**
 * JSON, plus what JSON loses. Plain values are written exactly as `JSON.stringify` would; the rest as tagged
 * objects (codec/tags.ts): undefined, NaN, Infinity, -0, bigint, Date, Map, Set, bytes and errors.
 *
 * What counts is own enumerable string keys. Arrays of a subclass come back as arrays, Node's Buffer as
 * Uint8Array, null-prototype objects as plain ones, shared references as copies.
 */
export const jsonPlusCodec: Codec = {
  encode: writeText,
  decode: readText,
};

/** A value as JSON, for sending: the text of `jsonPlusCodec`, parsed. Each by itself: what wraps it adds no depth. */
export function toTagged(value: unknown, what: string): Json {
  return JSON.parse(jsonPlusCodec.encode(value, { what, maxBytes: Infinity })) as Json;
}

export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };

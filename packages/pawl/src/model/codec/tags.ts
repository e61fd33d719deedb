/**
 * A tagged value is an object with the reserved key: `{"$pawl":"Date","value":"2026-01-31T12:00:00.000Z"}`.
 * A key of user data that is `$pawl` gets one more `$`, as does `$$pawl`, and so on: no data looks like a tag.
 */
export const reservedKey = "$pawl";

const reservedOrEscaped = /^\$+pawl$/;
const escaped = /^\$\$+pawl$/;

export function escapeKey(key: string): string {
  return key.endsWith(reservedKey) && reservedOrEscaped.test(key) ? `$${key}` : key;
}

export function unescapeKey(key: string): string {
  return escaped.test(key) ? key.slice(1) : key;
}

/** Containers within containers. Far below what a call stack holds, far above what people write. */
export const maxDepth = 1_000;

/** Reading a bigint takes the square of its length: 8 MB of digits would take 8 seconds, measured. */
export const maxBigintDigits = 4_096;

/** Bytes are stored as they lie in memory: little-endian on every platform that runs JavaScript today. */
export const byteClasses = {
  ArrayBuffer,
  DataView,
  Int8Array,
  Uint8Array,
  Uint8ClampedArray,
  Int16Array,
  Uint16Array,
  Int32Array,
  Uint32Array,
  Float32Array,
  Float64Array,
  BigInt64Array,
  BigUint64Array,
} as const;

export type ByteClassName = keyof typeof byteClasses;

export function isByteClassName(name: string): name is ByteClassName {
  return Object.hasOwn(byteClasses, name);
}

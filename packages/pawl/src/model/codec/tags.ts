/**
 * The key that marks a tagged value, as in `{"$pawl":"Date","value":"2026-01-31T12:00:00.000Z"}`. In user data a key
 * `$pawl` is written with one more `$`, and so are `$$pawl` and its like: no user data can look like a tag.
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

/** How deep containers may be nested: far less than a call stack holds, and far more than people write. */
export const maxDepth = 1_000;

/** Reading a bigint takes time with the square of its length: 8 MB of digits took 8 seconds, measured. */
export const maxBigintDigits = 4_096;

/**
 * The classes of bytes. They are stored as they lie in memory, little-endian on every platform that runs JavaScript.
 */
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

type ByteClassName = keyof typeof byteClasses;

export function isByteClassName(name: string): name is ByteClassName {
  return Object.hasOwn(byteClasses, name);
}

/** Returns the 32-bit FNV-1a hash of a text's UTF-16 units. */
export function fnv1a(text: string, seed = 0x811c9dc5): number {
  let value = seed;
  for (let i = 0; i < text.length; i++) {
    value = Math.imul(value ^ text.charCodeAt(i), 0x01000193);
  }
  return value >>> 0;
}

/**
 * Mixes a hash as the last step of MurmurHash3 does. Every bit of the result depends on every bit of the hash, so that
 * its remainders are spread evenly.
 */
export function mixed(hash: number): number {
  let value = hash;
  value = Math.imul(value ^ (value >>> 16), 0x85ebca6b);
  value = Math.imul(value ^ (value >>> 13), 0xc2b2ae35);
  return (value ^ (value >>> 16)) >>> 0;
}

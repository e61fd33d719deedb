/** 32 bits of FNV-1a over the UTF-16 units of a text. */
export function fnv1a(text: string, seed = 0x811c9dc5): number {
  let value = seed;
  for (let i = 0; i < text.length; i++) {
    value = Math.imul(value ^ text.charCodeAt(i), 0x01000193);
  }
  return value >>> 0;
}

/** The last step of MurmurHash3: every bit of the hash then depends on every bit, so that a remainder is fair. */
export function mixed(hash: number): number {
  let value = hash;
  value = Math.imul(value ^ (value >>> 16), 0x85ebca6b);
  value = Math.imul(value ^ (value >>> 13), 0xc2b2ae35);
  return (value ^ (value >>> 16)) >>> 0;
}

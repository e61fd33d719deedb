const BITS = 48;

/**
 * The awaited event types as a small set on the ticket, with one bit for each type, by hash. Sending an event looks
 * only at this set. Two types that share a bit cost one needless wake-up, never a lost one.
 */
export function waitMaskOf(types: readonly string[]): number {
  const bits = new Set(types.map(bitOf));
  let mask = 0;
  for (const bit of bits) mask += 2 ** bit;
  return mask;
}

/** FNV-1a over UTF-16 units. */
function bitOf(type: string): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < type.length; i++) {
    hash = Math.imul(hash ^ type.charCodeAt(i), 0x01000193);
  }
  return (hash >>> 0) % BITS;
}

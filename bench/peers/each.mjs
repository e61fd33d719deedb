// @ts-check
// This file uses nothing of Node, because it runs inside workerd, too.

/**
 * @template T
 * @param {Iterable<T>} list
 * @param {number} inFlight
 * @param {(item: T) => Promise<void>} use
 */
export async function eachOf(list, inFlight, use) {
  const rest = list[Symbol.iterator]();
  const loop = async () => {
    for (let next = rest.next(); next.done !== true; next = rest.next()) await use(next.value);
  };
  await Promise.all(Array.from({ length: inFlight }, loop));
}

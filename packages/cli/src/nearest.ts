/** Returns the word that begins with `given` or is most like it, if any is. */
export function nearest(given: string, words: readonly string[]): string | undefined {
  const wanted = given.toLowerCase();
  if (wanted === "") return undefined;
  const begun = words.find((word) => word.toLowerCase().startsWith(wanted));
  if (begun !== undefined) return begun;
  const [best] = words
    .map((word) => ({ word, distance: distance(wanted, word.toLowerCase()) }))
    .toSorted((a, b) => a.distance - b.distance);
  const mostSlips = Math.max(1, Math.floor(wanted.length / 3));
  return best !== undefined && best.distance <= mostSlips ? best.word : undefined;
}

/** Levenshtein's distance of the first characters. A longer difference is not a slip of the finger. */
function distance(a: string, b: string): number {
  const [left, right] = [Array.from(a.slice(0, 64)), Array.from(b.slice(0, 64))];
  let row = Array.from({ length: right.length + 1 }, (_, n) => n);
  for (const [i, letter] of left.entries()) {
    const next = [i + 1];
    for (const [j, other] of right.entries()) {
      next.push(
        Math.min(
          (next[j] ?? 0) + 1,
          (row[j + 1] ?? 0) + 1,
          (row[j] ?? 0) + (letter === other ? 0 : 1),
        ),
      );
    }
    row = next;
  }
  return row.at(-1) ?? 0;
}

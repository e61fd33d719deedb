/** The word that is most like `given`, if one is like it at all. */
export function nearest(given: string, words: readonly string[]): string | undefined {
  const wanted = given.toLowerCase();
  const ranked = words
    .map((word) => ({ word, distance: distance(wanted, word.toLowerCase()) }))
    .toSorted((a, b) => a.distance - b.distance);
  const best = ranked[0];
  if (best === undefined || wanted === "") return undefined;
  const isLike =
    best.distance <= Math.max(1, Math.floor(wanted.length / 3)) ||
    best.word.toLowerCase().startsWith(wanted);
  return isLike ? best.word : undefined;
}

/** Levenshtein's, of the first characters: what is longer is not a slip of the finger. */
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

const quotedMaxCodePoints = 40;

/** Returns a given value for an error message: short, on one line, and with invisible characters escaped. */
export function quote(given: unknown): string {
  if (typeof given === "string") return quoteText(given);
  if (Array.isArray(given)) return "an array";
  if (typeof given === "object" && given !== null) return "an object";
  if (["bigint", "symbol", "function"].includes(typeof given)) return `a ${typeof given}`;
  return String(given);
}

function quoteText(given: string): string {
  // A code point has at most 2 UTF-16 units. The slice keeps a name of a megabyte from being walked to show 40
  // characters.
  const codePoints = Array.from(given.slice(0, quotedMaxCodePoints * 2)).slice(
    0,
    quotedMaxCodePoints,
  );
  const shown = codePoints.join("");
  const ellipsis = shown.length < given.length ? "…" : "";
  return `"${escapeInvisible(shown)}${ellipsis}"`;
}

// The category Other (control, format, lone surrogate, private, unassigned), line breaks, the quote and the backslash.
const invisible = /[\p{C}\p{Zl}\p{Zp}"\\]/gu;

function escapeInvisible(text: string): string {
  return text.replace(invisible, (character) =>
    character === '"' || character === "\\"
      ? `\\${character}`
      : `\\u{${character.codePointAt(0)?.toString(16)}}`,
  );
}

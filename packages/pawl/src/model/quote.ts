const quotedMaxCodePoints = 40;

/** What a person gave, short and on one line, for an error message. Nothing invisible gets through. */
export function quote(given: unknown): string {
  if (typeof given === "string") return quoteText(given);
  if (Array.isArray(given)) return "an array";
  if (typeof given === "object" && given !== null) return "an object";
  if (["bigint", "symbol", "function"].includes(typeof given)) return `a ${typeof given}`;
  return String(given);
}

function quoteText(given: string): string {
  // 2 UTF-16 units per code point: a megabyte of name is not walked to show forty characters of it.
  const codePoints = Array.from(given.slice(0, quotedMaxCodePoints * 2)).slice(
    0,
    quotedMaxCodePoints,
  );
  const shown = codePoints.join("");
  const ellipsis = shown.length < given.length ? "…" : "";
  return `"${escapeInvisible(shown)}${ellipsis}"`;
}

// Other (control, format, lone surrogate, private, unassigned), line breaks, the quote and the escape sign itself.
const invisible = /[\p{C}\p{Zl}\p{Zp}"\\]/gu;

function escapeInvisible(text: string): string {
  return text.replace(invisible, (character) =>
    character === '"' || character === "\\"
      ? `\\${character}`
      : `\\u{${character.codePointAt(0)?.toString(16)}}`,
  );
}

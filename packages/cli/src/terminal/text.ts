// Control and format characters, line breaks: what other people wrote must not move the cursor or hide anything.
const invisible = /[\p{C}\p{Zl}\p{Zp}]/gu;

/** On one line, and nothing invisible. */
export function visible(text: string): string {
  return text.replace(invisible, (character) => {
    if (character === "\n") return "\\n";
    if (character === "\t") return "\\t";
    return `\\u{${character.codePointAt(0)?.toString(16)}}`;
  });
}

/** The first so many characters. */
export function cut(text: string, maxLength: number): string {
  // 2 units per code point: a megabyte is not walked to show eighty characters of it.
  const characters = Array.from(text.slice(0, maxLength * 2 + 2));
  if (characters.length <= maxLength) return text;
  return `${characters.slice(0, Math.max(0, maxLength - 1)).join("")}…`;
}

/** "1 run", "2 runs". */
export function counted(count: number, noun: string): string {
  return `${count.toLocaleString("en")} ${noun}${count === 1 ? "" : "s"}`;
}

const units = [
  ["d", 86_400_000],
  ["h", 3_600_000],
  ["min", 60_000],
  ["s", 1_000],
] as const;

/** The largest unit that fits, and no more digits than people read. */
export function duration(ms: number): string {
  const found = units.find(([, size]) => ms >= size);
  if (found === undefined) return `${Math.max(0, Math.round(ms))} ms`;
  const [unit, size] = found;
  const value = ms / size;
  return `${value < 10 ? Number(value.toFixed(1)) : Math.floor(value)} ${unit}`;
}

/** Relative to now; the clock of the database may be another. */
export function ago(at: Date, now = Date.now()): string {
  const ms = now - at.getTime();
  return ms < 0 ? `in ${duration(-ms)}` : `${duration(ms)} ago`;
}

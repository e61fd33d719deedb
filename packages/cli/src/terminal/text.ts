// Control and format characters and line breaks. Text that other people wrote must not move the cursor or hide
// anything.
const invisible = /[\p{C}\p{Zl}\p{Zp}]/gu;

/** Puts a text on one line, and shows what is invisible in it. */
export function visible(text: string): string {
  return text.replace(invisible, (character) => {
    if (character === "\n") return "\\n";
    if (character === "\t") return "\\t";
    return `\\u{${character.codePointAt(0)?.toString(16)}}`;
  });
}

/** Cuts a text to so many characters. */
export function cut(text: string, maxLength: number): string {
  // A code point has at most two units: a megabyte is not walked to show eighty characters of it.
  const characters = Array.from(text.slice(0, maxLength * 2 + 2));
  if (characters.length <= maxLength) return text;
  return `${characters.slice(0, Math.max(0, maxLength - 1)).join("")}…`;
}

/** "1 run", "2 runs". */
export function counted(count: number, noun: string): string {
  return `${count.toLocaleString("en")} ${noun}${count === 1 ? "" : "s"}`;
}

const units = [
  ["ms", 1],
  ["s", 1_000],
  ["min", 60_000],
  ["h", 3_600_000],
  ["d", 86_400_000],
] as const;

/** Writes a duration in the largest unit that fits, rounded to as many digits as people read. */
export function duration(ms: number): string {
  const fitting = units.findLastIndex(([, size]) => ms >= size);
  const [unit, size] = units[Math.max(0, fitting)] ?? units[0];
  const value = Math.max(0, ms / size);
  const rounded = unit === "ms" || value >= 10 ? Math.round(value) : Number(value.toFixed(1));
  // 59.9 seconds are shown as a minute, not as 60 seconds.
  const larger = units[fitting + 1];
  return larger !== undefined && rounded * size >= larger[1]
    ? `1 ${larger[0]}`
    : `${rounded} ${unit}`;
}

/** Writes a time relative to now. The database's clock may differ from ours. */
export function ago(at: Date, now = Date.now()): string {
  const ms = now - at.getTime();
  return ms < 0 ? `in ${duration(-ms)}` : `${duration(ms)} ago`;
}

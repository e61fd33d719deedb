const MAX_LENGTH = 500;
const MAX_DEPTH = 4;
const MAX_ITEMS = 20;

/** Returns a value on one line of bounded length, as a person would write it: `{ a: 1, at: Date 2026-… }`. */
export function show(value: unknown): string {
  const shown = within(value, MAX_DEPTH);
  return shown.length <= MAX_LENGTH
    ? shown
    : `${shown.slice(0, MAX_LENGTH).replace(/[\ud800-\udbff]$/, "")}…`;
}

function within(value: unknown, depth: number): string {
  if (typeof value === "string") return text(value);
  if (typeof value === "bigint") return `${value}n`;
  if (typeof value !== "object" || value === null) return String(value);
  if (value instanceof Date) return `Date ${Number.isNaN(+value) ? "invalid" : value.toJSON()}`;
  if (value instanceof Error) return `${value.name}: ${value.message}`;
  if (ArrayBuffer.isView(value)) return `${value.constructor.name} of ${value.byteLength} bytes`;
  if (value instanceof ArrayBuffer) return `ArrayBuffer of ${value.byteLength} bytes`;
  if (depth === 0) return "…";
  const inner = (item: unknown): string => within(item, depth - 1);
  if (Array.isArray(value)) return enclosed("[", value, inner, "]");
  if (value instanceof Set) return enclosed("Set {", value, inner, "}");
  if (value instanceof Map) {
    return enclosed("Map {", value, ([key, item]) => `${inner(key)} => ${inner(item)}`, "}");
  }
  const named = (key: string): string => (/^[\w$]+$/.test(key) ? key : text(key));
  return enclosed(
    "{",
    Object.entries(value),
    ([key, item]) => `${named(key)}: ${inner(item)}`,
    "}",
  );
}

function enclosed<T>(open: string, items: Iterable<T>, each: (item: T) => string, close: string) {
  const shown: string[] = [];
  for (const item of items) {
    if (shown.length === MAX_ITEMS) {
      shown.push("…");
      break;
    }
    shown.push(each(item));
  }
  const space = open === "[" || shown.length === 0 ? "" : " ";
  return `${open}${space}${shown.join(", ")}${space}${close}`;
}

function text(given: string): string {
  return JSON.stringify(given.length > MAX_LENGTH ? given.slice(0, MAX_LENGTH) : given);
}

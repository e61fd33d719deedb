import type { Logger } from "pawl";
import type { Terminal } from "./terminal.js";
import { visible } from "./text.js";

/** A logger that writes the engine's warnings to standard error. */
export function quietLogger(terminal: Terminal): Logger {
  const tell = (event: string, fields?: object): void => terminal.note(logLine(event, fields));
  return { debug() {}, info() {}, warn: tell, error: tell };
}

/** The stack frames by which the engine came to call the author's code, which are the same for every step. */
const engineFrame = /^ +at .*(\/pawl\/dist\/(engine\/|runtime\.js)|node:(internal\/|async_hooks:))/;

/**
 * Writes an event of the engine's log on one line. A stack follows on lines of its own, so that editors find the places
 * in it.
 */
export function logLine(event: string, fields: object = {}): string {
  const { stack, ...rest } = fields as { readonly stack?: unknown };
  const told = Object.entries(rest).map(([name, value]) => `${name}=${written(value)}`);
  const frames = typeof stack === "string" ? stack.split("\n") : [];
  const shown = frames.filter((frame) => !engineFrame.test(frame)).map((frame) => `  ${frame}`);
  return [[event, ...told].join(" "), ...shown].map(visible).join("\n");
}

function written(value: unknown): string {
  if (typeof value === "string") return /^[\w.-]+$/.test(value) ? value : JSON.stringify(value);
  return JSON.stringify(value) ?? String(value);
}

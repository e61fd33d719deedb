import type { Logger } from "pawl";
import type { Terminal } from "./terminal.js";
import { visible } from "./text.js";

/** What the engine warns of, on standard error. */
export function quietLogger(terminal: Terminal): Logger {
  const tell = (event: string, fields?: object): void => terminal.note(logLine(event, fields));
  return { debug() {}, info() {}, warn: tell, error: tell };
}

/** How the engine came to call the author's code: the same for every step. */
const engineFrame = /^ +at .*(\/pawl\/dist\/(engine\/|runtime\.js)|node:(internal\/|async_hooks:))/;

/** An event of the engine's log on one line; a stack follows on lines of its own, so that editors find its places. */
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

import type { Logger } from "pawl";
import type { Terminal } from "./terminal.js";
import { visible } from "./text.js";

/** What the engine warns of, on standard error. */
export function quietLogger(terminal: Terminal): Logger {
  const tell = (event: string, fields?: object): void => terminal.note(logLine(event, fields));
  return { debug() {}, info() {}, warn: tell, error: tell };
}

/** An event of the engine's log on one line. */
export function logLine(event: string, fields: object = {}): string {
  const told = Object.entries(fields).map(([name, value]) => `${name}=${written(value)}`);
  return visible([event, ...told].join(" "));
}

function written(value: unknown): string {
  if (typeof value === "string") return /^[\w.-]+$/.test(value) ? value : JSON.stringify(value);
  return JSON.stringify(value) ?? String(value);
}

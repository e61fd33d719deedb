import type { HistoryStep, HistoryWait, InstanceStatus, InstanceStatusName } from "pawl";
import { textOf } from "./json.js";
import type { Terminal } from "./terminal.js";
import { ago, cut, visible } from "./text.js";

type Colors = Terminal["colors"];

/** The words for an instance's status and for a step's. */
export type StatusWord = InstanceStatusName | HistoryStep["status"];

const colorOf: {
  readonly [S in StatusWord]: "cyan" | "green" | "magenta" | "red" | "yellow" | null;
} = {
  queued: null,
  running: "cyan",
  waiting: "yellow",
  waitingForPause: "yellow",
  paused: "yellow",
  complete: "green",
  completed: "green",
  errored: "red",
  terminated: "magenta",
  unknown: null,
};

export function statusWord(status: StatusWord, colors: Colors): string {
  const color = colorOf[status] ?? null; // a newer API may have words that are unknown here
  return color === null ? status : colors[color](status);
}

const SHOWN = 200;

/** Writes the output or the error on one line. */
export function outcome(
  { error, ...rest }: Omit<InstanceStatus, "status">,
  maxLength = SHOWN,
): string {
  if (error !== undefined) return problem(error, maxLength);
  return "output" in rest ? valueText(rest.output, maxLength) : "";
}

export function problem(
  { name, message }: { readonly name: string; readonly message: string },
  maxLength = SHOWN,
): string {
  return cut(visible(`${name}: ${message}`), maxLength);
}

export function valueText(value: unknown, maxLength = SHOWN): string {
  return value === undefined ? "" : cut(visible(textOf(value)), maxLength);
}

export function waitText({ reason, eventType, until }: HistoryWait): string {
  const reasons: Readonly<Record<string, string>> = {
    retry: "its next attempt",
    sleep: "time to pass",
  };
  const what =
    eventType === undefined
      ? (reasons[reason] ?? reason)
      : `an event of type "${visible(eventType)}"`;
  if (until === null) return `waits for ${what}`;
  const isPast = until.getTime() <= Date.now();
  return isPast
    ? `waits for ${what}, due ${ago(until)}`
    : `waits for ${what}, until ${until.toISOString()} (${ago(until)})`;
}

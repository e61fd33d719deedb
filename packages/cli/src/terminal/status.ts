import type { HistoryWait, InstanceStatus } from "pawl";
import { textOf } from "./json.js";
import type { Terminal } from "./terminal.js";
import { ago, cut, visible } from "./text.js";

type Colors = Terminal["colors"];

export function statusWord(status: string, colors: Colors): string {
  switch (status) {
    case "complete":
    case "completed":
      return colors.green(status);
    case "errored":
      return colors.red(status);
    case "running":
      return colors.cyan(status);
    case "waiting":
    case "paused":
    case "waitingForPause":
      return colors.yellow(status);
    case "terminated":
      return colors.magenta(status);
    default:
      return status;
  }
}

const SHOWN = 200;

/** What came out, on one line. */
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

import type { InstanceStatusName } from "../../model/status.js";
import { int, text, textOrNull } from "../sql.js";
import type { Row } from "../statement.js";

/**
 * The status of an instance joined with its ticket: what has ended is on the instance, what lives on the
 * ticket. Expects `status`, `state` and `pause_requested`.
 */
export function statusOfRow(row: Row): InstanceStatusName {
  const status = text(row, "status");
  if (status !== "live") return status as InstanceStatusName;
  const state = textOrNull(row, "state");
  switch (state) {
    case "queued":
    case "waiting":
    case "paused":
      return state;
    case "leased":
      return int(row, "pause_requested") === 1 ? "waitingForPause" : "running";
    default:
      return "unknown";
  }
}

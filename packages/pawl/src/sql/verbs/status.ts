import type { InstanceStatusName } from "../../model/status.js";
import { statusOfTicket } from "../../model/ticket.js";
import { int, text, textOrNull } from "../sql.js";
import type { Row } from "../statement.js";

/**
 * The status of an instance joined with its ticket: an ended run has it on the instance, a live one on the ticket.
 * Expects `status`, `state` and `pause_requested`.
 */
export function statusOfRow(row: Row): InstanceStatusName {
  const status = text(row, "status");
  if (status !== "live") return status as InstanceStatusName;
  const state = textOrNull(row, "state");
  return statusOfTicket(state, state !== null && int(row, "pause_requested") === 1);
}

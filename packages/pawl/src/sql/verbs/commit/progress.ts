import type { Part } from "../../../store/store.js";
import type { RowValues } from "../../statement.js";
import { stateWord } from "../../ticket.js";

/** Results and nothing else: its ticket is locked, not written. */
export function isProgress(part: Part): boolean {
  return isProgressWithEvents(part) && part.consumed.length === 0;
}

/** Results, some of them of events that it has waited for. */
export function isProgressWithEvents(part: Part): boolean {
  const { attempts, spawns, deliveries } = part;
  return (
    part.next.kind === "continue" &&
    part.takeovers === undefined &&
    attempts.length + spawns.length + deliveries.length === 0
  );
}

/** What such a part says of itself. */
export const progressColumns = { iid: "key", claim_no: "big", seen_events: "big" } as const;
export const progressRow = (part: Part): RowValues => ({
  iid: part.iid,
  claim_no: part.claimNumber,
  seen_events: part.seenEvents,
});
/** Its ticket has something to say. */
export const oddSql = `(t.state <> ${stateWord.leased} OR t.pause_requested = 1 OR t.event_count > p.seen_events)`;

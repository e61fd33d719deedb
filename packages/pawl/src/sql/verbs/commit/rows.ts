import type { Part } from "../../../store/part.js";
import type { ColumnType } from "../../dialect.js";
import type { RowValues } from "../../statement.js";

/** The row sets of a commit: the columns in which parts travel into a statement. */
export const columns = {
  parts: {
    iid: "key",
    run_no: "int",
    claim_no: "big",
    part_no: "int",
    seen_events: "big",
    next: "word",
    wait_mask: "big",
    wake_at: "big",
    wake_in: "big",
    history_bytes: "big",
    takeovers: "int",
    output: "body",
    error: "body",
  },
  attempts: { iid: "key", run_no: "int", ord: "int", n: "int", took: "big", error: "body" },
  consumed: { iid: "key", run_no: "int", number: "big", ord: "int" },
  spawns: {
    parent: "key",
    iid: "key",
    workflow: "key",
    id: "key",
    queue: "key",
    params: "body",
    origin: "key",
  },
  deliveries: {
    sender: "key",
    id: "key",
    iid: "key",
    run_no: "int",
    event_id: "key",
    kind: "word",
    type: "key",
    payload: "body",
  },
} as const satisfies Record<string, Record<string, ColumnType>>;

export type CommitRows = { readonly [Set in keyof typeof columns]: RowValues[] };

/**
 * The ids of inbox rows keep the order of the deliveries. A resend makes new ids; its event ids tell that it is one.
 */
export function rowsOf(parts: readonly Part[], newInboxId: () => string): CommitRows {
  return {
    parts: parts.map(partRow),
    attempts: parts.flatMap((part) =>
      part.attempts.map((attempt) => ({
        iid: part.iid,
        run_no: part.runNumber,
        ord: attempt.ord,
        n: attempt.n,
        took: attempt.tookMs,
        error: attempt.error,
      })),
    ),
    consumed: consumedRows(parts),
    spawns: parts.flatMap((part) =>
      part.spawns.map((spawn) => ({
        parent: part.iid,
        iid: spawn.iid,
        workflow: spawn.workflow,
        id: spawn.id,
        queue: spawn.queue,
        params: spawn.params,
        origin: spawn.origin ?? null,
      })),
    ),
    deliveries: parts.flatMap((part) =>
      part.deliveries.map((delivery) => ({
        sender: part.iid,
        id: newInboxId(),
        iid: delivery.iid,
        run_no: delivery.runNumber,
        event_id: delivery.eventId,
        kind: delivery.kind,
        type: delivery.type,
        payload: delivery.payload,
      })),
    ),
  };
}

export function consumedRows(parts: readonly Part[]): RowValues[] {
  return parts.flatMap(({ iid, runNumber, consumed }) =>
    consumed.map(({ number, ord }) => ({ iid, run_no: runNumber, number, ord })),
  );
}

function partRow(part: Part): RowValues {
  const { next } = part;
  const isRelease = next.kind === "release";
  const wake = "wake" in next ? next.wake : null;
  return {
    iid: part.iid,
    run_no: part.runNumber,
    claim_no: part.claimNumber,
    part_no: part.partNumber,
    seen_events: part.seenEvents,
    next: next.kind,
    wait_mask: "waitMask" in next ? next.waitMask : 0,
    wake_at: wake !== null && "at" in wake ? wake.at : null,
    wake_in: isRelease ? next.inMs : wake !== null && "inMs" in wake ? wake.inMs : null,
    history_bytes: "historyBytes" in next ? next.historyBytes : 0,
    takeovers: part.takeovers ?? null,
    output: next.kind === "complete" ? next.output : null,
    error: next.kind === "fail" ? next.error : null,
  };
}

/** Whether a part brings results, some of them perhaps of events that its run has waited for, and nothing else. */
export function isProgress(part: Part): boolean {
  const { attempts, spawns, deliveries } = part;
  return (
    part.next.kind === "continue" &&
    part.takeovers === undefined &&
    attempts.length + spawns.length + deliveries.length === 0
  );
}

/** The row set of parts that are progress. */
export const progressColumns = { iid: "key", claim_no: "big", seen_events: "big" } as const;
export const progressRow = (part: Part): RowValues => ({
  iid: part.iid,
  claim_no: part.claimNumber,
  seen_events: part.seenEvents,
});

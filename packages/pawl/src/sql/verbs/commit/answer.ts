import type { TicketState } from "../../../model/ticket.js";
import type { Part, PartAnswer } from "../../../store/part.js";
import { int, intOrNull, text, type Sql } from "../../sql.js";
import type { Row, Script } from "../../statement.js";
import type { Becomes } from "../../ticket.js";
import type { EventReader } from "../events/reading.js";

type Fate = "busy" | "lost" | { readonly finishedAt: number };
export type MissingParts = (parts: readonly Part[]) => Script<Map<string, Fate>>;

/** Tells of a part that was not locked whether it is busy or lost, or has finished its run before. */
export function missingParts(sql: Sql): MissingParts {
  const read = sql.prepare(
    "commit.missing",
    `SELECT p.iid, t.claim_no AS ticket_claim, i.claim_no AS finish_claim, i.run_no, i.finished_at
     FROM ${sql.rows("parts", "p", { iid: "key" })}
       ${sql.dialect.drivenJoin} ${sql.table("instance")} AS i ON i.iid == p.iid
       LEFT JOIN ${sql.table("ticket")} AS t ON t.tid == p.iid`,
  );
  return function* (parts) {
    const rows = yield read.with({ parts: parts.map(({ iid }) => ({ iid })) });
    const byIid = new Map(rows.map((row) => [text(row, "iid"), row]));
    return new Map(parts.map((part) => [part.iid, fateOf(part, byIid.get(part.iid))]));
  };
}

function fateOf(part: Part, row: Row | undefined): Fate {
  if (row === undefined) return "lost";
  if (intOrNull(row, "ticket_claim") === part.claimNumber) return "busy";
  const finishedAt = intOrNull(row, "finished_at");
  const mine =
    int(row, "finish_claim") === part.claimNumber && int(row, "run_no") === part.runNumber;
  return mine && finishedAt !== null ? { finishedAt } : "lost";
}

export function* answerParts(
  parts: readonly Part[],
  locked: readonly Row[],
  /** The time, if parts without a row are simply leased; null if parts without a row were not locked. */
  leasedAt: number | null,
  events: EventReader,
  missing: MissingParts,
): Script<PartAnswer[]> {
  const byIid = new Map(locked.map((row) => [text(row, "iid"), row]));
  const absent = leasedAt === null ? parts.filter((part) => !byIid.has(part.iid)) : [];
  const fates = absent.length === 0 ? null : yield* missing(absent);
  const behind = parts.filter((part) => {
    const row = byIid.get(part.iid);
    if (row === undefined || stateOf(row) !== "leased") return false;
    return int(row, "event_count") > part.seenEvents;
  });
  const unseen = behind.length === 0 ? null : yield* events(behind);
  return parts.map((part): PartAnswer => {
    const row = byIid.get(part.iid);
    if (row !== undefined) {
      const state = stateOf(row);
      const pauseRequested = state === "leased" && int(row, "pause_requested") === 1;
      const found = unseen?.get(part.iid) ?? [];
      return { kind: "ok", now: int(row, "now"), state, pauseRequested, events: found };
    }
    if (leasedAt !== null) {
      return { kind: "ok", now: leasedAt, state: "leased", pauseRequested: false, events: [] };
    }
    const fate = fates?.get(part.iid) ?? "lost";
    if (typeof fate === "string") return { kind: fate };
    const now = fate.finishedAt;
    return { kind: "ok", now, state: "finished", pauseRequested: false, events: [] };
  });
}

/**
 * How the part left its ticket. A ticket that was not leased has taken this part already: it tells how that left it.
 */
function stateOf(row: Row): "leased" | "parked" | "paused" | "finished" {
  const before = text(row, "state") as TicketState;
  const state = before === "leased" ? (text(row, "becomes") as Becomes) : before;
  return state === "waiting" || state === "queued" ? "parked" : state;
}

import type { Part, PartAnswer } from "../../../store/store.js";
import { int, intOrNull, text, type Sql } from "../../sql.js";
import type { Row, Script } from "../../statement.js";
import type { Becomes } from "../../ticket.js";
import type { EventReader } from "../event-rows.js";

type Fate = "busy" | "lost" | { readonly finishedAt: number };
export type MissingParts = (parts: readonly Part[]) => Script<Map<string, Fate>>;

/** A part that was not locked is busy, lost, or its run was finished by this very part before. */
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
  /** The time, if parts without a row are simply leased; null if they were not locked. */
  leasedAt: number | null,
  events: EventReader,
  missing: MissingParts,
): Script<PartAnswer[]> {
  const byIid = new Map(locked.map((row) => [text(row, "iid"), row]));
  const absent = leasedAt === null ? parts.filter((part) => !byIid.has(part.iid)) : [];
  const fates = absent.length === 0 ? new Map<string, Fate>() : yield* missing(absent);
  const unseen = yield* events(
    parts
      .filter((part) => stateOf(byIid.get(part.iid)) === "leased")
      .filter((part) => int(byIid.get(part.iid) as Row, "event_count") > part.seenEvents),
  );
  return parts.map((part): PartAnswer => {
    const row = byIid.get(part.iid);
    if (row === undefined && leasedAt !== null) {
      return { kind: "ok", now: leasedAt, state: "leased", pauseRequested: false, events: [] };
    }
    if (row === undefined) {
      const fate = fates.get(part.iid) ?? "lost";
      if (typeof fate === "string") return { kind: fate };
      return {
        kind: "ok",
        now: fate.finishedAt,
        state: "finished",
        pauseRequested: false,
        events: [],
      };
    }
    return {
      kind: "ok",
      now: int(row, "now"),
      state: stateOf(row) as Exclude<ReturnType<typeof stateOf>, undefined>,
      pauseRequested: stateOf(row) === "leased" && int(row, "pause_requested") === 1,
      events: unseen.get(part.iid) ?? [],
    };
  });
}

/** A ticket that was not leased had taken this part already: it says where that left it. */
function stateOf(row: Row | undefined): "leased" | "parked" | "paused" | "finished" | undefined {
  if (row === undefined) return undefined;
  const state =
    text(row, "state") === "leased" ? (text(row, "becomes") as Becomes) : text(row, "state");
  return state === "waiting" || state === "queued"
    ? "parked"
    : (state as "leased" | "paused" | "finished");
}

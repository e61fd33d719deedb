import type { PollAnswer, PollRequest } from "../../store/store.js";
import { int, intOrNull, text, type Sql, type Verb } from "../sql.js";
import type { Script } from "../statement.js";
import { stateWord } from "../ticket.js";
import type { EventReader } from "./events/reading.js";

type Poll = Verb<[runs: readonly PollRequest[]], PollAnswer[]>;

/** Polls leased runs under their tickets' locks: the time, the pause flag, events that they have not seen. */
export function pollVerb(sql: Sql, events: EventReader): Poll {
  const { lock, look, held } = statements(sql);
  return {
    transaction: true,
    *script(requests): Script<PollAnswer[]> {
      const rows = requests.map(({ iid, claimNumber }) => ({ iid, claim_no: claimNumber }));
      const locked = new Map(
        (yield lock.with({ runs: rows })).map((row) => [text(row, "tid"), row]),
      );
      const seen = [...locked.values()].map((row) => ({
        iid: text(row, "tid"),
        at: Math.max(int(row, "now"), int(row, "seen_at")),
      }));
      if (seen.length > 0) yield look.with({ seen });
      const seenAt = new Map(seen.map(({ iid, at }) => [iid, at]));
      const absent = rows.filter(({ iid }) => !locked.has(iid));
      const busy = new Set(
        absent.length === 0
          ? []
          : (yield held.with({ runs: absent })).map((row) => text(row, "tid")),
      );
      const unseen = yield* events(
        requests.filter(({ iid, seenEvents }) => {
          const row = locked.get(iid);
          return row !== undefined && (intOrNull(row, "event_count") ?? 0) > seenEvents;
        }),
      );
      return requests.map(({ iid }): PollAnswer => {
        const row = locked.get(iid);
        if (row === undefined) return { kind: busy.has(iid) ? "busy" : "lost" };
        return {
          kind: "ok",
          now: seenAt.get(iid) as number,
          pauseRequested: int(row, "pause_requested") === 1,
          events: unseen.get(iid) ?? [],
        };
      });
    },
  };
}

function statements(sql: Sql) {
  const ticket = sql.table("ticket");
  const runs = { iid: "key", claim_no: "big" } as const;
  const lock = sql.prepare(
    "poll.lock",
    `SELECT t.tid, t.pause_requested, t.event_count, t.seen_at, :now AS now
     FROM ${sql.rows("runs", "r", runs)} ${sql.dialect.lookUp("ticket", "t")}
       ON t.tid == r.iid AND t.claim_no = r.claim_no AND t.state = ${stateWord.leased}
     ${sql.dialect.lockSkippingOf("t")}`,
  );
  const look = sql.prepare(
    "poll.look",
    sql.dialect.updateFrom({
      table: "ticket",
      alias: "t",
      rows: sql.rows("seen", "s", { iid: "key", at: "big" }),
      on: "t.tid == s.iid",
      set: { seen_at: "s.at" },
    }),
  );
  const held = sql.prepare(
    "poll.held",
    `SELECT t.tid, t.claim_no FROM ${sql.rows("runs", "r", runs)} ${sql.dialect.drivenJoin} ${ticket} AS t
       ON t.tid == r.iid AND t.claim_no = r.claim_no AND t.state = ${stateWord.leased}`,
  );
  return { lock, look, held };
}

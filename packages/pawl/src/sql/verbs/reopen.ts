import type { Claimed, ReopenRequest } from "../../store/store.js";
import { int, text, type Sql, type Verb } from "../sql.js";
import type { Row, Script } from "../statement.js";
import { setOf, stateWord } from "../ticket.js";
import { RESUMING, toClaimed } from "./claim.js";

type Reopen = Verb<[runner: string, runs: readonly ReopenRequest[]], Claimed[]>;

/**
 * Claims named tickets, whether they are due or not. The claim number proves that no other runner had them since their
 * park. Since the number grows, a resend of that park is fenced off.
 */
export function reopenVerb(sql: Sql): Reopen {
  const alive = sql.prepare(
    "reopen.alive",
    `SELECT :now AS now FROM ${sql.table("runner")} WHERE id = :runner AND dead = 0`,
  );
  const lock = sql.prepare(
    "reopen.lock",
    `SELECT t.tid
     FROM ${sql.rows("runs", "r", { iid: "key", run_no: "int", claim_no: "big" })} ${sql.dialect.lookUp("ticket", "t")}
       ON t.tid == r.iid AND t.run_no = r.run_no AND t.claim_no = r.claim_no AND t.state IN (${stateWord.waiting}, ${stateWord.queued})
     ${sql.dialect.lockSkippingOf("t")}`,
  );
  const parked = sql.rows("parked", "p", { tid: "key" });
  const lease = sql.prepare(
    "reopen.lease",
    sql.dialect.updateFrom({
      table: "ticket",
      alias: "t",
      rows: parked,
      on: "t.tid == p.tid",
      set: setOf("claim", ":at"),
    }),
  );
  const read = sql.prepare(
    "reopen.read",
    `SELECT t.tid, t.run_no, t.claim_no, t.takeovers, t.event_count, t.history_bytes, ${RESUMING} AS precedence,
       i.workflow, i.id, i.created_at, NULL AS params
     FROM ${parked} ${sql.dialect.drivenJoin} ${sql.table("ticket")} AS t ON t.tid == p.tid
       ${sql.dialect.drivenJoin} ${sql.table("instance")} AS i ON i.iid == t.tid`,
  );
  return {
    transaction: true,
    *script(runner, requests): Script<Claimed[]> {
      const [me] = yield alive.with({ runner });
      if (me === undefined) return [];
      const at = int(me, "now");
      const locked = yield lock.with({
        runs: requests.map(({ iid, runNumber, claimNumber }) => ({
          iid,
          run_no: runNumber,
          claim_no: claimNumber,
        })),
      });
      const tickets = [...new Set(locked.map((row) => text(row, "tid")))].map((tid) => ({ tid }));
      if (tickets.length === 0) return [];
      yield lease.with({ parked: tickets, runner, at });
      const rows: Row[] = yield read.with({ parked: tickets });
      return rows.map((row) => toClaimed(row, at));
    },
  };
}

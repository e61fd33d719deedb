import type { Target } from "../../../model/target.js";
import type { Claimed, EventPlace, LeaseOnWake, SendEventAnswer } from "../../../store/store.js";
import { waitMaskOf } from "../../../model/wait-mask.js";
import { int, intOrNull, text, textOrNull, type Sql } from "../../sql.js";
import type { Row, Script } from "../../statement.js";
import { assignments, setOf } from "../../ticket.js";
import { RESUMING, toClaimed } from "../claim.js";
import { aliveSql } from "../create.js";
import { hookBit, hookedColumn, poster, postId } from "../hooks/posting.js";
import type { SendEvent } from "./index.js";
import { readInstance, refuser } from "./refusing.js";
import { wokenSql } from "./text.js";

/** Everywhere else: lock the ticket, take the time, add the event, write the ticket. */
export function sendInSteps(sql: Sql): SendEvent {
  const instance = readInstance(sql);
  const refuse = refuser(sql);
  const { lock, time, add } = addingStatements(sql);
  const wake = waker(sql);
  const post = poster(sql, "event");
  return {
    transaction: true,
    *script(target, event, lease): Script<SendEventAnswer> {
      const [found] = yield instance.with({ workflow: target.workflow, id: target.id });
      if (found === undefined) return { kind: "notFound" };
      const iid = text(found, "iid");
      const [ticket] = yield lock.with({ iid, mask: waitMaskOf([event.type]) });
      if (ticket === undefined) {
        const [ended] = yield instance.with({ workflow: target.workflow, id: target.id });
        return yield* refuse(ended, event);
      }
      const runNumber = int(ticket, "run_no");
      const [clock] = yield time.with({ iid, run_no: runNumber, event_id: event.eventId });
      if (intOrNull(clock as Row, "known") !== null) return { kind: "duplicate" };
      const at = int(clock as Row, "now");
      const woken = int(ticket, "woken") === 1;
      const place: EventPlace = {
        iid,
        runNumber,
        number: int(ticket, "event_count") + 1,
        createdAt: laterThan(int(ticket, "seen_at"), at),
      };
      const { eventId: event_id, type, payload } = event;
      const { number, createdAt: created_at } = place;
      yield add.with({ iid, run_no: runNumber, number, created_at, event_id, type, payload });
      const isTaken = yield* wake(ticket, at, lease);
      if (woken && (int(clock as Row, "hooked") & hookBit.onWorkflowEnqueued) !== 0) {
        const id = postId.event(iid, runNumber, place.number);
        const told = { workflow: target.workflow, instanceId: target.id, runNumber };
        yield post("onWorkflowEnqueued", [{ ...told, id, reason: "event" }], at);
      }
      const claim_no = int(ticket, "claim_no") + 1;
      return {
        kind: "accepted",
        woken,
        owner: textOrNull(ticket, "owner"),
        place,
        claimed: isTaken
          ? claimedBy(target, place, {
              ...ticket,
              claim_no,
              created_at: found["created_at"],
              now: at,
            })
          : null,
      };
    },
  };
}

function addingStatements(sql: Sql) {
  const lock = sql.prepare(
    "event.lock",
    `SELECT t.tid, t.run_no, t.claim_no, t.owner, t.takeovers, t.event_count, t.history_bytes, t.seen_at,
       CASE WHEN ${wokenSql(":mask")} THEN 1 ELSE 0 END AS woken
     FROM ${sql.table("ticket")} AS t WHERE t.tid = :iid ${sql.dialect.lock}`,
  );
  // A statement of its own: in the one that locks, the time would be as old as the wait for the lock is long.
  const time = sql.prepare(
    "event.time",
    `SELECT :now AS now, ${hookedColumn(sql)},
       (SELECT e.number FROM ${sql.table("event")} AS e
       WHERE e.iid = :iid AND e.run_no = :run_no AND e.event_id = :event_id) AS known`,
  );
  const add = sql.prepare(
    "event.add",
    `INSERT INTO ${sql.table("event")} (iid, run_no, number, event_id, kind, type, payload, created_at)
     VALUES (:iid, :run_no, :number, :event_id, 'event', :type, :payload, :created_at)`,
  );
  return { lock, time, add };
}

/** Counts the event on its ticket and wakes the run. Answers whether the run was leased to the sender's runner. */
type Waker = (ticket: Row, at: number, lease: LeaseOnWake | null) => Script<boolean>;

function waker(sql: Sql): Waker {
  const alive = sql.prepare("event.alive", aliveSql(sql));
  // An earlier due time stays.
  const count = sql.prepare(
    "event.count",
    `UPDATE ${sql.table("ticket")} SET event_count = event_count + 1,
       due_at = CASE WHEN :woken = 1 AND (due_at IS NULL OR due_at > :at) THEN :at ELSE due_at END
     WHERE tid = :iid`,
  );
  const countAndLease = sql.prepare(
    "event.lease",
    `UPDATE ${sql.table("ticket")} AS t SET ${assignments({
      event_count: "t.event_count + 1",
      ...setOf("claim", ":at"),
    })} WHERE t.tid = :iid`,
  );
  return function* wake(ticket, at, lease) {
    const iid = text(ticket, "tid");
    const woken = int(ticket, "woken");
    const isTaken =
      woken === 1 &&
      lease?.claimNumber === int(ticket, "claim_no") &&
      (yield alive.with({ runner: lease.runner })).length > 0;
    yield isTaken
      ? countAndLease.with({ iid, at, runner: lease.runner })
      : count.with({ iid, at, woken });
    return isTaken;
  };
}

/** The time of an event: later than any that the run's owner has judged. */
export function laterThan(seenAt: number, now: number): number {
  return Math.max(now, seenAt + 1);
}

/** The run that an event has woken, leased in the same write. */
export function claimedBy(
  { workflow, id }: Target,
  { iid, number }: EventPlace,
  row: Row,
): Claimed {
  const ticket = { ...row, tid: iid, workflow, id, event_count: number };
  return toClaimed({ ...ticket, precedence: RESUMING, params: null }, int(row, "now"));
}

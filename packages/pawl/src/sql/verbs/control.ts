import { userEdge, type UserEdgeName } from "../../model/ticket.js";
import { transition, type ControlCommand } from "../../model/transitions.js";
import type { Target } from "../../model/target.js";
import type { ControlAnswer } from "../../store/store.js";
import { int, Raced, text, textOrNull, type Sql, type Verb } from "../sql.js";
import type { Row, Script, Statement } from "../statement.js";
import { assignments, birthOf, setOf } from "../ticket.js";
import { hookBit, hookedColumn, poster, postId } from "./hooks/posting.js";
import { statusOfRow } from "./status.js";

/** The commands to which `ControlRequest` gives an operation id are carried out once; the others may be repeated. */
export type Control = Verb<
  [command: ControlCommand, target: Target, operationId: string | null],
  ControlAnswer
>;

/** Locks the ticket, asks the transition table what the command does, and makes that edge. The table decides. */
export function controlVerb(sql: Sql, newId: () => string): Control {
  const { find, lockTicket, lockInstance, read } = lookingStatements(sql);
  const carryOut = carryingOut(sql);
  const tellHooks = tellingHooks(sql, newId);
  return {
    transaction: true,
    *script(command, target, operationId): Script<ControlAnswer> {
      const [found] = yield find.with({ workflow: target.workflow, id: target.id });
      if (found === undefined) return { kind: "notFound" };
      const iid = text(found, "iid");
      const [ticket] = yield lockTicket.with({ iid });
      yield lockInstance.with({ iid });
      const [row] = yield read.with({ iid, operation_id: operationId });
      if (row === undefined) return { kind: "notFound" };
      // A restart made the ticket after we looked for it. It must be locked before the instance, so we start over.
      if (ticket === undefined && textOrNull(row, "state") !== null) throw new Raced();
      const status = statusOfRow(row);
      if (status === "unknown") throw new Error(`instance ${iid} is live without a ticket`);
      const owner = textOrNull(row, "owner");
      if (int(row, "done") === 1) return { kind: "ok", status, owner };

      const outcome = transition(status, command);
      if ("refused" in outcome) return { kind: "terminal", status };
      const edge = userEdge(status, command);
      if (edge !== null) {
        yield* carryOut(edge, row, operationId);
        yield* tellHooks(edge, target, row);
      }
      return { kind: "ok", status: outcome.state, owner };
    },
  };
}

function lookingStatements(sql: Sql) {
  const find = sql.prepare(
    "control.find",
    `SELECT iid FROM ${sql.table("instance")} WHERE workflow = :workflow AND id = :id`,
  );
  const lockTicket = sql.prepare(
    "control.lock",
    `SELECT tid FROM ${sql.table("ticket")} WHERE tid = :iid ${sql.dialect.lock}`,
  );
  const lockInstance = sql.prepare(
    "control.lock.instance",
    `SELECT iid FROM ${sql.table("instance")} WHERE iid = :iid ${sql.dialect.lock}`,
  );
  const read = sql.prepare(
    "control.read",
    `SELECT i.iid, i.run_no, i.status, t.state, t.pause_requested, t.owner, :now AS now,
       ${hookedColumn(sql)},
       CASE WHEN i.terminated_by = :operation_id OR EXISTS (
         SELECT 1 FROM ${sql.table("past_run")} AS p
         WHERE p.iid = i.iid AND (p.terminated_by = :operation_id OR p.restarted_by = :operation_id))
       THEN 1 ELSE 0 END AS done
     FROM ${sql.table("instance")} AS i LEFT JOIN ${sql.table("ticket")} AS t ON t.tid == i.iid WHERE i.iid = :iid`,
  );
  return { find, lockTicket, lockInstance, read };
}

/** Makes an edge; the ticket and the instance are locked. */
function carryingOut(
  sql: Sql,
): (edge: UserEdgeName, row: Row, operationId: string | null) => Script<void> {
  const update = (edge: UserEdgeName): Statement =>
    sql.prepare(
      `control.${edge}`,
      `UPDATE ${sql.table("ticket")} SET ${assignments(setOf(edge, ":at"))} WHERE tid = :iid`,
    );
  const updates = {
    pause: update("pause"),
    requestPause: update("requestPause"),
    cancelPause: update("cancelPause"),
    resume: update("resume"),
  };
  const terminate = sql.prepare(
    "control.terminate",
    `UPDATE ${sql.table("instance")} SET status = 'terminated', finished_at = :at, terminated_by = :operation_id,
       started_at = (SELECT t.started_at FROM ${sql.table("ticket")} AS t WHERE t.tid = :iid),
       claim_no = (SELECT t.claim_no + 1 FROM ${sql.table("ticket")} AS t WHERE t.tid = :iid)
     WHERE iid = :iid`,
  );
  const removeTicket = sql.prepare(
    "control.remove",
    `DELETE FROM ${sql.table("ticket")} WHERE tid = :iid`,
  );
  const { keepPastRun, rememberClaim, renew, rebuildTicket } = restartingStatements(sql);
  return function* (edge, row, operationId) {
    const iid = text(row, "iid");
    const at = int(row, "now");
    if (edge === "restart") {
      yield keepPastRun.with({ iid, at, operation_id: operationId });
      yield rememberClaim.with({ iid });
      yield removeTicket.with({ iid });
      yield renew.with({ iid });
      yield rebuildTicket.with({ iid, at });
    } else if (edge === "terminate") {
      yield terminate.with({ iid, at, operation_id: operationId });
      yield removeTicket.with({ iid });
    } else {
      yield updates[edge].with({ iid, at });
    }
  };
}

function restartingStatements(sql: Sql) {
  const keepPastRun = sql.prepare(
    "control.past",
    `INSERT INTO ${sql.table("past_run")} (iid, run_no, status, output, error, started_at, finished_at, terminated_by, restarted_by)
     SELECT i.iid, i.run_no, CASE WHEN i.status = 'live' THEN 'terminated' ELSE i.status END, i.output, i.error,
       COALESCE(i.started_at, t.started_at), COALESCE(i.finished_at, :at), i.terminated_by, :operation_id
     FROM ${sql.table("instance")} AS i LEFT JOIN ${sql.table("ticket")} AS t ON t.tid == i.iid WHERE i.iid = :iid`,
  );
  // A live run's ticket is deleted before the new one is made. The new one has the next claim number, which fences the
  // old run.
  const rememberClaim = sql.prepare(
    "control.claim",
    `UPDATE ${sql.table("instance")} SET
       claim_no = COALESCE((SELECT t.claim_no FROM ${sql.table("ticket")} AS t WHERE t.tid = :iid), claim_no) + 1
     WHERE iid = :iid`,
  );
  const renew = sql.prepare(
    "control.renew",
    `UPDATE ${sql.table("instance")} SET run_no = run_no + 1, status = 'live', output = NULL, error = NULL,
       started_at = NULL, finished_at = NULL, terminated_by = NULL
     WHERE iid = :iid`,
  );
  const birth = birthOf("restart", ":at");
  const rebuildTicket = sql.prepare(
    "control.ticket",
    `INSERT INTO ${sql.table("ticket")} (tid, queue, handler, ${birth.columns})
     SELECT i.iid, i.queue, i.workflow, ${birth.values}
     FROM ${sql.table("instance")} AS i WHERE i.iid = :iid`,
  );
  return { keepPastRun, rememberClaim, renew, rebuildTicket };
}

/** Posts an edge to the outbox, where a hook is registered for it. */
function tellingHooks(
  sql: Sql,
  newId: () => string,
): (edge: UserEdgeName, target: Target, row: Row) => Script<void> {
  const post = poster(sql, "control");
  return function* (edge, { workflow, id: instanceId }, row) {
    const [iid, at, run] = [text(row, "iid"), int(row, "now"), int(row, "run_no")];
    const told = { workflow, instanceId, runNumber: run };
    const hooked = int(row, "hooked");
    if (edge === "terminate" && (hooked & hookBit.onInstanceFinished) !== 0) {
      const id = postId.finish(iid, run);
      yield post("onInstanceFinished", [{ ...told, id, reason: "terminated" }], at);
    }
    if ((hooked & hookBit.onWorkflowEnqueued) === 0) return;
    if (edge === "restart") {
      const next = { ...told, runNumber: run + 1 };
      const id = postId.restart(iid, run + 1);
      yield post("onWorkflowEnqueued", [{ ...next, id, reason: "restart" }], at);
    } else if (edge === "resume") {
      const id = postId.once("resume", newId(), iid);
      yield post("onWorkflowEnqueued", [{ ...told, id, reason: "resume" }], at);
    }
  };
}

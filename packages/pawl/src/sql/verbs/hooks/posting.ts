import { hookNames, type EnqueueReason, type HookName } from "../../../model/hooks.js";
import type { TerminalState } from "../../../model/status.js";
import type { Sql } from "../../sql.js";
import type { Call } from "../../statement.js";

/*
 * How a cause leaves its row in the outbox. Whether a hook is registered is read by a statement that is sent anyway, so
 * without hooks nothing is written and no round trip is added. The read takes no lock. It sees what is committed; in a
 * user's transaction, it sees what the transaction's snapshot has.
 */

/** The condition that some process has code for this hook. */
export function isRegistered(sql: Sql, hook: HookName): string {
  return `EXISTS (SELECT 1 FROM ${sql.table("hook")} WHERE name = '${hook}')`;
}

/** A bit for each hook, in the column of `hookedColumn`. */
export const hookBit = Object.fromEntries(hookNames.map((hook, n) => [hook, 1 << n])) as Record<
  HookName,
  number
>;

/** The column `hooked`, which tells by bits which hooks are registered. It costs one read of a table of two rows. */
export function hookedColumn(sql: Sql): string {
  const branches = hookNames.map((hook) => `WHEN '${hook}' THEN ${hookBit[hook]}`).join(" ");
  return `(SELECT COALESCE(SUM(CASE name ${branches} ELSE 0 END), 0) FROM ${sql.table("hook")}) AS hooked`;
}

const columns = "id, hook, workflow, instance_id, run_no, reason, created_at, due_at";

/** PostgreSQL: a CTE that posts the rows of `select`, which must answer `columns` in their order. */
export function postSelected(sql: Sql, select: string): string {
  return `INSERT INTO ${sql.table("outbox")} (${columns}) ${select} ON CONFLICT DO NOTHING`;
}

export type Posted = {
  readonly id: string;
  readonly workflow: string;
  readonly instanceId: string;
  readonly runNumber: number;
  readonly reason: EnqueueReason | TerminalState;
};

type Poster = (hook: HookName, posted: readonly Posted[], at: number) => Call;

/** Posts rows. It only inserts, so it may be part of a user's transaction. */
export function poster(sql: Sql, name: string): Poster {
  const insert = sql.prepare(
    `${name}.post`,
    `${sql.dialect.insertInto("outbox")} (${columns})
     SELECT o.id, :hook, o.workflow, o.instance_id, o.run_no, o.reason, :at, :at
     FROM ${sql.rows("posted", "o", {
       id: "key",
       workflow: "key",
       instance_id: "key",
       run_no: "int",
       reason: "word",
     })} ${sql.dialect.onConflictKeep(["id"])}`,
  );
  return (hook, posted, at) =>
    insert.with({
      hook,
      at,
      posted: posted.map(({ id, workflow, instanceId, runNumber, reason }) => ({
        id,
        workflow,
        instance_id: instanceId,
        run_no: runNumber,
        reason,
      })),
    });
}

type PostedByIid = Pick<Posted, "id" | "runNumber" | "reason"> & { readonly iid: string };

/** Posts rows where only the internal id is at hand. It reads instances, so it is not for a user's transaction. */
export function posterByIid(
  sql: Sql,
  name: string,
): (hook: HookName, posted: readonly PostedByIid[], at: number) => Call {
  const insert = sql.prepare(
    `${name}.post`,
    `${sql.dialect.insertInto("outbox")} (${columns})
     SELECT o.id, :hook, i.workflow, i.id, o.run_no, o.reason, :at, :at
     FROM ${sql.rows("posted", "o", { id: "key", iid: "key", run_no: "int", reason: "word" })}
       ${sql.dialect.drivenJoin} ${sql.table("instance")} AS i ON i.iid == o.iid
     ${sql.dialect.onConflictKeep(["id"])}`,
  );
  return (hook, posted, at) =>
    insert.with({
      hook,
      at,
      posted: posted.map(({ id, iid, runNumber, reason }) => ({
        id,
        iid,
        run_no: runNumber,
        reason,
      })),
    });
}

/** The ids tell the cause. A run is created, restarted and ended once; the other causes get a unique part. */
export const postId = {
  create: (iid: string): string => `create.1.${iid}`,
  restart: (iid: string, runNumber: number): string => `restart.${runNumber}.${iid}`,
  finish: (iid: string, runNumber: number): string => `finish.${runNumber}.${iid}`,
  event: (iid: string, runNumber: number, number: number): string =>
    `event.${number}.${runNumber}.${iid}`,
  once: (reason: EnqueueReason, unique: string, iid: string): string =>
    `${reason}.${unique}.${iid}`,
};

import { isHookName, type HookName } from "../../../model/hooks.js";
import type { HookClaimRequest, HookRow, HookSettlement } from "../../../store/outbox.js";
import { int, text, type Sql, type Verb } from "../../sql.js";
import type { Row, Script } from "../../statement.js";

type Delivering = {
  readonly claimHooks: Verb<[request: HookClaimRequest], HookRow[]>;
  readonly settleHooks: Verb<[settlements: readonly HookSettlement[]], void>;
  /** Milliseconds until the next delivery to one of these hooks is due. */
  readonly nextDelivery: Verb<[hooks: readonly HookName[]], number | null>;
};

export const hookFields =
  "o.id, o.hook, o.workflow, o.instance_id, o.run_no, o.reason, o.created_at, o.attempts, o.claim_no";

/** The error, as it is stored, of a row whose last delivery never came to an end. */
const LOST = '"no process came back from the last delivery"';

export function deliveringVerbs(sql: Sql): Delivering {
  const { now, due, claim, giveUp, next } = claimingStatements(sql);
  const { remove, postpone } = settlingStatements(sql);
  return {
    claimHooks: {
      transaction: true,
      *script({ hooks, limit, leaseMs, maxAttempts }): Script<HookRow[]> {
        const at = int((yield now.with())[0] as Row, "now");
        const rows: Row[] = [];
        for (const hook of hooks) {
          if (rows.length < limit) {
            rows.push(...(yield due.with({ hook, at, limit: limit - rows.length })));
          }
        }
        const [spent, fresh] = [rows.filter(isSpent), rows.filter((row) => !isSpent(row))];
        if (spent.length > 0) yield giveUp.with({ taken: spent.map(idOf), at });
        if (fresh.length > 0) yield claim.with({ taken: fresh.map(idOf), until: at + leaseMs });
        return fresh.map((row) => {
          const { attempts, claimNumber, ...rest } = toHookRow(row);
          return { ...rest, attempts: attempts + 1, claimNumber: claimNumber + 1 };
        });

        function isSpent(row: Row): boolean {
          return int(row, "attempts") >= maxAttempts;
        }
      },
    },
    settleHooks: {
      transaction: true,
      *script(settlements): Script<void> {
        const delivered = settlements.filter(({ failure }) => failure === null);
        if (delivered.length > 0) yield remove.with({ taken: delivered.map(({ id }) => ({ id })) });
        const failed = settlements.flatMap(({ id, claimNumber, failure }) =>
          failure === null
            ? []
            : [{ id, claim_no: claimNumber, retry_in: failure.retryInMs, error: failure.error }],
        );
        if (failed.length === 0) return;
        const at = int((yield now.with())[0] as Row, "now");
        yield postpone.with({ failed, at });
      },
    },
    nextDelivery: {
      transaction: false,
      *script(hooks): Script<number | null> {
        const waits: number[] = [];
        for (const hook of hooks) {
          const [row] = yield next.with({ hook });
          if (row !== undefined) waits.push(Math.max(0, int(row, "due_at") - int(row, "now")));
        }
        return waits.length === 0 ? null : Math.min(...waits);
      },
    },
  };
}

function claimingStatements(sql: Sql) {
  const { dialect } = sql;
  const now = sql.prepare("hooks.now", "SELECT :now AS now");
  const due = sql.prepare(
    "hooks.due",
    `SELECT ${hookFields} FROM ${sql.table("outbox")} AS o ${dialect.throughIndex("outbox_due")}
     WHERE o.hook = :hook AND o.due_at <= :at ORDER BY o.due_at, o.id LIMIT :limit ${dialect.lockSkipping}`,
  );
  const taken = sql.rows("taken", "r", { id: "key" });
  const claim = sql.prepare(
    "hooks.claim",
    dialect.updateFrom({
      table: "outbox",
      alias: "o",
      rows: taken,
      on: "o.id == r.id",
      set: {
        due_at: ":until",
        attempts: "o.attempts + 1",
        claim_no: "o.claim_no + 1",
      },
    }),
  );
  const giveUp = sql.prepare(
    "hooks.giveUp",
    dialect.updateFrom({
      table: "outbox",
      alias: "o",
      rows: taken,
      on: "o.id == r.id",
      set: { due_at: "NULL", failed_at: ":at", error: `COALESCE(o.error, '${LOST}')` },
    }),
  );
  const next = sql.prepare(
    "hooks.next",
    `SELECT o.due_at, :now AS now FROM ${sql.table("outbox")} AS o ${dialect.throughIndex("outbox_due")}
     WHERE o.hook = :hook AND o.due_at >= 0 ORDER BY o.due_at LIMIT 1`,
  );
  return { now, due, claim, giveUp, next };
}

function settlingStatements(sql: Sql) {
  const { dialect } = sql;
  const remove = sql.prepare(
    "hooks.remove",
    dialect.deleteMatching({
      table: "outbox",
      key: "id",
      rows: sql.rows("taken", "r", { id: "key" }),
      matches: "r.id",
    }),
  );
  const postpone = sql.prepare(
    "hooks.postpone",
    dialect.updateFrom({
      table: "outbox",
      alias: "o",
      rows: sql.rows("failed", "r", {
        id: "key",
        claim_no: "int",
        retry_in: "big",
        error: "body",
      }),
      on: "o.id == r.id AND o.claim_no = r.claim_no",
      set: {
        due_at: "CASE WHEN r.retry_in IS NULL THEN NULL ELSE :at + r.retry_in END",
        failed_at: "CASE WHEN r.retry_in IS NULL THEN :at ELSE NULL END",
        error: "r.error",
      },
    }),
  );
  return { remove, postpone };
}

function idOf(row: Row): { id: string } {
  return { id: text(row, "id") };
}

export function toHookRow(row: Row): HookRow {
  const hook = text(row, "hook");
  if (!isHookName(hook)) throw new Error(`there is no hook ${hook}`);
  return {
    id: text(row, "id"),
    hook,
    workflow: text(row, "workflow"),
    instanceId: text(row, "instance_id"),
    runNumber: int(row, "run_no"),
    reason: text(row, "reason"),
    createdAt: int(row, "created_at"),
    attempts: int(row, "attempts"),
    claimNumber: int(row, "claim_no"),
  };
}

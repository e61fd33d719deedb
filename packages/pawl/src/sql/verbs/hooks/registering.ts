import { hookNames, type HookName } from "../../../model/hooks.js";
import { decodeCursor, encodeCursor } from "../../../store/cursor.js";
import type { Page } from "../../../store/store.js";
import type { FailedHookRow, FailedHooksQuery } from "../../../store/outbox.js";
import { int, text, textOrNull, type Sql, type Verb } from "../../sql.js";
import type { Row, Script } from "../../statement.js";
import { hookFields, toHookRow } from "./delivering.js";

type Registering = {
  readonly registerHooks: Verb<[hooks: readonly HookName[]], void>;
  readonly unregisterHook: Verb<[hook: HookName], number>;
  readonly failedHooks: Verb<[query: FailedHooksQuery], Page<FailedHookRow>>;
  readonly retryHook: Verb<[id: string], boolean>;
  readonly unknownHooks: Verb<[known: readonly HookName[], ms: number], string[]>;
};

/** How many rows of the outbox are dropped at a time. */
const DROPPED_AT_ONCE = 1_000;

export function registeringVerbs(sql: Sql): Registering {
  const { registered, register, unregister, waiting, givenUp, drop, find, again, overdue } =
    statements(sql);

  function* dropAll(rows: typeof waiting, hook: HookName): Script<number> {
    for (let count = 0; ;) {
      const dropped = (yield rows.with({ hook })).map((row) => ({ id: text(row, "id") }));
      if (dropped.length === 0) return count;
      yield drop.with({ dropped });
      count += dropped.length;
    }
  }

  return {
    registerHooks: {
      transaction: false,
      *script(hooks): Script<void> {
        // As a rule the rows are there, and an insert would lock them, so we ask first.
        const known = new Set((yield registered.with()).map((row) => row["name"]));
        const missing = hooks.filter((name) => !known.has(name)).map((name) => ({ name }));
        if (missing.length > 0) yield register.with({ hooks: missing });
      },
    },
    unregisterHook: {
      transaction: true,
      *script(hook): Script<number> {
        yield unregister.with({ hook });
        return (yield* dropAll(waiting, hook)) + (yield* dropAll(givenUp, hook));
      },
    },
    failedHooks: failedHooksVerb(sql),
    retryHook: {
      transaction: true,
      *script(id): Script<boolean> {
        const [row] = yield find.with({ id });
        if (row === undefined) return false;
        if (row["failed_at"] !== null) yield again.with({ id, at: int(row, "now") });
        return true;
      },
    },
    unknownHooks: {
      transaction: false,
      *script(known, ms): Script<string[]> {
        const found: string[] = [];
        for (const hook of hookNames.filter((name) => !known.includes(name))) {
          const [row] = yield overdue.with({ hook });
          if (row === undefined || row["due_at"] === null) continue;
          if (int(row, "due_at") < int(row, "now") - ms) found.push(hook);
        }
        return found;
      },
    },
  };
}

function failedHooksVerb(sql: Sql): Registering["failedHooks"] {
  const { dialect } = sql;
  const failed = sql.prepare(
    "hooks.failed",
    `SELECT ${hookFields}, o.failed_at, o.error FROM ${sql.table("outbox")} AS o ${dialect.throughIndex("outbox_failed")}
     WHERE o.failed_at <= :at AND (o.failed_at < :at OR o.id < :id)
     ORDER BY o.failed_at DESC, o.id DESC LIMIT :limit`,
  );
  return {
    transaction: false,
    *script({ pageSize, cursor }): Script<Page<FailedHookRow>> {
      const about = "failed hooks";
      const [at = Number.MAX_SAFE_INTEGER, id = ""] =
        cursor === undefined ? [] : decodeCursor(cursor, about, ["integer", "string"]);
      const rows = (yield failed.with({ at, id, limit: pageSize + 1 })).map(toFailed);
      const items = rows.slice(0, pageSize);
      const last = items.at(-1);
      return last !== undefined && rows.length > pageSize
        ? { items, cursor: encodeCursor(about, [last.failedAt, last.id]), hasNextPage: true }
        : { items, hasNextPage: false };
    },
  };
}

function statements(sql: Sql) {
  const { dialect } = sql;
  const outbox = sql.table("outbox");
  const registered = sql.prepare("hooks.registered", `SELECT name FROM ${sql.table("hook")}`);
  const register = sql.prepare(
    "hooks.register",
    `${dialect.insertInto("hook")} (name, registered_at)
     SELECT h.name, :now FROM ${sql.rows("hooks", "h", { name: "key" })} ${dialect.onConflictKeep(["name"])}`,
  );
  const unregister = sql.prepare(
    "hooks.unregister",
    `DELETE FROM ${sql.table("hook")} WHERE name = :hook`,
  );
  const left = (index: string, condition: string): string =>
    `SELECT o.id FROM ${outbox} AS o ${dialect.throughIndex(index)}
     WHERE o.hook = :hook AND ${condition} LIMIT ${DROPPED_AT_ONCE} ${dialect.lockSkipping}`;
  const waiting = sql.prepare("hooks.waiting", left("outbox_due", "o.due_at >= 0"));
  const givenUp = sql.prepare("hooks.givenUp", left("outbox_failed", "o.failed_at >= 0"));
  const drop = sql.prepare(
    "hooks.drop",
    dialect.deleteMatching({
      table: "outbox",
      key: "id",
      rows: sql.rows("dropped", "r", { id: "key" }),
      matches: "r.id",
    }),
  );
  const find = sql.prepare(
    "hooks.find",
    `SELECT o.id, o.failed_at, :now AS now FROM ${outbox} AS o WHERE o.id = :id ${dialect.lock}`,
  );
  const again = sql.prepare(
    "hooks.again",
    `UPDATE ${outbox} SET due_at = :at, failed_at = NULL, attempts = 0, claim_no = claim_no + 1 WHERE id = :id`,
  );
  const overdue = sql.prepare(
    "hooks.overdue",
    `SELECT :now AS now, (SELECT o.due_at FROM ${outbox} AS o ${dialect.throughIndex("outbox_due")}
       WHERE o.hook = :hook AND o.due_at >= 0 ORDER BY o.due_at LIMIT 1) AS due_at`,
  );
  return { registered, register, unregister, waiting, givenUp, drop, find, again, overdue };
}

function toFailed(row: Row): FailedHookRow {
  const { claimNumber: _fence, ...told } = toHookRow(row);
  return { ...told, failedAt: int(row, "failed_at"), error: textOrNull(row, "error") ?? "" };
}

import { WorkflowError } from "../../model/errors.js";
import { StoreClosedError } from "../../store/errors.js";
import type { Driver } from "../driver.js";
import {
  driveNow,
  type Call,
  type Row,
  type Script,
  type Statement,
  type Value,
} from "../statement.js";

/** The members used of `node:sqlite`, `@photostructure/sqlite`, `better-sqlite3` and `libsql`. */
export interface SqliteHandle {
  prepare(sql: string): SqliteStatement;
  exec(sql: string): unknown;
  close(): unknown;
  readonly isTransaction?: boolean;
  readonly inTransaction?: boolean;
}

export interface SqliteStatement {
  all(...params: Value[]): unknown[];
  run(...params: Value[]): unknown;
}

export type SqliteSynchronous = "full" | "normal";

/** Blocks the whole process, so it is short; longer waits are the store's asynchronous retries. */
const BUSY_TIMEOUT_MS = 10;

/**
 * A file gets a connection of the engine's own: on the user's handle, a write inside the user's open
 * transaction would be acknowledged and then rolled back with it. A database in memory has only the one
 * handle, so the engine stays out while the user is in a transaction.
 */
export function sqliteDriver(
  handle: SqliteHandle,
  synchronous: SqliteSynchronous,
): Driver<SqliteHandle> {
  const prepared = new WeakMap<SqliteHandle, Map<Statement, SqliteStatement>>();
  let own: SqliteHandle | undefined;
  let closed = false;

  function connection(): SqliteHandle {
    if (closed) throw new StoreClosedError();
    own ??= openOwn(handle, synchronous) ?? handle;
    return own;
  }

  function statementFor(on: SqliteHandle, statement: Statement): SqliteStatement {
    let known = prepared.get(on);
    if (known === undefined) prepared.set(on, (known = new Map()));
    let compiled = known.get(statement);
    if (compiled === undefined) {
      compiled = on.prepare(statement.text);
      if (statement.name !== null) known.set(statement, compiled);
    }
    return compiled;
  }

  function execute(on: SqliteHandle, { statement, executions }: Call): Row[] {
    const compiled = statementFor(on, statement);
    const rows: Row[] = [];
    for (const params of executions) {
      if (statement.reads) rows.push(...(compiled.all(...params) as Row[]));
      else compiled.run(...params);
    }
    return rows;
  }

  function drive<T>(on: SqliteHandle, script: Script<T>): T {
    return driveNow(script, (call) => execute(on, call));
  }

  return {
    // Not async inside: a transaction begins and ends in one go, so nothing can come between.
    run: async (_lane, transaction, script) => {
      const on = connection();
      if (on === handle && inTransaction(handle)) throw new HandleInUse();
      if (!transaction) return drive(on, script());
      on.exec("BEGIN IMMEDIATE");
      try {
        const result = drive(on, script());
        on.exec("COMMIT");
        return result;
      } catch (error) {
        rollback(on);
        throw error;
      }
    },
    within: async (tx, script) => {
      if (!isHandle(tx) || !inTransaction(tx)) {
        throw new WorkflowError(
          "INVALID_REQUEST",
          "tx must be a SQLite handle with an open transaction",
        );
      }
      return drive(tx, script());
    },
    close: async () => {
      closed = true;
      if (own !== undefined && own !== handle) own.close();
      own = undefined;
    },
  };
}

/** Looks like SQLITE_BUSY to the retries: the user's transaction will end. */
class HandleInUse extends Error {
  readonly errcode = 5;
  override readonly name = "HandleInUse";

  constructor() {
    super("the handle is in a transaction of the user's");
  }
}

function isHandle(value: unknown): value is SqliteHandle {
  return (
    typeof value === "object" &&
    value !== null &&
    typeof (value as SqliteHandle).prepare === "function" &&
    typeof (value as SqliteHandle).exec === "function"
  );
}

function inTransaction(handle: SqliteHandle): boolean {
  const known = handle.isTransaction ?? handle.inTransaction;
  if (known !== undefined) return known;
  // Older drivers do not say: a second BEGIN is refused inside a transaction.
  try {
    handle.exec("BEGIN");
  } catch {
    return true;
  }
  handle.exec("ROLLBACK");
  return false;
}

function rollback(on: SqliteHandle): void {
  try {
    on.exec("ROLLBACK");
  } catch {
    // Some errors have already rolled back.
  }
}

function openOwn(handle: SqliteHandle, synchronous: SqliteSynchronous): SqliteHandle | undefined {
  const file = fileOf(handle);
  if (file === "") return undefined;
  const Handle = handle.constructor as new (path: string) => SqliteHandle;
  const own = new Handle(file);
  try {
    own.exec(`PRAGMA busy_timeout = ${BUSY_TIMEOUT_MS}`);
    own.exec("PRAGMA journal_mode = WAL");
    own.exec(`PRAGMA synchronous = ${synchronous}`);
  } catch (error) {
    own.close();
    throw error;
  }
  return own;
}

/** Empty for a database in memory. */
function fileOf(handle: SqliteHandle): string {
  const databases = handle.prepare("PRAGMA database_list").all() as {
    name: string;
    file: string;
  }[];
  return databases.find(({ name }) => name === "main")?.file ?? "";
}

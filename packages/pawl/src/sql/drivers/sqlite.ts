import { WorkflowError } from "../../model/errors.js";
import { StoreClosedError } from "../../store/errors.js";
import type { Driver } from "../driver.js";
import { driveNow, type Call, type Row, type Statement, type Value } from "../statement.js";

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

/** Waiting for a lock blocks the whole process, so it is short; the store's own retries wait asynchronously. */
const BUSY_TIMEOUT_MS = 10;

/** A handle with its prepared statements. */
class SqliteConnection {
  readonly #compiled = new Map<Statement, SqliteStatement>();

  constructor(readonly handle: SqliteHandle) {}

  readonly execute = ({ statement, executions }: Call): Row[] => {
    const compiled = this.#compiled.get(statement) ?? this.#compile(statement);
    const rows: Row[] = [];
    for (const params of executions) {
      if (statement.reads) rows.push(...(compiled.all(...params) as Row[]));
      else compiled.run(...params);
    }
    return rows;
  };

  #compile(statement: Statement): SqliteStatement {
    const compiled = this.handle.prepare(statement.text);
    if (statement.name !== null) this.#compiled.set(statement, compiled);
    return compiled;
  }

  rollback(): void {
    try {
      this.handle.exec("ROLLBACK");
    } catch {
      // Some errors have rolled back already.
    }
  }
}

/**
 * A file gets a connection of the engine's own: on the user's handle, a write inside the user's open transaction would
 * be acknowledged and then rolled back with it. A database in memory has only the one handle, so the engine stays out
 * while the user is in a transaction.
 */
export function sqliteDriver(
  handle: SqliteHandle,
  synchronous: SqliteSynchronous,
): Driver<SqliteHandle> {
  const given = new WeakMap<SqliteHandle, SqliteConnection>();
  let own: SqliteConnection | undefined;
  let closed = false;

  function open(): SqliteConnection {
    if (closed) throw new StoreClosedError();
    own = new SqliteConnection(openOwn(handle, synchronous) ?? handle);
    return own;
  }

  return {
    // Nothing is awaited inside: a transaction begins and ends in one go, so that nothing can come between.
    run: async (_by, verb, args) => {
      const on = own ?? open();
      if (on.handle === handle && inTransaction(handle)) throw new HandleInUse();
      if (!verb.transaction) return driveNow(verb.script(...args), on.execute);
      on.handle.exec("BEGIN IMMEDIATE");
      try {
        const result = driveNow(verb.script(...args), on.execute);
        on.handle.exec("COMMIT");
        return result;
      } catch (error) {
        on.rollback();
        throw error;
      }
    },
    within: async (tx, verb, args) => {
      if (!isHandle(tx) || !inTransaction(tx)) {
        throw new WorkflowError(
          "INVALID_REQUEST",
          "tx must be a SQLite handle with an open transaction",
        );
      }
      const on = given.get(tx) ?? new SqliteConnection(tx);
      given.set(tx, on);
      return driveNow(verb.script(...args), on.execute);
    },
    close: async () => {
      closed = true;
      if (own !== undefined && own.handle !== handle) own.handle.close();
      own = undefined;
    },
  };
}

/** The user's transaction will end, so the store's retries see it as SQLITE_BUSY. */
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
  // Older drivers do not say, but inside a transaction a second BEGIN is refused.
  try {
    handle.exec("BEGIN");
  } catch {
    return true;
  }
  handle.exec("ROLLBACK");
  return false;
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

/** The path of the database's file; empty for a database in memory. */
function fileOf(handle: SqliteHandle): string {
  const databases = handle.prepare("PRAGMA database_list").all() as {
    name: string;
    file: string;
  }[];
  return databases.find(({ name }) => name === "main")?.file ?? "";
}

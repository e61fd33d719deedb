import { WorkflowError } from "../../model/errors.js";
import { StoreClosedError } from "../../store/errors.js";
import type { Driver } from "../driver.js";
import { driveNow, type Call, type Row, type Script, type Value } from "../statement.js";

/** The members used of the storage of a Durable Object with SQLite. */
export interface ObjectStorage {
  readonly sql: { exec(query: string, ...params: Value[]): { toArray(): Row[] } };
  transactionSync<T>(work: () => T): T;
}

/** The storage failed, not its SQLite. Whether the write happened is unknown. */
export class StorageAway extends Error {}

/** Runs a script at once, as part of whatever the object is writing. */
export function runNow<T>(storage: ObjectStorage, script: Script<T>): T {
  return driveNow(script, (call) => execute(storage, call));
}

/**
 * The SQL storage of a Durable Object. It belongs to the object alone, and its writes are durable before anything
 * leaves the object. `written` is called after a script that wrote, without an await in between, so that what it writes
 * is committed with the script.
 */
export function durableObjectDriver(storage: ObjectStorage, written: () => void): Driver<never> {
  let closed = false;
  return {
    run: async (_by, verb, args) => {
      if (closed) throw new StoreClosedError();
      let wrote = false;
      const drive = () =>
        driveNow(verb.script(...args), (call) => {
          wrote ||= !call.statement.reads;
          return execute(storage, call);
        });
      try {
        return verb.transaction ? inTransaction(storage, drive) : drive();
      } finally {
        if (wrote) written();
      }
    },
    within: async () => {
      throw new WorkflowError(
        "INVALID_REQUEST",
        "tx: a Durable Object has no transactions that can be passed on",
      );
    },
    close: async () => {
      closed = true;
    },
  };
}

/** Runs `work` in a transaction. An error that `work` throws comes out unchanged. */
function inTransaction<T>(storage: ObjectStorage, work: () => T): T {
  let thrown: { readonly error: unknown } | null = null;
  try {
    return storage.transactionSync(() => {
      try {
        return work();
      } catch (error) {
        thrown = { error };
        throw error;
      }
    });
  } catch (error) {
    throw thrown === null ? asAway(error) : error;
  }
}

function execute({ sql }: ObjectStorage, { statement, executions }: Call): Row[] {
  try {
    return executions.flatMap((params) => sql.exec(statement.text, ...params).toArray());
  } catch (error) {
    throw asAway(error);
  }
}

function asAway(error: unknown): unknown {
  const isFromSqlite = error instanceof Error && error.message.includes(": SQLITE_");
  return isFromSqlite ? error : new StorageAway("storage failed", { cause: error });
}

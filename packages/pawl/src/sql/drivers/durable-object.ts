import { WorkflowError } from "../../model/errors.js";
import { StoreClosedError } from "../../store/errors.js";
import type { Driver } from "../driver.js";
import { driveNow, type Call, type Row, type Script, type Value } from "../statement.js";

/** The members used of the storage of a Durable Object with SQLite. */
export interface ObjectStorage {
  readonly sql: { exec(query: string, ...params: Value[]): { toArray(): Row[] } };
  transactionSync<T>(work: () => T): T;
}

/** Runs a script at once, in whatever the object is writing. */
export function runNow<T>(storage: ObjectStorage, script: Script<T>): T {
  return driveNow(script, (call) => execute(storage, call));
}

/**
 * The SQL storage of a Durable Object. It is the object's own, and its writes are durable before anything leaves the
 * object. `written` is called after a script that wrote, with no await between: what it writes is one with that.
 */
export function durableObjectDriver(storage: ObjectStorage, written: () => void): Driver<never> {
  let closed = false;
  return {
    run: async (_lane, transaction, script) => {
      if (closed) throw new StoreClosedError();
      let wrote = false;
      const drive = <T>(work: () => Script<T>): T =>
        driveNow(work(), (call) => {
          wrote ||= !call.statement.reads;
          return execute(storage, call);
        });
      try {
        return transaction ? storage.transactionSync(() => drive(script)) : drive(script);
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

function execute({ sql }: ObjectStorage, { statement, executions }: Call): Row[] {
  return executions.flatMap((params) => sql.exec(statement.text, ...params).toArray());
}

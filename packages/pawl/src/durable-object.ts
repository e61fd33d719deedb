import { defaultQueue } from "./authoring/entry.js";
import type { HookName } from "./model/hooks.js";
import type { Clock } from "./model/seams.js";
import { newWebRuntime } from "./runtime.js";
import type { Dialect } from "./sql/dialect.js";
import { sqliteDialect } from "./sql/dialects/sqlite.js";
import {
  durableObjectDriver,
  runNow,
  StorageAway,
  type ObjectStorage,
} from "./sql/drivers/durable-object.js";
import { checkedIdentifier } from "./sql/checked.js";
import { Sql } from "./sql/sql.js";
import type { Call, Row, Script } from "./sql/statement.js";
import { sqlStore } from "./sql/store.js";
import { nextAlarmScript, type NextAlarm } from "./sql/verbs/next-alarm.js";
import type { InstanceStore } from "./store/instance-store.js";
import type { Store } from "./store/store.js";

// This entry is for hosts of the engine in Cloudflare's Durable Objects, such as `@pawl/dispatcher-cloudflare-do`.

export { workflowsOptions } from "./authoring/options.js";
export { throwIfAborted } from "./model/abort.js";
export { requestedMs } from "./model/duration.js";
export { controlCommands } from "./model/transitions.js";
export { decodeError, encodeError } from "./model/error-codec.js";
export { placeOf, spreadStore, type ShardMap } from "./instances/spread-store.js";
export type { Target } from "./model/target.js";
export type { InstanceStore } from "./store/instance-store.js";
export type { ControlRequest } from "./store/store.js";
export type { NextAlarm, ObjectStorage };

export type DurableObjectStoreOptions = {
  /** The prefix of the tables' names. Default `pawl_`. */
  readonly tablePrefix?: string;
  /** Stands in for the database's clock in tests. */
  readonly clock?: Clock;
  /**
   * Called after every write with no await in between, so that what it writes becomes durable together with that write.
   */
  readonly written?: () => void;
  /** Returns a store of the instances of all objects, given the store of those in this object. */
  readonly spread?: (here: InstanceStore<never>) => InstanceStore<never>;
};

export interface DurableObjectStore extends Store<never> {
  /**
   * Declares all runners dead. An object is the only writer of its storage, so any runner that it finds when it starts
   * belongs to an earlier life of the object.
   */
  buryRunners(): void;
  /** Returns when work of these workflows, or a delivery to these hooks, will be due. */
  nextAlarm(workflows: readonly string[], hooks: readonly HookName[]): NextAlarm;
}

/** Returns a store in the SQLite storage of a Durable Object. Throws `ValidationError` for a bad `tablePrefix`. */
export function durableObjectStore(
  storage: ObjectStorage,
  options: DurableObjectStoreOptions = {},
): DurableObjectStore {
  const prefix = checkedIdentifier("tablePrefix", options.tablePrefix ?? "pawl_");
  const sqlite = sqliteDialect(prefix);
  const dialect: Dialect = {
    ...sqlite,
    classify: (error) => (error instanceof StorageAway ? "disconnected" : sqlite.classify(error)),
  };
  const sql = new Sql(dialect, options.clock);
  const nextAlarm = nextAlarmScript(sql);
  const bury = sql.prepare(
    "runner.bury.all",
    `UPDATE ${sql.table("runner")} SET dead = 1, lease_until = :now WHERE dead = 0`,
  );
  const store = sqlStore<never>({
    dialect,
    driver: durableObjectDriver(storage, options.written ?? (() => {})),
    runtime: newWebRuntime(),
    clock: options.clock,
  });
  return {
    ...store,
    ...(options.spread === undefined ? {} : { spread: options.spread }),
    buryRunners: () => void runNow(storage, once(bury.with())),
    nextAlarm: (workflows, hooks) => {
      const lanes = workflows.map((handler) => ({ queue: defaultQueue, handler }));
      return runNow(storage, nextAlarm(lanes, hooks));
    },
  };
}

function* once(call: Call): Script<Row[]> {
  return yield call;
}

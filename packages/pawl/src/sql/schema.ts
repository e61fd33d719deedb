import type { ColumnDefinition, Dialect, TableDefinition, TableName } from "./dialect.js";
import { stepDefinitions, stepKey } from "./step-row.js";

const iid: ColumnDefinition = { type: "key", bytes: 64 };
const workflow: ColumnDefinition = { type: "key", bytes: 256 };
const word: ColumnDefinition = { type: "word" };
const int: ColumnDefinition = { type: "int" };
const big: ColumnDefinition = { type: "big" };
const time: ColumnDefinition = { type: "big" };
const maybe = (definition: ColumnDefinition): ColumnDefinition => ({
  ...definition,
  nullable: true,
});
const operation: ColumnDefinition = { type: "key", bytes: 128 };
const body: ColumnDefinition = { type: "body", nullable: true };
const zero = (definition: ColumnDefinition): ColumnDefinition => ({ ...definition, default: 0 });

/**
 * Times are bigint milliseconds. Payloads are text: a JSON type would reorder keys and refuse NUL.
 * No foreign keys: their locks would make the engine wait for users' transactions. Step types, kinds
 * and topics are open words, so that later kinds need no migration.
 */
export const tables: Readonly<Record<Exclude<TableName, "meta">, TableDefinition>> = {
  /** A process that executes. Its lease covers every ticket it owns; dead is for good. */
  runner: {
    columns: {
      id: { type: "key", bytes: 128 },
      lease_until: time,
      dead: zero(int),
      registered_at: time,
    },
    primaryKey: ["id"],
  },

  /** `status` is "live" until the run ends; what a live run is doing stands on its ticket. */
  instance: {
    columns: {
      iid,
      workflow,
      id: { type: "key", bytes: 400 },
      kind: { type: "word", default: "workflow" },
      queue: workflow,
      run_no: int,
      status: word,
      params: body,
      output: body,
      error: body,
      created_at: time,
      started_at: maybe(time),
      finished_at: maybe(time),
      /** The claim that finished the run: proof for a resend. */
      claim_no: zero(big),
      /** The operation that terminated the run: proof for a resend. */
      terminated_by: maybe(operation),
      origin: maybe({ type: "key", bytes: 512 }),
      tags: body,
      retention_until: maybe(time),
    },
    primaryKey: ["iid"],
    indexes: [
      { name: "instance_id", columns: ["workflow", "id"], unique: true },
      { name: "instance_list", columns: ["workflow", "status", "created_at", "iid"] },
    ],
  },

  /** Outcomes of runs that a restart replaced; their steps and events stay where they are. */
  past_run: {
    columns: {
      iid,
      run_no: int,
      status: word,
      output: body,
      error: body,
      started_at: maybe(time),
      finished_at: maybe(time),
      terminated_by: maybe(operation),
      /** The restart that replaced it. Kept for ever, so that no later operation makes a resend look new. */
      restarted_by: operation,
    },
    primaryKey: ["iid", "run_no"],
  },

  /** The queue row of whatever can become due: when should a runner look next, and who may look now. */
  ticket: {
    columns: {
      tid: iid,
      kind: { type: "word", default: "run" },
      queue: workflow,
      handler: workflow,
      /** 0 resumes, 1 is new: what already runs comes first. */
      class: int,
      /** Set only while claimable, so that leased and paused rows leave the index. */
      due_at: maybe(time),
      state: word,
      run_no: int,
      /** The fence. */
      claim_no: big,
      owner: maybe({ type: "key", bytes: 128 }),
      pause_requested: zero(int),
      /** Events accepted for this run; parking compares it with what the run has seen. */
      event_count: zero(big),
      wait_mask: zero(big),
      /** When the run's owner last looked; later events are later than this. */
      seen_at: zero(time),
      /** The last part of this claim that had to do with this row: it, and those before it, have had their say. */
      part_no: zero(int),
      takeovers: zero(int),
      history_bytes: zero(big),
      started_at: maybe(time),
      flow_key: maybe({ type: "key", bytes: 400 }),
    },
    /** Only whoever has inserted or locked the instance's row inserts a ticket: that makes `tid` unique everywhere. */
    primaryKey: ["tid"],
    generation: "claim_no",
    indexes: [
      {
        name: "ticket_due",
        columns: ["queue", "handler", "class", "due_at", "tid"],
        whereNotNull: "due_at",
      },
      { name: "ticket_owner", columns: ["owner"], whereNotNull: "owner" },
    ],
  },

  /** One row per step and nothing else: written once on the hot path. */
  step: {
    columns: stepDefinitions,
    primaryKey: stepKey,
  },

  attempt: {
    columns: { iid, run_no: int, ord: int, n: int, started_at: time, ended_at: time, error: body },
    primaryKey: ["iid", "run_no", "ord", "n"],
  },

  event: {
    columns: {
      iid,
      run_no: int,
      number: big,
      event_id: { type: "key", bytes: 400 },
      kind: word,
      type: { type: "key", bytes: 400 },
      payload: body,
      created_at: time,
      delivered_at: maybe(time),
      consumed_by: maybe(int),
    },
    primaryKey: ["iid", "run_no", "number"],
    indexes: [{ name: "event_once", columns: ["iid", "run_no", "event_id"], unique: true }],
  },

  /** Events from users' transactions and from other runs' commits, until a tick numbers them. */
  inbox: {
    columns: {
      id: { type: "key", bytes: 400 },
      iid,
      run_no: int,
      event_id: { type: "key", bytes: 400 },
      kind: word,
      type: { type: "key", bytes: 400 },
      payload: body,
    },
    primaryKey: ["id"],
  },

  /** Hooks that some process has code for. Rows of the outbox are written for these only. */
  hook: {
    columns: { name: { type: "key", bytes: 128 }, registered_at: time },
    primaryKey: ["name"],
  },

  /** What hooks are to be told, written with its cause, until it is delivered. */
  outbox: {
    columns: {
      id: { type: "key", bytes: 256 },
      hook: { type: "key", bytes: 128 },
      workflow,
      instance_id: { type: "key", bytes: 400 },
      run_no: int,
      /** Why there is something to run, or the status in which the run ended. */
      reason: word,
      created_at: time,
      /** The next delivery, or when the one under way counts as lost. Null once it is given up. */
      due_at: maybe(time),
      /** The fence: grows with every delivery. */
      claim_no: zero(int),
      attempts: zero(int),
      failed_at: maybe(time),
      error: body,
    },
    primaryKey: ["id"],
    indexes: [
      { name: "outbox_due", columns: ["hook", "due_at", "id"], whereNotNull: "due_at" },
      { name: "outbox_failed", columns: ["failed_at", "id"], whereNotNull: "failed_at" },
    ],
  },
};

type Migration = {
  readonly version: number;
  /** The oldest code that still works after it. */
  readonly minimumCode: number;
  statements(dialect: Dialect): string[];
};

/** In order; a released one never changes. Names of later tables are added by later migrations. */
export const migrations: readonly Migration[] = [
  {
    version: 1,
    minimumCode: 1,
    statements: (dialect) =>
      Object.entries(tables).flatMap(([name, definition]) =>
        dialect.createTable(name as TableName, definition),
      ),
  },
];

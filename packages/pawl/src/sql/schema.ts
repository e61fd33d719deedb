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
 * The tables of the first migration. Times are bigint milliseconds. Payloads are text, since a JSON type would reorder
 * keys and refuse NUL. There are no foreign keys, since their locks would make the engine wait for users' transactions.
 * Step types, kinds and topics are open words, so that later kinds need no migration.
 */
export const tables: Readonly<Record<Exclude<TableName, "meta">, TableDefinition>> = {
  /** A process that executes. Its lease covers every ticket that it owns. A dead runner stays dead. */
  runner: {
    columns: {
      id: { type: "key", bytes: 128 },
      lease_until: time,
      dead: zero(int),
      registered_at: time,
    },
    primaryKey: ["id"],
  },

  /** `status` is "live" until the run ends; the ticket tells what a live run is doing. */
  instance: {
    columns: {
      iid,
      workflow,
      id: { type: "key", bytes: 400 },
      /** For instances that are not workflows, as tasks will be. No code reads it yet. */
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
      /** The claim that finished the run, by which a resend is recognised. */
      claim_no: zero(big),
      /** The operation that terminated the run, by which a resend is recognised. */
      terminated_by: maybe(operation),
      origin: maybe({ type: "key", bytes: 512 }),
      /** No code reads or writes these two; a later migration drops them. */
      tags: body,
      retention_until: maybe(time),
    },
    primaryKey: ["iid"],
    indexes: [
      { name: "instance_id", columns: ["workflow", "id"], unique: true },
      { name: "instance_list", columns: ["workflow", "status", "created_at", "iid"] },
    ],
  },

  /** Outcomes of runs that a restart replaced. Their steps and events stay where they are. */
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
      /** The restart that replaced the run. It is kept for ever, so that no later operation makes a resend look new. */
      restarted_by: operation,
    },
    primaryKey: ["iid", "run_no"],
  },

  /** The queue row of a live run: when a runner should look next, and which runner may look now. */
  ticket: {
    columns: {
      tid: iid,
      /** No code reads or writes it; a later migration drops it. */
      kind: { type: "word", default: "run" },
      queue: workflow,
      handler: workflow,
      /** 0 is a run that resumes, 1 a new one: runs that have begun come first. */
      class: int,
      /** Set only while the ticket can be claimed, so that leased and paused tickets leave the index. */
      due_at: maybe(time),
      state: word,
      run_no: int,
      /** The fence. */
      claim_no: big,
      owner: maybe({ type: "key", bytes: 128 }),
      pause_requested: zero(int),
      /** Counts the events of this run. A park compares it with the events that the run has seen. */
      event_count: zero(big),
      wait_mask: zero(big),
      /** When the run's owner last looked. An event that comes later gets a later time. */
      seen_at: zero(time),
      /**
       * The last part of this claim that had to do with this row. It and the parts before it change nothing any more.
       */
      part_no: zero(int),
      takeovers: zero(int),
      history_bytes: zero(big),
      started_at: maybe(time),
      /** For flow control. No code reads or writes it yet. */
      flow_key: maybe({ type: "key", bytes: 400 }),
    },
    /** A ticket is inserted only under the lock of its instance's row, which makes `tid` unique on every database. */
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

  /** A step takes this one row and nothing else. On the hot path it is written once. */
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

  /** Events from users' transactions and from other runs' commits, until a tick moves them to their runs. */
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

  /** Hooks that some process has code for. Only for these are rows written to the outbox. */
  hook: {
    columns: { name: { type: "key", bytes: 128 }, registered_at: time },
    primaryKey: ["name"],
  },

  /** Calls of hooks that are still to be delivered, each written in the same transaction as its cause. */
  outbox: {
    columns: {
      id: { type: "key", bytes: 256 },
      hook: { type: "key", bytes: 128 },
      workflow,
      instance_id: { type: "key", bytes: 400 },
      run_no: int,
      /** Why there is something to run, or the status in which the run has ended. */
      reason: word,
      created_at: time,
      /** When the next delivery is due, or the one under way counts as lost. Null once it is given up. */
      due_at: maybe(time),
      /** The fence, which grows with every delivery. */
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
  /** The oldest code that still works after this migration. */
  readonly minimumCode: number;
  statements(dialect: Dialect): string[];
};

/** The migrations, in order. A released one never changes: a later migration adds or drops tables and columns. */
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

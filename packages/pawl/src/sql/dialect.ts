import type { RowsStyle, Value } from "./statement.js";
import type { claimInOneStatement } from "./verbs/claim-in-one-statement.js";
import type { commitInOneStatement } from "./verbs/commit/one-statement.js";
import type { sendInOneStatement } from "./verbs/events/one-statement.js";

export type TableName =
  | "meta"
  | "runner"
  | "instance"
  | "past_run"
  | "ticket"
  | "step"
  | "attempt"
  | "event"
  | "inbox"
  | "hook"
  | "outbox";

/** A `key` is compared byte by byte, a `body` is a payload, a `word` is one of the engine's own short words. */
export type ColumnType = "key" | "word" | "int" | "big" | "body";

export type ErrorCategory =
  /** The write did not happen: a serialization failure, a deadlock, a busy database. */
  | "transient"
  /** The write did not happen: another session holds a lock for longer than we wait. */
  | "locked"
  /** The connection is gone; whether the write happened is unknown. */
  | "disconnected"
  /** The database refuses the data itself. */
  | "data"
  | "duplicate"
  /** A table is missing, so `migrate()` has not run. */
  | "unmigrated"
  | "other";

/** Everything that differs between databases, and nothing else. Code asks for a capability, never for a name. */
export type Dialect = CommonDialect & (WritableCtes | StatementByStatement);

/** A write with RETURNING may stand in a WITH. Each hot verb then is one statement, which costs one round trip. */
type WritableCtes = {
  readonly writableCtes: true;
  /** The largest of these statements come with the dialect: a bundle without the dialect does not carry them. */
  readonly oneStatement: {
    readonly claim: typeof claimInOneStatement;
    readonly commit: typeof commitInOneStatement;
    readonly sendEvent: typeof sendInOneStatement;
  };
};

/** Each write is a statement of its own, so the hot verbs are scripts of several statements in one transaction. */
export type StatementByStatement = {
  readonly writableCtes: false;
  /** The type to which a sum of integers is cast, so that the driver does not answer it as a decimal. */
  readonly integerType: string;
  /** After FROM: the rows of `table` whose `column` is in the list of keys, each looked up by its key and locked. */
  fromKeys(table: TableName, alias: string, column: string): string;
  /**
   * Writes a value as SQL text. Keys (`IN (?)`) and steps (`VALUES ?`) then travel as text, which is the fastest way on
   * MySQL. Null where they are bound: the keys as one JSON array (`:keys`), the steps one execution each.
   */
  readonly literal: ((value: Value) => string) | null;
};

interface CommonDialect {
  /** For messages and the names of golden files. */
  readonly name: string;
  readonly rowsStyle: RowsStyle;
  /** The database is another process: a statement costs a round trip, and this process can work meanwhile. */
  readonly isRemote: boolean;
  /** CREATE TABLE can be rolled back. Where it commits by itself, a migration runs outside a transaction. */
  readonly ddlInTransaction: boolean;
  /**
   * An index can leave rows out (`whereNotNull`). Where it cannot, `ticket_due` also holds the tickets without a due
   * time, and a condition that excludes them would walk over all of them.
   */
  readonly partialIndexes: boolean;
  /**
   * A range of an index whose bounds come out of a row set is read as a range. MySQL steps over the tickets without a
   * due time only for a lane that is a constant: for a lane out of a row it reads them one by one, 40 ms for 100,000
   * paused ones.
   */
  readonly rangesFromRows: boolean;
  /**
   * Reading many instances by one join with a row set is cheaper than a statement for each. SQLite has no round trips
   * to save, and MySQL reads the whole of a small table for such a join.
   */
  readonly joinsRowSets: boolean;
  /** Rows can be aggregated into JSON and arrays, so that all steps of a run travel as one row. */
  readonly jsonAggregates: boolean;
  /**
   * An insert that fails leaves the user's transaction unusable, so a savepoint goes before it. PostgreSQL needs one:
   * at REPEATABLE READ it fails an insert that meets a row younger than the snapshot, conflict clause or not.
   */
  readonly savepointOnInsert: boolean;
  /** Parameters are `$1`, which may repeat, instead of `?`. */
  readonly numbered: boolean;
  /** How many branches a UNION may have. */
  readonly unionMax: number;
  /** The database's time in milliseconds, exact to one and free of time zones. */
  readonly now: string;
  /** The value of a test's clock, in place of `now`. */
  boundNow(placeholder: string): string;
  table(name: TableName): string;
  /** An index keeps the entries of changed rows as long as an old snapshot might see them. */
  readonly keepsDeadEntries: boolean;
  /** A derived table `alias` with these columns, filled from the rows bound to `:param`. */
  rows(param: string, alias: string, columns: Readonly<Record<string, ColumnType>>): string;
  /** The same as `rows` for a read in one execution, where a statement otherwise runs once for each row. */
  keys?(param: string, alias: string, columns: Readonly<Record<string, ColumnType>>): string;
  /** Joins so that the left side (our few rows) drives, and the right side is looked up by its key. */
  readonly drivenJoin: string;
  /** Such a join by the primary key, which is certain to touch and lock no other row. */
  lookUp(table: TableName, alias: string): string;
  /** How `column == key` is written, if not as an equation. */
  lookedUpBy?(column: string, key: string): string;
  /** After a table: reads it through this index only. Empty where the settings of the planner see to that. */
  throughIndex(index: string): string;
  /** Locks rows for a write. All four locks are empty where a transaction is alone. */
  readonly lock: string;
  /** Leaves rows out that another session has locked. It never waits, so the order of locks does not matter. */
  readonly lockSkipping: string;
  /** The same for one table of a join. */
  lockSkippingOf(alias: string): string;
  /** Locks the rows of one table of a join for reading, and fails instead of waiting. */
  shareOrFailOf(alias: string): string;
  /** The bytes of a text, without reading it. */
  byteLength(expression: string): string;
  /** Starts an `INSERT` in which a conflict clause can call the existing row `old`. */
  insertInto(table: TableName): string;
  /** An `UPDATE` of a table from a row set. */
  updateFrom(options: {
    readonly table: TableName;
    readonly alias: string;
    readonly rows: string;
    readonly on: string;
    readonly set: Readonly<Record<string, string>>;
  }): string;
  /** A `DELETE` of the rows whose key is `matches` of a row set, each looked up by its key. */
  deleteMatching(options: {
    readonly table: TableName;
    readonly key: string;
    readonly rows: string;
    readonly matches: string;
  }): string;
  /** After an `INSERT … SELECT`: keeps the old row. */
  onConflictKeep(key: readonly string[]): string;
  /** After an `INSERT … SELECT`: overwrites these columns if the new (claim_no, part_no) is newer. */
  onConflictSetIfNewer(
    table: TableName,
    key: readonly string[],
    columns: readonly string[],
  ): string;
  classify(error: unknown): ErrorCategory;
  /** Makes concurrent migrations take turns until the transaction ends, or until `unlockMigrations`. */
  lockMigrations(): string[];
  unlockMigrations(): string[];
  createTable(name: TableName, definition: TableDefinition): string[];
}

export type TableDefinition = {
  readonly columns: Readonly<Record<string, ColumnDefinition>>;
  readonly primaryKey: readonly string[];
  /**
   * A column that counts how often a row is rewritten, for rows that are rewritten often. PostgreSQL makes it part of
   * the key: its check of a key reads every version of the row with the same key, even those that only an old snapshot
   * keeps.
   */
  readonly generation?: string;
  readonly indexes?: readonly IndexDefinition[];
};

export type ColumnDefinition = {
  readonly type: ColumnType;
  /** How many bytes a key may take, which sizes MySQL's columns. */
  readonly bytes?: number;
  readonly nullable?: true;
  readonly default?: number | string;
};

type IndexDefinition = {
  readonly name: string;
  readonly columns: readonly string[];
  readonly unique?: true;
  /** Rows in which this column is null stay out of the index, where the database can do that. */
  readonly whereNotNull?: string;
};

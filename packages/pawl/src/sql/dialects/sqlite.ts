import type { ColumnType, Dialect, ErrorCategory, TableDefinition, TableName } from "../dialect.js";

const types: Record<ColumnType, string> = {
  key: "TEXT",
  word: "TEXT",
  int: "INTEGER",
  big: "INTEGER",
  body: "TEXT",
};

export function sqliteDialect(tablePrefix: string): Dialect {
  const table = (name: TableName): string => `${tablePrefix}${name}`;
  return {
    name: "sqlite",
    rowsStyle: "each",
    isRemote: false,
    ddlInTransaction: true,
    partialIndexes: true,
    rangesFromRows: true,
    joinsRowSets: false,
    jsonAggregates: false,
    savepointOnInsert: false,
    writableCtes: false,
    integerType: "INTEGER",
    fromKeys: (name, alias, column) =>
      `json_each(:keys) AS k CROSS JOIN ${table(name)} AS ${alias} ON ${alias}.${column} == k.value`,
    literal: null,
    numbered: false,
    // The limit in a Durable Object; SQLite's own default is 500.
    unionMax: 5,
    now: "CAST(ROUND(unixepoch('now', 'subsec') * 1000) AS INTEGER)",
    boundNow: (placeholder) => placeholder,
    table,
    rows: (param, alias, columns) =>
      `(SELECT ${Object.keys(columns)
        .map((column) => `:${param}.${column} AS ${column}`)
        .join(", ")}) AS ${alias}`,
    keepsDeadEntries: false,
    keys: (param, alias, columns) =>
      `(SELECT ${Object.keys(columns)
        .map((column, position) => `value ->> ${position} AS ${column}`)
        .join(", ")} FROM json_each(:${param}[${Object.keys(columns).join(",")}])) AS ${alias}`,
    drivenJoin: "CROSS JOIN",
    throughIndex: () => "",
    lookUp: (name, alias) => `CROSS JOIN ${table(name)} AS ${alias}`,
    lock: "",
    lockSkipping: "",
    lockSkippingOf: () => "",
    shareOrFailOf: () => "",
    byteLength: (expression) => `length(CAST(${expression} AS BLOB))`,
    insertInto: (name) => `INSERT INTO ${table(name)} AS old`,
    updateFrom: ({ table: name, alias, rows, on, set }) =>
      `UPDATE ${table(name)} AS ${alias} SET ${Object.entries(set)
        .map(([column, expression]) => `${column} = ${expression}`)
        .join(", ")} FROM ${rows} WHERE ${on}`,
    deleteMatching: ({ table: name, key, rows, matches }) =>
      `DELETE FROM ${table(name)} WHERE ${key} IN (SELECT ${matches} FROM ${rows})`,
    // "WHERE true" ends the SELECT, so that SQLite does not take ON for a join condition.
    onConflictKeep: () => "WHERE true ON CONFLICT DO NOTHING",
    onConflictSetIfNewer: (_table, key, columns) =>
      `WHERE true ON CONFLICT (${key.join(", ")}) DO UPDATE SET ${columns
        .map((column) => `${column} = excluded.${column}`)
        .join(", ")} WHERE (old.claim_no, old.part_no) < (excluded.claim_no, excluded.part_no)`,
    classify,
    // The transaction is IMMEDIATE, which is the lock.
    lockMigrations: () => [],
    unlockMigrations: () => [],
    createTable: (name, definition) => createTable(table(name), tablePrefix, definition),
  };
}

function createTable(table: string, tablePrefix: string, definition: TableDefinition): string[] {
  const columns = Object.entries(definition.columns).map(([name, column]) =>
    [
      name,
      types[column.type],
      column.nullable ? "" : "NOT NULL",
      column.default === undefined ? "" : `DEFAULT ${literal(column.default)}`,
    ]
      .filter((part) => part !== "")
      .join(" "),
  );
  return [
    `CREATE TABLE IF NOT EXISTS ${table} (\n  ${[
      ...columns,
      `PRIMARY KEY (${definition.primaryKey.join(", ")})`,
    ].join(",\n  ")}\n) WITHOUT ROWID`,
    ...(definition.indexes ?? []).map(
      (index) =>
        `CREATE ${index.unique ? "UNIQUE " : ""}INDEX IF NOT EXISTS ${tablePrefix}${index.name} ON ${table} (${index.columns.join(
          ", ",
        )})${index.whereNotNull ? ` WHERE ${index.whereNotNull} IS NOT NULL` : ""}`,
    ),
  ];
}

function literal(value: number | string): string {
  return typeof value === "number" ? String(value) : `'${value}'`;
}

const ERROR = 1;
const BUSY = 5;
const LOCKED = 6;
const NOMEM = 7;
const IOERR = 10;
const FULL = 13;
const CANTOPEN = 14;
const PROTOCOL = 15;
const TOOBIG = 18;
const CONSTRAINT_PRIMARYKEY = 1555;
const CONSTRAINT_UNIQUE = 2067;

const codesByName: Readonly<Record<string, number>> = {
  SQLITE_ERROR: ERROR,
  SQLITE_BUSY: BUSY,
  SQLITE_LOCKED: LOCKED,
  SQLITE_NOMEM: NOMEM,
  SQLITE_IOERR: IOERR,
  SQLITE_FULL: FULL,
  SQLITE_CANTOPEN: CANTOPEN,
  SQLITE_PROTOCOL: PROTOCOL,
  SQLITE_TOOBIG: TOOBIG,
  SQLITE_CONSTRAINT_PRIMARYKEY: CONSTRAINT_PRIMARYKEY,
  SQLITE_CONSTRAINT_UNIQUE: CONSTRAINT_UNIQUE,
};

/**
 * The code of an error. node:sqlite and @photostructure/sqlite give `errcode`; better-sqlite3 and libsql name the code;
 * a Durable Object has it only at the end of the message.
 */
function codeOf(error: unknown): number | undefined {
  if (typeof error !== "object" || error === null) return undefined;
  if ("errcode" in error && typeof error.errcode === "number") return error.errcode;
  if ("sqliteExtendedErrCode" in error && typeof error.sqliteExtendedErrCode === "number") {
    return error.sqliteExtendedErrCode;
  }
  if ("rawCode" in error && typeof error.rawCode === "number") return error.rawCode;
  const name = "code" in error ? error.code : lastCodeIn(error);
  if (typeof name !== "string") return undefined;
  const [, primary = ""] = /^(SQLITE_[A-Z]+)/.exec(name) ?? []; // of SQLITE_IOERR_WRITE and the like
  return codesByName[name] ?? codesByName[primary];
}

function lastCodeIn(error: object): string | undefined {
  return error instanceof Error
    ? /: SQLITE_\w+(?: \(extended: SQLITE_\w+\))?$/
        .exec(error.message)?.[0]
        .match(/SQLITE_\w+/g)
        ?.at(-1)
    : undefined;
}

function classify(error: unknown): ErrorCategory {
  const code = codeOf(error);
  if (code === undefined) return "other";
  if (code === CONSTRAINT_PRIMARYKEY || code === CONSTRAINT_UNIQUE) return "duplicate";
  switch (code & 0xff) {
    case BUSY:
    case LOCKED:
    case PROTOCOL:
    case NOMEM:
    case FULL:
      return "transient";
    case IOERR:
    case CANTOPEN:
      return "disconnected";
    case TOOBIG:
      return "data";
    case ERROR:
      // SQLite has no code of its own for a missing table or column.
      return error instanceof Error && /no such (table|column)/.test(error.message)
        ? "unmigrated"
        : "other";
    default:
      return "other";
  }
}

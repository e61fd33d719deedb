import type {
  ColumnDefinition,
  ColumnType,
  Dialect,
  ErrorCategory,
  TableDefinition,
  TableName,
} from "../dialect.js";
import type { Value } from "../statement.js";

/** Keys are VARBINARY, since a text collation would say that 'a' = 'a '. */
const types = (column: ColumnDefinition): string => {
  switch (column.type) {
    case "key":
      return `VARBINARY(${column.bytes ?? 64})`;
    case "word":
      return "VARBINARY(32)";
    case "int":
      return "INT";
    case "big":
      return "BIGINT";
    case "body":
      return "LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin";
  }
};

/**
 * One byte wider than any column of ours. MariaDB silently cuts a value that is too long for a JSON_TABLE, and with the
 * extra byte the table's own column still refuses it.
 */
const jsonTypes: Record<ColumnType, string> = {
  key: "VARBINARY(1025)",
  word: "VARBINARY(33)",
  int: "INT",
  big: "BIGINT",
  body: "LONGTEXT",
};

/**
 * One dialect for MariaDB (10.6 and later) and MySQL (8.0 and later), in the SQL that both understand: no RETURNING, no
 * LATERAL, `VALUES(column)` on conflict.
 */
export function mysqlDialect(tablePrefix: string): Dialect {
  const table = (name: TableName): string => `\`${tablePrefix}${name}\``;
  // The index is forced, since MariaDB would read and lock the whole of a small table instead.
  const lookUp = (name: TableName, alias: string): string =>
    `STRAIGHT_JOIN ${table(name)} AS ${alias} FORCE INDEX (PRIMARY)`;
  return {
    name: "mysql",
    rowsStyle: "json",
    isRemote: true,
    ddlInTransaction: false,
    partialIndexes: false,
    rangesFromRows: false,
    joinsRowSets: false,
    jsonAggregates: false,
    savepointOnInsert: false,
    writableCtes: false,
    integerType: "SIGNED",
    fromKeys: (name, alias, column) =>
      `${table(name)} AS ${alias} FORCE INDEX (PRIMARY) WHERE ${alias}.${column} IN (?) FOR UPDATE SKIP LOCKED`,
    literal: mysqlLiteral,
    numbered: false,
    unionMax: Infinity,
    // A difference in UTC, since UNIX_TIMESTAMP() is ambiguous in the hour that a time zone repeats.
    now: "(TIMESTAMPDIFF(MICROSECOND, '1970-01-01 00:00:00', UTC_TIMESTAMP(3)) DIV 1000)",
    boundNow: (placeholder) => `CAST(${placeholder} AS SIGNED)`,
    table,
    rows: jsonTable,
    keepsDeadEntries: true,
    drivenJoin: "STRAIGHT_JOIN",
    lookUp,
    throughIndex: (index) => `FORCE INDEX (\`${tablePrefix}${index}\`)`,
    lock: "FOR UPDATE",
    lockSkipping: "FOR UPDATE SKIP LOCKED",
    // MySQL wants OF beside a JSON_TABLE. MariaDB does not know OF, and skips the comments of MySQL's versions.
    lockSkippingOf: (alias) => `FOR UPDATE /*!80001 OF ${alias} */ SKIP LOCKED`,
    shareOrFailOf: (alias) =>
      `/*!80001 FOR SHARE OF ${alias} NOWAIT */ /*M! LOCK IN SHARE MODE NOWAIT */`,
    byteLength: (expression) => `LENGTH(${expression})`,
    insertInto: (name) => `INSERT INTO ${table(name)}`,
    updateFrom: ({ table: name, alias, rows, on, set }) =>
      `UPDATE ${rows} ${lookUp(name, alias)} ON ${on} SET ${Object.entries(set)
        .map(([column, expression]) => `${alias}.${column} = ${expression}`)
        .join(", ")}`,
    // A join instead of IN (SELECT …), for which MariaDB reads and locks the whole of any table.
    deleteMatching: ({ table: name, key, rows, matches }) =>
      `DELETE t FROM ${rows} ${lookUp(name, "t")} ON t.${key} = ${matches}`,
    onConflictKeep: (key) => `ON DUPLICATE KEY UPDATE ${key[0]} = VALUES(${key[0]})`,
    onConflictSetIfNewer: (name, _key, columns) => setIfNewer(table(name), columns),
    classify,
    // DDL commits by itself here, so the session holds the lock. Names of locks are the server's, so it has the
    // database's name.
    lockMigrations: () => [`SELECT GET_LOCK(${migrationLock(tablePrefix)}, 60) AS locked`],
    unlockMigrations: () => [`SELECT RELEASE_LOCK(${migrationLock(tablePrefix)}) AS released`],
    createTable: (name, definition) => createTable(table(name), tablePrefix, definition),
  };
}

function jsonTable(
  param: string,
  alias: string,
  columns: Readonly<Record<string, ColumnType>>,
): string {
  const paths = Object.entries(columns).map(
    ([column, type], position) =>
      `${column} ${jsonTypes[type]} PATH '$[${position}]' ERROR ON ERROR`,
  );
  const names = Object.keys(columns).join(",");
  return `JSON_TABLE(:${param}[${names}], '$[*]' COLUMNS (${paths.join(", ")})) AS ${alias}`;
}

/** Assignments run from left to right and see earlier ones, so the columns of the guard come last. */
function setIfNewer(table: string, columns: readonly string[]): string {
  const newer = `(${table}.claim_no, ${table}.part_no) < (VALUES(claim_no), VALUES(part_no))`;
  const guarded = columns.filter((column) => column !== "claim_no" && column !== "part_no");
  return `ON DUPLICATE KEY UPDATE ${[...guarded, "part_no", "claim_no"]
    .map((column) => `${column} = IF(${newer}, VALUES(${column}), ${table}.${column})`)
    .join(", ")}`;
}

/**
 * The engine sets the session's sql_mode, in which a backslash escapes. The driver's own way escapes JSON's quotes too.
 */
export function mysqlLiteral(value: Value): string {
  if (typeof value !== "string") return String(value);
  return `'${/['\\\0]/.test(value) ? value.replaceAll(/['\\\0]/g, escaped) : value}'`;
}

function escaped(character: string): string {
  return character === "\0" ? "\\0" : `\\${character}`;
}

/** The names of locks are global and at most 64 characters long. MySQL 9 has no SHA1() any more. */
function migrationLock(tablePrefix: string): string {
  return `SHA2(CONCAT(DATABASE(), '.${tablePrefix}migrate'), 224)`;
}

function createTable(table: string, tablePrefix: string, definition: TableDefinition): string[] {
  const columns = Object.entries(definition.columns).map(([name, column]) =>
    [
      `\`${name}\``,
      types(column),
      column.nullable ? "NULL" : "NOT NULL",
      column.default === undefined
        ? ""
        : `DEFAULT ${typeof column.default === "number" ? column.default : `'${column.default}'`}`,
    ]
      .filter((part) => part !== "")
      .join(" "),
  );
  const list = (names: readonly string[]): string => names.map((name) => `\`${name}\``).join(", ");
  const indexes = (definition.indexes ?? []).map(
    (index) =>
      `${index.unique ? "UNIQUE " : ""}KEY \`${tablePrefix}${index.name}\` (${list(index.columns)})`,
  );
  return [
    `CREATE TABLE IF NOT EXISTS ${table} (\n  ${[
      ...columns,
      `PRIMARY KEY (${list(definition.primaryKey)})`,
      ...indexes,
    ].join(
      ",\n  ",
    )}\n) ENGINE=InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin ROW_FORMAT=DYNAMIC`,
  ];
}

const socketCodes = new Set([
  "PROTOCOL_CONNECTION_LOST",
  "PROTOCOL_SEQUENCE_TIMEOUT",
  "ECONNREFUSED",
  "ECONNRESET",
  "EPIPE",
  "ETIMEDOUT",
  "ENOTFOUND",
  "EHOSTUNREACH",
  "ENETUNREACH",
  "EAI_AGAIN",
]);

function classify(error: unknown): ErrorCategory {
  if (typeof error !== "object" || error === null) return "other";
  if ("code" in error && typeof error.code === "string" && socketCodes.has(error.code)) {
    return "disconnected";
  }
  switch ("errno" in error ? error.errno : undefined) {
    case 1020: // record has changed since last read (MariaDB snapshot isolation)
    case 1213: // deadlock
    case 1021: // no disk
    case 1041: // no memory
    case 1114: // table full: no disk
    case 1317: // interrupted by a person
    case 1969: // a timeout that the user has set (MariaDB)
    case 3024: // the same (MySQL)
      return "transient";
    case 1205: // lock wait timeout
    case 3572: // NOWAIT (MySQL)
      return "locked";
    case 1040: // too many connections
    case 1203: // too many connections of this user
    case 1226: // the same
    case 1047: // a Galera node that is not ready
    case 1053: // server shutdown in progress
    case 1290: // read only: the primary has become a replica
    case 1836: // the same
    case 1927: // connection was killed
    case 2006:
    case 2013:
    case 4031: // disconnected by the server
      return "disconnected";
    case 1062:
      return "duplicate";
    case 1054: // unknown column
    case 1146: // no such table
      return "unmigrated";
    case 1264: // out of range
    case 1366: // incorrect value
    case 1406: // data too long
    case 1153: // packet too large
    case 3140: // invalid JSON
    case 3141: // invalid JSON, in a parameter
    case 3669: // out of range for a JSON_TABLE
    case 4038: // invalid JSON (MariaDB)
      return "data";
  }
  // mysql2 reports a query on a connection that is already closed as a plain Error.
  return error instanceof Error &&
    /closed state|Connection lost|connection is in closed/i.test(error.message)
    ? "disconnected"
    : "other";
}

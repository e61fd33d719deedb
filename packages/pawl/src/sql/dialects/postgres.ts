import type { ColumnType, Dialect, ErrorCategory, TableDefinition, TableName } from "../dialect.js";
import { claimInOneStatement } from "../verbs/claim-in-one-statement.js";
import { commitInOneStatement } from "../verbs/commit/one-statement.js";
import { sendInOneStatement } from "../verbs/events/one-statement.js";

/** "C" compares bytes, which is the order of the other databases and the cheapest one. */
const types: Record<ColumnType, string> = {
  key: 'text COLLATE "C"',
  word: "text",
  int: "integer",
  big: "bigint",
  body: "text",
};

const arrayTypes: Record<ColumnType, string> = {
  key: "text[]",
  word: "text[]",
  int: "integer[]",
  big: "bigint[]",
  body: "text[]",
};

export function postgresDialect(schema: string): Dialect {
  const quoted = quoteIdentifier(schema);
  const table = (name: TableName): string => `${quoted}.${name}`;
  return {
    name: "postgres",
    rowsStyle: "arrays",
    isRemote: true,
    ddlInTransaction: true,
    partialIndexes: true,
    rangesFromRows: true,
    joinsRowSets: true,
    jsonAggregates: true,
    savepointOnInsert: true,
    writableCtes: true,
    oneStatement: {
      claim: claimInOneStatement,
      commit: commitInOneStatement,
      sendEvent: sendInOneStatement,
    },
    numbered: true,
    unionMax: Infinity,
    // After a wait for a lock, now() would be as old as the wait was long.
    now: "floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint",
    boundNow: (placeholder) => `${placeholder}::bigint`,
    table,
    rows: (param, alias, columns) =>
      `unnest(${Object.entries(columns)
        .map(([column, type]) => `:${param}.${column}::${arrayTypes[type]}`)
        .join(", ")}) AS ${alias}(${Object.keys(columns).join(", ")})`,
    keepsDeadEntries: true,
    drivenJoin: "JOIN",
    // For an equation the planner also considers walking along the whole index. Where statistics say "empty", because a
    // table was analysed at a moment when all of its rows had been deleted, it chooses that: a commit of 69 parts took
    // 28 ms beside 137 tickets.
    lookedUpBy: (column, key) => `${column} = ANY (ARRAY[${key}])`,
    throughIndex: () => "",
    lookUp: (name, alias) => `JOIN ${table(name)} AS ${alias}`,
    lock: "FOR UPDATE",
    lockSkipping: "FOR UPDATE SKIP LOCKED",
    lockSkippingOf: (alias) => `FOR UPDATE OF ${alias} SKIP LOCKED`,
    shareOrFailOf: (alias) => `FOR SHARE OF ${alias} NOWAIT`,
    byteLength: (expression) => `octet_length(${expression})`,
    insertInto: (name) => `INSERT INTO ${table(name)} AS old`,
    updateFrom: ({ table: name, alias, rows, on, set }) =>
      `UPDATE ${table(name)} AS ${alias} SET ${Object.entries(set)
        .map(([column, expression]) => `${column} = ${expression}`)
        .join(", ")} FROM ${rows} WHERE ${on}`,
    deleteMatching: ({ table: name, key, rows, matches }) =>
      `DELETE FROM ${table(name)} WHERE ${key} = ANY (ARRAY(SELECT ${matches} FROM ${rows}))`,
    onConflictKeep: () => "ON CONFLICT DO NOTHING",
    onConflictSetIfNewer: (_table, key, columns) =>
      `ON CONFLICT (${key.join(", ")}) DO UPDATE SET ${columns
        .map((column) => `${column} = excluded.${column}`)
        .join(", ")} WHERE (old.claim_no, old.part_no) < (excluded.claim_no, excluded.part_no)`,
    classify,
    lockMigrations: () => lockMigrations(schema),
    unlockMigrations: () => [],
    createTable: (name, definition) => createTable(table(name), definition),
  };
}

function lockMigrations(schema: string): string[] {
  const name = quoteLiteral(schema);
  return [
    `SELECT pg_advisory_xact_lock(hashtextextended(${quoteLiteral(`pawl migrate ${schema}`)}, 0))`,
    // We ask first, since CREATE SCHEMA IF NOT EXISTS wants a right that is not needed if an operator has made the
    // schema.
    `DO $$ BEGIN IF NOT EXISTS (SELECT 1 FROM pg_namespace WHERE nspname = ${name})
       THEN CREATE SCHEMA ${quoteIdentifier(schema)}; END IF; END $$`,
  ];
}

function quoteIdentifier(name: string): string {
  return `"${name.replaceAll('"', '""')}"`;
}

function quoteLiteral(text: string): string {
  return `'${text.replaceAll("'", "''")}'`;
}

function createTable(table: string, definition: TableDefinition): string[] {
  const columns = Object.entries(definition.columns).map(([name, column]) =>
    [
      name,
      types[column.type],
      column.nullable ? "" : "NOT NULL",
      column.default === undefined
        ? ""
        : `DEFAULT ${typeof column.default === "number" ? column.default : `'${column.default}'`}`,
    ]
      .filter((part) => part !== "")
      .join(" "),
  );
  const { primaryKey, generation } = definition;
  const key = generation === undefined ? primaryKey : [...primaryKey, generation];
  return [
    `CREATE TABLE IF NOT EXISTS ${table} (\n  ${[
      ...columns,
      `PRIMARY KEY (${key.join(", ")})`,
    ].join(",\n  ")}\n)`,
    ...(definition.indexes ?? []).map(
      (index) =>
        `CREATE ${index.unique ? "UNIQUE " : ""}INDEX IF NOT EXISTS ${index.name} ON ${table} (${index.columns.join(", ")})${
          index.whereNotNull ? ` WHERE ${index.whereNotNull} IS NOT NULL` : ""
        }`,
    ),
  ];
}

/** Socket errors carry no SQLSTATE. */
const socketCodes = new Set([
  "ECONNREFUSED",
  "ECONNRESET",
  "EPIPE",
  "ETIMEDOUT",
  "ENOTFOUND",
  "EHOSTUNREACH",
  "ENETUNREACH",
  "EAI_AGAIN",
  "ENOENT",
]);

function classify(error: unknown): ErrorCategory {
  const code =
    typeof error === "object" && error !== null && "code" in error ? error.code : undefined;
  if (typeof code !== "string") {
    // pg reports a connection that ended during a query, or does not answer, as a plain Error.
    return error instanceof Error &&
      /^(Connection terminated|Client has encountered a connection error|Client was closed|timeout expired|Query read timeout)/.test(
        error.message,
      )
      ? "disconnected"
      : "other";
  }
  if (socketCodes.has(code)) return "disconnected";
  switch (code) {
    case "40001": // serialization_failure
    case "40P01": // deadlock_detected
    case "57014": // query_canceled: by a person, or by a timeout of the role
      return "transient";
    case "55P03": // lock_not_available
      return "locked";
    case "25P03": // idle_in_transaction_session_timeout
    case "25P04": // transaction_timeout
    case "53300": // too_many_connections
    case "25006": // read_only_sql_transaction: the primary has become a replica
      return "disconnected";
    case "23505":
      return "duplicate";
    case "42P01": // undefined_table
    case "42703": // undefined_column
    case "3F000": // invalid_schema_name
      return "unmigrated";
  }
  // Failed connections (08), shutdowns and the like (57P), failures of the system under the server (58). With 26000 the
  // connection has lost a prepared statement, so it is of no use any more.
  if (/^(08|57P|58|26000)/.test(code)) return "disconnected";
  if (code.startsWith("53")) return "transient"; // no disk, no memory
  if (code.startsWith("22") || code === "54000") return "data";
  return "other";
}

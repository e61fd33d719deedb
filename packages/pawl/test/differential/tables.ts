import type { DatabaseSyncInstance } from "@photostructure/sqlite";
import type { PoolConnection } from "mysql2/promise";
import type { PoolClient } from "pg";
import type { ColumnDefinition, TableDefinition } from "../../src/sql/dialect.js";
import { tables } from "../../src/sql/schema.js";
import type { TestDatabase } from "../../src/testing/conformance/index.js";

type Row = Readonly<Record<string, unknown>>;

/** How to query, by the name of the store. */
const query: Readonly<Record<string, (tx: unknown, text: string) => Promise<Row[]>>> = {
  sqlite: async (tx, text) => (tx as DatabaseSyncInstance).prepare(text).all() as Row[],
  postgres: async (tx, text) => (await (tx as PoolClient).query<Row>(text)).rows,
  mariadb: async (tx, text) => (await (tx as PoolConnection).query(text))[0] as Row[],
  mysql: async (tx, text) => (await (tx as PoolConnection).query(text))[0] as Row[],
};

/** The rows of each table whose key ends with the word. */
export type Tables = (word: string) => Promise<Record<string, Row[]>>;

/**
 * A fixture does not say what its tables are called, so this looks for the table that holds an instance just
 * made.
 */
export async function tablesOf(name: string, database: TestDatabase): Promise<Tables> {
  const ask = async (text: string): Promise<Row[]> => {
    const transaction = await database.begin();
    try {
      return (await query[name]?.(transaction.tx, text)) ?? [];
    } finally {
      await transaction.rollback();
    }
  };
  const iid = `marker ${name} ${Math.random()}`;
  const marker = { iid, workflow: "marker", id: iid, queue: "marker", params: null };
  await database.store.create([marker]);
  const hasMarker = async (table: string): Promise<boolean> => {
    const rows = await ask(`SELECT 1 AS found FROM ${table} WHERE iid = '${iid}'`).catch(() => []);
    return rows.length > 0;
  };
  const places = name === "sqlite" ? ["pawl_instance"] : (await ask(candidates)).map(toPlace);
  for (const place of places) {
    if (!(await hasMarker(place))) continue;
    const prefix = place.slice(0, -"instance".length);
    return async (word) => {
      const found: Record<string, Row[]> = {};
      for (const [table, definition] of Object.entries(tables)) {
        const [key = ""] = definition.primaryKey;
        const owner = table === "inbox" ? "iid" : key;
        const text = `SELECT * FROM ${prefix}${table} WHERE ${owner} LIKE '%${word}'`;
        const rows = (await ask(text)).map((row) => decoded(row, definition));
        // Some ids of the outbox are random.
        found[table] = inOrder(
          table === "outbox" ? rows.map((row) => ({ ...row, id: null })) : rows,
        );
      }
      return found;
    };
  }
  throw new Error(`the tables of ${name} are nowhere`);
}

const candidates = `SELECT table_schema AS place, table_name AS name FROM information_schema.tables
  WHERE table_name LIKE '%instance'`;

function toPlace(row: Row): string {
  return `${String(row["place"])}.${String(row["name"])}`;
}

/** Drivers give the same number as a number, a bigint or text, and the same text as text or bytes. */
function decoded(row: Row, { columns }: TableDefinition): Row {
  return Object.fromEntries(
    Object.entries(columns).map(([name, column]) => [name, cell(row[name], column)]),
  );
}

function cell(value: unknown, { type }: ColumnDefinition): unknown {
  if (value === null) return null;
  if (type === "int" || type === "big") return Number(value);
  return Buffer.isBuffer(value) ? value.toString("utf8") : value;
}

function inOrder(rows: Row[]): Row[] {
  return rows.toSorted((a, b) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1));
}

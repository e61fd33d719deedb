import type { TableName } from "../../dialect.js";
import type { Sql } from "../../sql.js";
import {
  cell,
  type Row,
  type RowValues,
  type Script,
  type Statement,
  type Value,
} from "../../statement.js";

/**
 * JSON_TABLE costs 1.2 µs for each cell, more than inserting it. What is hot enough goes to MySQL in statements of
 * these many rows instead, of which any number is a sum. All of them prepared take 8 MB of a server's memory for
 * each connection.
 */
const SIZES = [250, 200, 150, 100, 75, 50, 40, 30, 20, 15, 10, 8, 6, 5, 4, 3, 2, 1];
/** A statement that is this full costs less with its last row repeated than a second round trip. */
const FULL_ENOUGH = 0.85;

/** Inserts rows with VALUES. The conflict clause must keep a row that is there already: some go twice. */
export function bulkInsert(
  sql: Sql,
  name: string,
  table: TableName,
  columns: readonly string[],
  onConflict: string,
): (rows: readonly RowValues[]) => Script<void> {
  const head = `${sql.dialect.insertInto(table)} (${columns.join(", ")}) VALUES`;
  const row = `(${columns.map(() => "?").join(", ")})`;
  const statements = bySize(sql, name, (size) => `${head} ${list(row, size)} ${onConflict}`);
  return function* (rows) {
    for (const { statement, from, size } of chunks(statements, rows.length)) {
      const values: Value[] = [];
      for (let n = from; n < from + size; n++) {
        const given = rows[Math.min(n, rows.length - 1)] as RowValues;
        for (const column of columns) values.push(cell(given, column));
      }
      yield { statement, executions: [values] };
    }
  };
}

/** Runs a statement with lists of keys where its text says `?keys`, and answers the rows of all. */
export function byKeyLists(
  sql: Sql,
  name: string,
  text: string,
): (keys: readonly string[]) => Script<Row[]> {
  const statements = bySize(sql, name, (size) =>
    text.replace("?keys", Array.from({ length: size }, (_, n) => `:key${n}`).join(", ")),
  );
  return function* (keys) {
    const rows: Row[] = [];
    for (const { statement, from, size } of chunks(statements, keys.length)) {
      const values: Record<string, string> = {};
      for (let n = 0; n < size; n++) {
        values[`key${n}`] = keys[Math.min(from + n, keys.length - 1)] as string;
      }
      rows.push(...(yield statement.with(values)));
    }
    return rows;
  };
}

type Sized = { readonly size: number; readonly statement: Statement };

function bySize(sql: Sql, name: string, text: (size: number) => string): Sized[] {
  return SIZES.map((size) => ({ size, statement: sql.prepare(`${name}.${size}`, text(size)) }));
}

function list(item: string, size: number): string {
  return Array.from({ length: size }, () => item).join(", ");
}

function* chunks(
  statements: readonly Sized[],
  count: number,
): Generator<Sized & { readonly from: number }> {
  let from = 0;
  for (const { size, statement } of statements) {
    for (; count - from >= size * FULL_ENOUGH; from += size) yield { size, statement, from };
  }
}

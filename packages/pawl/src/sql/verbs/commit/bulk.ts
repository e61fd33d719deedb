import type { TableName } from "../../dialect.js";
import type { Sql } from "../../sql.js";
import { cell, type Row, type RowValues, type Script } from "../../statement.js";

/*
 * Many values go as text. Of 200 steps, JSON_TABLE needs 1.2 µs for each of 3,600 cells, more than inserting it; as
 * parameters of a prepared statement they cost the driver 10 ms on MySQL. On MariaDB, where they cost it 1 ms, a whole
 * commit of 200 is some percent slower as text.
 */

/** For each statement, well below MariaDB's default packet of 16 MiB; in UTF-16 units, each up to four bytes. */
const CHUNK_LENGTH = 2 * 1024 * 1024;

/** Inserts rows with VALUES. */
export function bulkInsert(
  sql: Sql,
  name: string,
  table: TableName,
  columns: readonly string[],
  onConflict: string,
): (rows: readonly RowValues[]) => Script<void> {
  const statement = sql.bulk(
    name,
    `${sql.dialect.insertInto(table)} (${columns.join(", ")}) VALUES ? ${onConflict}`,
  );
  return function* (rows) {
    for (const chunk of chunks(rows)) {
      const list = chunk.map((row) => columns.map((column) => cell(row, column)));
      yield { ...statement.with(), list };
    }
  };
}

/** Runs a statement whose text ends in `IN (?)`. */
export function byKeys(
  sql: Sql,
  name: string,
  text: string,
): (keys: readonly string[]) => Script<Row[]> {
  const statement = sql.bulk(name, text);
  return function* (keys) {
    return yield { ...statement.with(), list: keys };
  };
}

function* chunks(rows: readonly RowValues[]): Generator<readonly RowValues[]> {
  let from = 0;
  let length = 0;
  for (const [n, row] of rows.entries()) {
    const own = lengthOf(row["result"]) + lengthOf(row["error"]);
    if (n > from && length + own > CHUNK_LENGTH) {
      yield rows.slice(from, n);
      [from, length] = [n, 0];
    }
    length += own;
  }
  if (from < rows.length) yield from === 0 ? rows : rows.slice(from);
}

function lengthOf(value: unknown): number {
  return typeof value === "string" ? value.length : 0;
}

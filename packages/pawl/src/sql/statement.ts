import type { Clock } from "../model/seams.js";
import type { Dialect } from "./dialect.js";

export type Row = Readonly<Record<string, unknown>>;
export type Value = string | number | null;
export type Values = Readonly<Record<string, Value | readonly RowValues[]>>;
export type RowValues = Readonly<Record<string, Value>>;

/** One statement with its arguments, a list of them for each time that it runs. */
export type Call = {
  readonly statement: Statement;
  readonly executions: readonly (readonly Value[])[];
  /** Keys or rows as text, for the last `?` of MySQL's bulk statements. */
  readonly list?: string;
  /** Work to be done while the server has not answered yet. */
  readonly meanwhile?: () => void;
};

/**
 * The statements of one transaction, as a generator that yields a call and is sent its rows. The same script runs
 * synchronously on SQLite and asynchronously on a server. It may be started again from the top, so it holds no state
 * outside itself.
 */
export type Script<T> = Generator<Call, T, Row[]>;

/** Runs a script to its end, where statements answer at once. */
export function driveNow<T>(script: Script<T>, execute: (call: Call) => Row[]): T {
  let step = script.next();
  while (step.done !== true) {
    let rows: Row[];
    try {
      rows = execute(step.value);
    } catch (error) {
      step = script.throw(error);
      continue;
    }
    step = script.next(rows);
  }
  return step.value;
}

/** How a dialect passes a set of rows into a statement. */
export type RowsStyle =
  /** One execution for each row, since an embedded database has no round trip to save. */
  | "each"
  /** One array for each column. */
  | "arrays"
  /** One JSON document. */
  | "json";

type Param =
  | { readonly kind: "value"; readonly name: string }
  | { readonly kind: "now" }
  | { readonly kind: "column"; readonly rows: string; readonly column: string }
  | { readonly kind: "json"; readonly rows: string; readonly columns: readonly string[] };

/** SQL text that is fixed when the store is made, its named parameters resolved to the driver's positions. */
export class Statement {
  /** Whether the statement answers rows. */
  readonly reads: boolean;
  /** The row set for each row of which the statement runs once. */
  readonly #each: string | undefined;

  constructor(
    /** Null for a statement that runs once, and is not prepared. */
    readonly name: string | null,
    readonly text: string,
    private readonly params: readonly Param[],
    style: RowsStyle,
    private readonly clock: Clock | undefined,
  ) {
    this.reads = /^(SELECT|WITH)\b/.test(text);
    this.#each =
      style === "each" ? params.find((param) => param.kind === "column")?.rows : undefined;
  }

  with(values: Values = {}): Call {
    const executions =
      this.#each === undefined
        ? [this.params.map((param) => this.argument(param, values))]
        : rowsOf(values, this.#each).map((row) =>
            this.params.map((param) =>
              param.kind === "column" ? cell(row, param.column) : this.argument(param, values),
            ),
          );
    return { statement: this, executions };
  }

  private argument(param: Param, values: Values): Value {
    switch (param.kind) {
      case "now":
        if (this.clock === undefined) throw new Error("no clock to bind");
        return this.clock.now();
      case "column":
        return arrayOf(rowsOf(values, param.rows), param.column);
      case "json":
        return JSON.stringify(
          rowsOf(values, param.rows).map((row) => param.columns.map((c) => cell(row, c))),
        );
      case "value": {
        const value = values[param.name];
        if (value === undefined || (typeof value === "object" && value !== null)) {
          throw new Error(`${this.name}: no value for :${param.name}`);
        }
        return value;
      }
    }
  }
}

function rowsOf(values: Values, name: string): readonly RowValues[] {
  const rows = values[name];
  if (!Array.isArray(rows)) throw new Error(`no rows for :${name}`);
  return rows as readonly RowValues[];
}

export function cell(row: RowValues, column: string): Value {
  const value = row[column];
  if (value === undefined) throw new Error(`no value for column ${column}`);
  return value;
}

/**
 * A column as PostgreSQL writes an array; the driver's own way takes three times as long. A column of nulls becomes an
 * empty array, since `unnest` fills shorter arrays up with nulls, and a plain step has four such columns.
 */
function arrayOf(rows: readonly RowValues[], column: string): string {
  const cells: (string | number)[] = [];
  let empty = true;
  for (const row of rows) {
    const value = cell(row, column);
    if (value === null) cells.push("NULL");
    else cells.push(typeof value === "string" ? quoted(value) : value);
    if (value !== null) empty = false;
  }
  return empty ? "{}" : `{${cells.join(",")}}`;
}

/** The two characters are replaced apart: with one expression for both, results of steps take twice as long. */
function quoted(text: string): string {
  let escaped = text;
  if (escaped.includes("\\")) escaped = escaped.replaceAll("\\", "\\\\");
  if (escaped.includes('"')) escaped = escaped.replaceAll('"', '\\"');
  return `"${escaped}"`;
}

/**
 * The places in a text. `:name` is a value, `:now` is the database's time, `:rows.column` and `:rows[a,b]` come from
 * the dialect's `rows()`. `::` stays a cast. `column == key` looks up the rows of the column's table by a key from
 * elsewhere.
 */
const PLACEHOLDER = /(?<!:):(?:(now)\b|(\w+)\.(\w+)|(\w+)\[([\w,]+)\]|(\w+))/g;

const LOOKUP = /(\w+\.\w+) == (\w+\.\w+)/g;

export function compile(
  dialect: Pick<Dialect, "rowsStyle" | "numbered" | "now" | "boundNow" | "lookedUpBy">,
  clock: Clock | undefined,
  name: string | null,
  body: string,
): Statement {
  const params: Param[] = [];
  const positions = new Map<string, number>();
  const place = (key: string, param: Param): string => {
    if (!dialect.numbered) {
      params.push(param);
      return "?";
    }
    let position = positions.get(key);
    if (position === undefined) {
      params.push(param);
      position = params.length;
      positions.set(key, position);
    }
    return `$${position}`;
  };
  const text = body
    .replaceAll(PLACEHOLDER, (whole, now, rows, column, jsonRows, jsonColumns, value) => {
      if (now !== undefined) {
        return clock === undefined ? dialect.now : dialect.boundNow(place(whole, { kind: "now" }));
      }
      if (rows !== undefined) return place(whole, { kind: "column", rows, column });
      if (jsonRows !== undefined) {
        return place(whole, { kind: "json", rows: jsonRows, columns: jsonColumns.split(",") });
      }
      return place(whole, { kind: "value", name: value });
    })
    .replaceAll(
      LOOKUP,
      (_, column, key) => dialect.lookedUpBy?.(column, key) ?? `${column} = ${key}`,
    )
    .replaceAll(/\s+/g, " ")
    .trim();
  // SQLite would take a leftover `==` for an equation.
  if (text.includes("==")) throw new Error(`${name}: "==" must stand between two columns: ${text}`);
  return new Statement(name, text, params, dialect.rowsStyle, clock);
}

import type { Clock } from "../model/seams.js";
import type { ColumnType, Dialect, TableName } from "./dialect.js";
import { compile, type Call, type Script, type Statement } from "./statement.js";

/** Compiles the statements of verbs for one dialect. */
export class Sql {
  readonly #statements: Statement[] = [];

  constructor(
    readonly dialect: Dialect,
    private readonly clock: Clock | undefined,
  ) {}

  /** Every prepared statement so far, for the tests that look at plans and texts. */
  get statements(): readonly Statement[] {
    return this.#statements;
  }

  table(name: TableName): string {
    return this.dialect.table(name);
  }

  rows(param: string, alias: string, columns: Readonly<Record<string, ColumnType>>): string {
    return this.dialect.rows(param, alias, columns);
  }

  keys(param: string, alias: string, columns: Readonly<Record<string, ColumnType>>): string {
    return this.dialect.keys?.(param, alias, columns) ?? this.rows(param, alias, columns);
  }

  /** Text that the driver prepares once and runs often. */
  prepare(name: string, body: string): Statement {
    const statement = this.#compile(name, body);
    this.#statements.push(statement);
    return statement;
  }

  /** Text that takes a list, which a driver sends as text. */
  bulk(name: string, body: string): Statement {
    return this.#compile(name, body);
  }

  /** Text that is not worth preparing, as that of a migration. */
  once(body: string): Statement {
    return this.#compile(null, body);
  }

  #compile(name: string | null, body: string): Statement {
    return compile(this.dialect, this.clock, name, body);
  }
}

/** A verb of the store: its statements, and whether they need a transaction around them. */
export type Verb<Args extends readonly unknown[], T> = {
  readonly transaction: boolean;
  /** The verb has an answer of its own for a lock that another session holds, so the store does not retry then. */
  readonly answersLocked?: true;
  /** Its usual statements without any rows, for other verbs to rehearse. */
  readonly empty?: readonly Call[];
  /** Statements of other verbs that a connection can plan after this one, when there is time. */
  readonly rehearsal?: readonly Call[];
  script(...args: Args): Script<T>;
};

/** A row that has at least this column; any row of a statement passes. */
type RowWith<Column extends string> = Readonly<Record<Column, unknown>>;

export function int<Column extends string>(row: RowWith<Column>, column: Column): number {
  const value = Number(row[column]);
  if (!Number.isSafeInteger(value)) throw new Error(`column ${column} holds no integer`);
  return value;
}

export function intOrNull<Column extends string>(
  row: RowWith<Column>,
  column: Column,
): number | null {
  return row[column] === null || row[column] === undefined ? null : int(row, column);
}

export function text<Column extends string>(row: RowWith<Column>, column: Column): string {
  const value = row[column];
  if (typeof value !== "string") throw new Error(`column ${column} holds no text`);
  return value;
}

export function textOrNull<Column extends string>(
  row: RowWith<Column>,
  column: Column,
): string | null {
  return row[column] === null || row[column] === undefined ? null : text(row, column);
}

/** Thrown by a script that lost a race before it wrote anything: the store runs it again from the top. */
export class Raced extends Error {
  override readonly name = "Raced";
}

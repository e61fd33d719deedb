import { IncompatibleDatabaseError } from "../store/errors.js";
import type { Dialect, TableDefinition } from "./dialect.js";
import { migrations } from "./schema.js";
import { int, Raced, type Sql, text } from "./sql.js";
import type { Row, Script } from "./statement.js";

/**
 * The version of this code. In the table `meta`, `version` is the newest migration of the database and `minimum` the
 * oldest code that may use it. A newer database is fine as long as its minimum allows this code: that is how a rolling
 * deploy looks from the old side. The row `inbox` is only ever locked, by the process that moves the inbox.
 */
const CODE_VERSION = 1;

const meta: TableDefinition = {
  columns: {
    name: { type: "key", bytes: 64 },
    value: { type: "big" },
  },
  primaryKey: ["name"],
};

/**
 * Migrates the database. It all runs under one lock, so that one of many processes migrates and the others find it
 * done.
 */
export function* migrateScript(sql: Sql): Script<void> {
  const { dialect } = sql;
  for (const statement of dialect.lockMigrations()) {
    const [row] = yield* execute(sql, statement);
    if (row !== undefined && row["locked"] === 0) throw new Raced();
  }
  try {
    yield* bringUpToDate(sql);
  } finally {
    for (const statement of dialect.unlockMigrations()) yield* execute(sql, statement);
  }
}

function* bringUpToDate(sql: Sql): Script<void> {
  const { dialect } = sql;
  for (const statement of dialect.createTable("meta", meta)) yield* execute(sql, statement);
  const { version, minimum } = yield* recorded(sql);
  checkMinimum(minimum);
  for (const statement of statementsSince(dialect, version)) yield* execute(sql, statement);
}

/** The statements that `migrateScript` would run, by the versions found in the database; null if it has no tables. */
export function migrationPlan(
  dialect: Dialect,
  found: RecordedSchema | null,
): { from: number; to: number; statements: string[] } {
  const from = found?.version ?? 0;
  checkMinimum(found?.minimum ?? 0);
  const changes = statementsSince(dialect, from);
  const to = Math.max(from, ...migrations.map(({ version }) => version));
  if (changes.length === 0) return { from, to, statements: [] };
  const statements = [
    ...dialect.lockMigrations(),
    ...dialect.createTable("meta", meta),
    ...changes,
    ...dialect.unlockMigrations(),
  ];
  return { from, to, statements };
}

function checkMinimum(minimum: number): void {
  if (minimum <= CODE_VERSION) return;
  throw new IncompatibleDatabaseError(
    `the database asks for code of schema version ${minimum} or later; this is ${CODE_VERSION}: upgrade pawl`,
  );
}

function statementsSince(dialect: Dialect, version: number): string[] {
  return migrations
    .filter((step) => step.version > version)
    .flatMap((migration) => [
      ...migration.statements(dialect),
      ...record(dialect, "version", migration.version),
      ...record(dialect, "minimum", migration.minimumCode),
      ...record(dialect, "inbox", 0),
    ]);
}

/** The statements that make the schema of an empty database, for the golden files. */
export function schemaStatements(dialect: Dialect): string[] {
  return [
    ...dialect.createTable("meta", meta),
    ...migrations.flatMap((migration) => migration.statements(dialect)),
  ];
}

function* execute(sql: Sql, statement: string): Script<Row[]> {
  return yield sql.once(statement).with();
}

type RecordedSchema = { readonly version: number; readonly minimum: number };

export function* recorded(sql: Sql): Script<RecordedSchema> {
  const rows = yield sql.once(`SELECT name, value FROM ${sql.table("meta")}`).with();
  const values = new Map(rows.map((row) => [text(row, "name"), int(row, "value")]));
  return { version: values.get("version") ?? 0, minimum: values.get("minimum") ?? 0 };
}

/** Writes a row of `meta`, as text: a plan shows the very statements that run. */
function record(dialect: Dialect, name: string, value: number): string[] {
  return [
    `DELETE FROM ${dialect.table("meta")} WHERE name = '${name}'`,
    `INSERT INTO ${dialect.table("meta")} (name, value) VALUES ('${name}', ${value})`,
  ];
}

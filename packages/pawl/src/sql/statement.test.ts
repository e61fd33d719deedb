import { describe, expect, it } from "vitest";
import type { Dialect } from "./dialect.js";
import { mysqlDialect } from "./dialects/mysql.js";
import { postgresDialect } from "./dialects/postgres.js";
import { sqliteDialect } from "./dialects/sqlite.js";
import { Sql } from "./sql.js";

const clock = { now: () => 1_000 };
const rows = [
  { iid: "a", n: 1 },
  { iid: "b", n: null },
];
const body = (sql: Sql): string =>
  `SELECT r.iid, :limit, :now::x FROM ${sql.rows("items", "r", { iid: "key", n: "int" })} WHERE :limit > 0`;

describe("statements", () => {
  it("number PostgreSQL's parameters, repeat them, and pass rows as arrays", () => {
    const sql = new Sql(postgresDialect("pawl"), clock);
    const statement = sql.prepare("s", body(sql));
    expect(statement.text).toBe(
      "SELECT r.iid, $1, $2::bigint::x FROM unnest($3::text[], $4::integer[]) AS r(iid, n) WHERE $1 > 0",
    );
    expect(statement.with({ limit: 5, items: rows }).executions).toEqual([
      [5, 1_000, '{"a","b"}', "{1,NULL}"],
    ]);
  });

  it("quote texts that a PostgreSQL array would misread, and leave a column of nulls empty", () => {
    const sql = new Sql(postgresDialect("pawl"), clock);
    const statement = sql.prepare(
      "s",
      `SELECT * FROM ${sql.rows("items", "r", { a: "key", b: "int" })}`,
    );
    const hostile = ['a"b', "c\\d", "NULL", "{}", ",", ""].map((a) => ({ a, b: null }));
    expect(statement.with({ items: hostile }).executions).toEqual([
      ['{"a\\"b","c\\\\d","NULL","{}",",",""}', "{}"],
    ]);
  });

  it("join by a key, on PostgreSQL so that no plan walks along the index", () => {
    const join = "SELECT 1 FROM r JOIN ticket AS t ON t.tid == r.iid";
    const textOn = (dialect: Dialect): string => new Sql(dialect, clock).prepare("s", join).text;
    expect(textOn(postgresDialect("p"))).toMatch(/ON t\.tid = ANY \(ARRAY\[r\.iid\]\)$/);
    for (const dialect of [sqliteDialect("p_"), mysqlDialect("p_")]) {
      expect(textOn(dialect)).toMatch(/ON t\.tid = r\.iid$/);
    }
  });

  it("run once for each row on SQLite", () => {
    const sql = new Sql(sqliteDialect("pawl_"), clock);
    const statement = sql.prepare("s", body(sql).replace("::x", ""));
    expect(statement.text).toBe(
      "SELECT r.iid, ?, ? FROM (SELECT ? AS iid, ? AS n) AS r WHERE ? > 0",
    );
    expect(statement.with({ limit: 5, items: rows }).executions).toEqual([
      [5, 1_000, "a", 1, 5],
      [5, 1_000, "b", null, 5],
    ]);
  });

  it("pass rows as one document on MySQL", () => {
    const sql = new Sql(mysqlDialect("pawl_"), clock);
    const statement = sql.prepare("s", body(sql).replace("::x", ""));
    expect(statement.with({ limit: 5, items: rows }).executions).toEqual([
      [5, 1_000, '[["a",1],["b",null]]', 5],
    ]);
  });

  it("use the database's own time if there is no clock", () => {
    for (const dialect of [postgresDialect("p"), sqliteDialect("p_"), mysqlDialect("p_")]) {
      const sql = new Sql(dialect, undefined);
      const statement = sql.prepare("now", "SELECT :now AS now");
      expect(statement.text).toBe(`SELECT ${dialect.now} AS now`);
      expect(statement.with().executions).toEqual([[]]);
    }
  });

  it("refuse a missing value instead of binding nothing", () => {
    const sql = new Sql(sqliteDialect("p_"), undefined);
    expect(() => sql.prepare("s", "SELECT :a").with({})).toThrow(":a");
  });
});

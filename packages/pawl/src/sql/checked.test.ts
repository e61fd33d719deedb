import { DatabaseSync } from "@photostructure/sqlite";
import mysql from "mysql2";
import pg from "pg";
import { expect, test } from "vitest";
import { mysqlStore } from "../mysql.js";
import { postgresStore } from "../postgres.js";
import { sqliteStore } from "../sqlite.js";

/** No connection is made before the first call. */
const makers: Readonly<Record<string, (options: object) => unknown>> = {
  sqliteStore: (options) => sqliteStore(new DatabaseSync(":memory:"), options),
  postgresStore: (options) => postgresStore(new pg.Pool(), options),
  mysqlStore: (options) => mysqlStore(mysql.createPool({}), options),
};

test.each(Object.keys(makers))("%s refuses unknown options", (name) => {
  expect(() => makers[name]?.({ prefix: "a_" })).toThrow(
    new RegExp(`^${name}: unknown option "prefix"; the options are .*clock$`),
  );
});

test.each([
  ["sqliteStore", { tablePrefix: "a-b" }, "tablePrefix must be 1 to 40 letters"],
  ["mysqlStore", { tablePrefix: "" }, "tablePrefix must be 1 to 40 letters"],
  ["postgresStore", { schema: "1a" }, "schema must be 1 to 40 letters"],
  ["postgresStore", { connections: 0 }, "connections must be a whole number from 1, got 0"],
  ["mysqlStore", { connections: 1.5 }, "connections must be a whole number from 1, got 1.5"],
])("%s with %j throws: %s", (name, options, message) => {
  expect(() => makers[name]?.(options)).toThrow(message);
});

import { describe, expect, it } from "vitest";
import { mysqlDialect } from "./dialects/mysql.js";
import { postgresDialect } from "./dialects/postgres.js";
import { sqliteDialect } from "./dialects/sqlite.js";
import { schemaStatements } from "./migrate.js";

/**
 * A changed file means a changed schema, which needs a migration. After adding one: `npx vitest run --project
 * unit schema -u`.
 */
describe("the schema", () => {
  for (const dialect of [sqliteDialect("pawl_"), postgresDialect("pawl"), mysqlDialect("pawl_")]) {
    it(`of ${dialect.name} is the recorded one`, async () => {
      const text = schemaStatements(dialect).map((statement) => `${statement};\n`);
      await expect(text.join("\n")).toMatchFileSnapshot(`./golden/${dialect.name}.sql`);
    });
  }
});

import { test, expect, describe } from "vitest";
import { inScope, type Scope } from "../../pawl/test/support/scope.js";
import { sharedServer, servers, type Kind } from "../../pawl/test/support/servers.js";
import { database } from "../../pawl/test/support/database.js";
import { commandsWork } from "./commands.js";
import { configFor, Project, sqliteConfig } from "./support/project.js";

async function settled(project: Project): Promise<void> {
  type Tick = { processed: number; nextWakeInMs: number | null };
  for (;;) {
    const { processed, nextWakeInMs } = await project.json<Tick>(["tick"]);
    if (processed === 0 && (nextWakeInMs === null || nextWakeInMs > 10_000)) return;
  }
}

async function configOn(scope: Scope, kind: Kind): Promise<string> {
  const { url, name } = await database(scope, kind);
  if (kind === "postgres") {
    return configFor({
      imports: `
import pg from "pg";
import { postgresStore } from "pawl/postgres";

const pool = new pg.Pool({ connectionString: ${JSON.stringify(url)} });`,
      store: `postgresStore(pool, { schema: ${JSON.stringify(name)} })`,
      close: "\n  close: () => pool.end(),",
    });
  }
  return configFor({
    imports: `
import mysql from "mysql2/promise";
import { mysqlStore } from "pawl/mysql";

const pool = mysql.createPool({ uri: ${JSON.stringify(url)}, database: ${JSON.stringify(name)} });`,
    store: "mysqlStore(pool)",
    close: "\n  close: () => pool.end(),",
  });
}

commandsWork("a config with SQLite", (work) =>
  inScope(async (scope) => {
    const project = await Project.make(scope);
    await project.run(["migrate"]);
    await work({ project, where: [], settle: () => settled(project) });
  }),
);

for (const kind of servers.filter((each) => each === "postgres")) {
  commandsWork(`a config with ${kind}`, (work) =>
    inScope(async (scope) => {
      const project = await Project.make(scope, { "pawl.config.ts": await configOn(scope, kind) });
      await project.run(["migrate"]);
      await work({ project, where: [], settle: () => settled(project) });
    }),
  );
}

describe("migrate", () => {
  const kinds = ["sqlite", ...servers] as const;
  test.each(kinds)("on %s plans, migrates, and has nothing more to do", (kind) =>
    inScope(async (scope) => {
      const config = kind === "sqlite" ? sqliteConfig : await configOn(scope, kind);
      const project = await Project.make(scope, { "pawl.config.ts": config });

      const before = await project.run(["list", "order"]);
      expect(before.code).toBe(1);
      expect(before.stderr).toContain("NOT_MIGRATED");
      expect(before.stderr).toContain("make them: pawl migrate");

      const plan = await project.run(["migrate", "--dry-run"]);
      expect(plan.code).toBe(0);
      expect(plan.stdout).toMatch(/CREATE TABLE IF NOT EXISTS \S*instance/);
      expect(plan.stdout).toMatch(
        /INSERT INTO \S*meta\S* \(name, value\) VALUES \('version', 1\);/,
      );
      expect((await project.run(["list", "order"])).code).toBe(1);

      const done = await project.run(["migrate"]);
      expect(done.code).toBe(0);
      expect(done.stdout).toMatch(/made table \S*instance/);
      expect(done.stdout).toContain("migrated to schema version 1\n");
      expect(await project.run(["migrate"])).toMatchObject({
        code: 0,
        stdout: "up to date: schema version 1\n",
      });
      expect(await project.json(["migrate", "--dry-run"])).toEqual({
        from: 1,
        to: 1,
        statements: [],
        applied: false,
      });
      expect((await project.run(["list", "order"])).code).toBe(0);
    }),
  );
});

test("an unreachable database exits with 4, and names the address", () =>
  inScope(async (scope) => {
    const url = "postgres://nobody@127.0.0.1:9/none";
    const config = configFor({
      imports: `
import pg from "pg";
import { postgresStore } from "pawl/postgres";`,
      store: `postgresStore(new pg.Pool({ connectionString: "${url}" }))`,
    });
    const project = await Project.make(scope, { "pawl.config.ts": config });
    const { code, stderr, stdout } = await project.run(["list", "order"]);
    expect([code, stdout]).toEqual([4, ""]);
    expect(stderr).toContain("ECONNREFUSED 127.0.0.1:9 (STORE_UNAVAILABLE)");
  }));

test.skipIf(servers.length === 0)(
  "a pool that the config leaves open does not keep the command from ending",
  () =>
    inScope(async (scope) => {
      const kind = servers[0] as Kind;
      const config = (await configOn(scope, kind)).replace(/\n {2}close: .*/, "");
      const project = await Project.make(scope, { "pawl.config.ts": config });
      expect(sharedServer(kind)).not.toBe("");
      expect((await project.run(["migrate"])).code).toBe(0);
      expect((await project.run(["list", "order"])).code).toBe(0);
    }),
);

import { expect, test } from "vitest";
import { inScope } from "../../pawl/test/support/scope.js";
import { until } from "../../pawl/test/support/until.js";
import { commandsWork } from "./commands.js";
import { configFor, Project } from "./support/project.js";

const secured = configFor({
  imports: `
import { openSqlite } from "@pawl/dispatcher-node";
import { bearerToken } from "pawl/auth";
import { sqliteStore } from "pawl/sqlite";`,
  store: `sqliteStore(openSqlite("pawl.db"))`,
  options: `
    authorize: { all: bearerToken("a-secret-that-is-long-enough") },
    tick: { enabled: true },`,
});

/** Returns whether everything has ended or waits. */
async function isSettled(project: Project, where: readonly string[]): Promise<boolean> {
  type Page = { instances: { details: { status: string } }[] };
  const { instances } = await project.json<Page>(["list", "--all", ...where]);
  return instances.every(({ details }) => !["queued", "running"].includes(details.status));
}

commandsWork("a URL", (work) =>
  inScope(async (scope) => {
    const server = await Project.make(scope);
    const url = await (await server.dev()).url();
    const elsewhere = await Project.make(scope, { "pawl.config.ts": "throw new Error('not me');" });
    const where = ["--url", url];
    const settle = () => until(() => isSettled(elsewhere, where), "settled");
    await work({ project: elsewhere, where, settle: async () => void (await settle()) });
  }),
);

test("a URL needs its token, and can tick where that is enabled", () =>
  inScope(async (scope) => {
    const project = await Project.make(scope, { "pawl.config.ts": secured });
    const url = await (await project.dev()).url();
    const without = await project.run(["list", "--url", url]);
    expect([without.code, without.stdout]).toEqual([1, ""]);
    expect(without.stderr).toContain("UNAUTHORIZED");
    expect(without.stderr).toContain("PAWL_TOKEN");
    const token = "a-secret-that-is-long-enough";
    const given = await project.run(["list", "--url", url, "--token", token]);
    expect(given.code).toBe(0);
    const env = { PAWL_URL: url, PAWL_TOKEN: token };
    expect(await project.json(["tick"], { env })).toEqual({ processed: 0, nextWakeInMs: null });
    const wrong = await project.run(["list"], { env: { ...env, PAWL_TOKEN: "wrong" } });
    expect(wrong.code).toBe(1);
    expect(wrong.stderr).toContain("does not take the token of --token or PAWL_TOKEN");
  }));

test("commands that need a config refuse a URL, and wrong URLs are explained", () =>
  inScope(async (scope) => {
    const project = await Project.make(scope);
    const url = await (await project.dev()).url();
    const disabled = await project.run(["tick", "--url", url]);
    expect(disabled.code).toBe(1);
    expect(disabled.stderr).toContain("TICK_DISABLED");
    for (const command of ["migrate", "dev", "replay"]) {
      const refused = await project.run([command, "--url", url]);
      expect(refused.code, command).toBe(2);
      const byVariable = await project.run([command, ...(command === "replay" ? ["order"] : [])], {
        env: { PAWL_URL: url },
      });
      expect(byVariable.code, command).toBe(2);
      expect(byVariable.stderr, command).toContain("CONFIG_NEEDED");
    }
    const away = await project.run(["list", "--url", "http://127.0.0.1:9"]);
    expect([away.code, away.stdout]).toEqual([4, ""]);
    expect(away.stderr).toContain("does a Pawl API run there?");
    const page = await project.run(["list", "--url", `${url}/nowhere`]);
    expect(page.code).toBe(3);
    expect(page.stderr).toContain("is --url the address of a Pawl API");
    const nonsense = await project.run(["list", "--url", "127.0.0.1:3000"]);
    expect(nonsense.code).toBe(2);
    expect(nonsense.stderr).toContain("--url must begin with http:// or https://");
    const both = await project.run(["list", "--url", url, "--config", "pawl.config.ts"]);
    expect(both.code).toBe(2);
  }));

test("start --wait waits for the end", () =>
  inScope(async (scope) => {
    const project = await Project.make(scope);
    const url = await (await project.dev()).url();
    const echo = ["start", "echo", "--params", "[1,2]", "--wait", "--url", url];
    expect(await project.run(echo)).toMatchObject({ code: 0, stdout: "complete [1,2]\n" });
    const failing = await project.run([
      "start",
      "fails always",
      "--id",
      "f",
      "--wait",
      "30 seconds",
      "--url",
      url,
      "--json",
    ]);
    expect(failing.code).toBe(1);
    expect(JSON.parse(failing.stdout)).toMatchObject({
      workflow: "fails always",
      id: "f",
      status: "errored",
      error: { name: "NonRetryableError", message: "no" },
    });
    const short = await project.run([
      "start",
      "order",
      "--params",
      '{"amount":1}',
      "--wait",
      "100 ms",
      "--url",
      url,
    ]);
    expect([short.code, short.stdout]).toEqual([1, ""]);
    expect(short.stderr).toContain("did not end in time (RESULT_TIMEOUT)");
  }));

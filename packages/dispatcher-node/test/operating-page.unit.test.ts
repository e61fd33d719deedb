// These are the examples of docs/operating.md. Each region is quoted there word for word, which a test
// checks.
import { readdirSync, readFileSync } from "node:fs";
import { drainOnSignals, openSqlite, serve, startRunner } from "@pawl/dispatcher-node";
import { createWorkflows, defineWorkflow } from "pawl";
import { sqliteStore } from "pawl/sqlite";
import { expect, test, vi } from "vitest";
import { examplesIn, regionsOf } from "./quoted.js";

const workflows = { HELLO: defineWorkflow({ name: "hello", run: async () => "hello" }) };

test("a process runs workflows until it is told to stop", async () => {
  const handle = openSqlite(":memory:");
  const store = sqliteStore(handle);
  const before = process.listeners("SIGTERM");
  // #region process
  const pawl = createWorkflows({ workflows, store, logger: console });
  await pawl.migrate();
  const runner = startRunner(pawl, { concurrency: 50 });
  drainOnSignals([runner], { timeoutMs: 20_000 });
  // #endregion
  for (const signal of ["SIGTERM", "SIGINT"] as const) {
    const added = process.listeners(signal).filter((each) => !before.includes(each));
    expect(added.length).toBe(1);
    for (const each of added) process.off(signal, each);
  }
  expect(await (await pawl.workflows.HELLO.create()).result({ timeout: "20 seconds" })).toBe(
    "hello",
  );
  await runner.stop();
  await pawl.close();
  handle.close();
});

test("a tick runs what is due, without a process", async () => {
  const handle = openSqlite(":memory:");
  const pawl = createWorkflows({ workflows, store: sqliteStore(handle) });
  await pawl.migrate();
  const instance = await pawl.workflows.HELLO.create();
  // #region tick
  const { processed, nextWakeInMs } = await pawl.tick({ maxInstances: 20, maxSteps: 100 });
  // #endregion
  expect([processed, nextWakeInMs]).toEqual([1, null]);
  expect(await instance.result()).toBe("hello");
  await pawl.close();
  handle.close();
});

test("a process can serve HTTP, too", async () => {
  const handle = openSqlite(":memory:");
  const pawl = createWorkflows({ workflows, store: sqliteStore(handle) });
  await pawl.migrate();
  const runner = startRunner(pawl);
  vi.stubEnv("PORT", "0");
  const log = vi.spyOn(console, "log").mockReturnValue();
  const before = (["SIGTERM", "SIGINT"] as const).map((name) => process.listeners(name));
  // #region serve
  const server = await serve(pawl, { port: Number(process.env["PORT"] ?? 3000) });
  drainOnSignals([server, runner]);
  console.log(`Pawl listens on ${server.url}`);
  // #endregion
  for (const [n, name] of (["SIGTERM", "SIGINT"] as const).entries()) {
    for (const each of process.listeners(name)) {
      if (before[n]?.includes(each) === false) process.off(name, each);
    }
  }
  vi.unstubAllEnvs();
  log.mockRestore();
  expect((await fetch(`${server.url}/api/workflows`)).status).toBe(200);
  await server.close();
  await runner.stop();
  await pawl.close();
  handle.close();
});

const root = new URL("../../../", import.meta.url);

test("the page has these examples and no others", () => {
  const examples = regionsOf("packages/dispatcher-node/test/operating-page.unit.test.ts");
  expect(examplesIn("docs/operating.md")).toEqual(examples);
});

test("the page explains every event that is logged, and no others", () => {
  const folders = [
    "packages/pawl/src/engine/",
    "packages/pawl/src/hooks/",
    "packages/pawl/src/http/",
    "packages/pawl/src/model/",
    "packages/pawl/src/runner/",
    "packages/pawl/src/store/",
    "packages/dispatcher-node/src/",
    "packages/dispatcher-cloudflare-do/src/",
  ];
  const logged = folders.flatMap((folder) =>
    readdirSync(new URL(folder, root), { recursive: true, encoding: "utf8" })
      .filter((file) => file.endsWith(".ts") && !file.endsWith(".test.ts"))
      .map((file) => readFileSync(new URL(folder + file, root), "utf8"))
      .flatMap((text) => [
        ...text.matchAll(
          /(?:ogger\??\.(?:debug|info|warn|error)|diverged|#holdFor|#failed|#say)\(\s*["`]([\w.]+)["`]/g,
        ),
      ])
      .map(([, event]) => event),
  );
  expect(logged.length).toBeGreaterThan(15);
  // The end of a turn is logged as `run.${how}`.
  const ends = ["run.parked", "run.paused", "run.finished", "run.gone"];
  const page = readFileSync(new URL("docs/operating.md", root), "utf8");
  const [, table = ""] = page.split("## The log");
  const explained = Array.from(table.matchAll(/^\| (`[^|]+) \|/gm), ([, cell = ""]) =>
    Array.from(cell.matchAll(/`([\w.]+)`/g), ([, event]) => event),
  ).flat();
  expect(new Set(explained)).toEqual(new Set([...logged, ...ends]));
});

import { once } from "node:events";
import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { inScope, Scope } from "../../pawl/test/support/scope.js";
import { until } from "../../pawl/test/support/until.js";
import { Project, slowCode } from "./support/project.js";

const scope = new Scope();
let project: Project;

beforeAll(async () => {
  project = await Project.make(scope);
  await project.run(["migrate"]);
});
afterAll(async () => expect(await scope.end()).toEqual([]));

async function refused(args: readonly string[], options: Parameters<Project["run"]>[1] = {}) {
  const { code, stdout, stderr } = await project.run(args, options);
  expect(stdout, args.join(" ")).toBe("");
  expect(code, stderr).toBe(2);
  return stderr;
}

describe("the command line", () => {
  test("prints the help, as an error, without arguments", async () => {
    const stderr = await refused([]);
    expect(stderr).toContain("Usage: pawl [options] [command]");
    expect(stderr).toContain("Exit codes: 0 done");
  });

  test("prints its version and the help of a command", async () => {
    const { version } = JSON.parse(
      await readFile(new URL("../package.json", import.meta.url), "utf8"),
    ) as { version: string };
    expect(await project.run(["--version"])).toEqual({
      code: 0,
      stdout: `${version}\n`,
      stderr: "",
    });
    expect((await project.run(["help", "show"])).stdout).toContain("--run <n>");
  });

  test("names mistakes, with what may have been meant", async () => {
    expect(await refused(["lst"])).toContain("(Did you mean list?)");
    expect(await refused(["list", "--stats", "x"])).toContain("(Did you mean --status?)");
    expect(await refused(["show", "order"])).toContain("missing required argument 'id'");
    expect(await refused(["list", "--limit", "0"])).toContain("It must be a whole number from 1.");
    expect(await refused(["list", "--status", "done"])).toContain("Allowed choices are queued");
    expect(await refused(["list", "--cursor", "x"])).toContain("--cursor needs a workflow");
    expect(await refused(["list", "order", "--cursor", "x"])).toContain("INVALID_CURSOR");
    expect(await refused(["start", "order", "--id", "soon", "--wait", "soon"])).toContain("--wait");
    expect((await project.run(["show", "order", "soon"])).code).toBe(3);
    expect(await refused(["show", "order", "x", "more"])).toContain("too many arguments");
    expect(JSON.parse(await refused(["lst", "--json"]))).toEqual({
      error: { code: "INVALID_USAGE", message: "unknown command 'lst'\n(Did you mean list?)" },
    });
    const token = ["list", "--url", "http://127.0.0.1:9", "--token", "a\nsecret"];
    expect(await refused(token)).toMatch(/INVALID_TOKEN(?!.*secret)/s);
    const withPassword = await refused(["list", "--url", "http://me:secret@127.0.0.1:9"]);
    expect(withPassword).toMatch(/^error --url must not have a user name or password/);
    expect(withPassword).not.toContain("secret");
    expect(await refused(["replay"])).toContain("replay takes a workflow, or --file");
    expect(await refused(["replay", "order", "--save", "x"])).toContain("of one instance");
  });

  test("takes ids and names of any kind, and refuses invalid ids", async () => {
    expect(await refused(["show", "order", "--", "-x"])).toContain("INVALID_INSTANCE_ID");
    expect(await refused(["start", "order", "--id", "a b"])).toContain("INVALID_INSTANCE_ID");
    expect(await refused(["start", "order", "--id", "x".repeat(5000)])).toContain("at most 100");
    const spaced = await project.run(["start", "fails always", "--id", "s"]);
    expect(spaced.stderr).toContain("pawl show 'fails always' s");
    expect((await project.run(["show", "fails always", "s"])).code).toBe(0);
    const byBinding = await project.run(["show", "FAILING", "s"]);
    expect(byBinding.stdout).toContain("fails always s");
    const control = await project.run(["list", "\u001B[31mred"]);
    expect(control.code).toBe(3);
    expect(control.stderr).toContain(String.raw`"\u{1b}[31mred"`);
  });
});

describe("values", () => {
  const start = (id: string, params: string) => ["start", "echo", "--id", id, "--params", params];
  const output = async (id: string) => {
    while ((await project.json<{ processed: number }>(["tick"])).processed > 0);
    return (await project.json<{ output: unknown }>(["show", "echo", id])).output;
  };

  test("are read as text, from a file and from standard input", async () => {
    await project.write("sub/params.json", '{"from":"a file"}');
    const below = path.join(project.folder, "sub");
    expect((await project.run(start("text", "[1]"))).code).toBe(0);
    expect((await project.run(start("file", "@params.json"), { cwd: below })).code).toBe(0);
    expect((await project.run(start("stdin", "-"), { input: '"é"' })).code).toBe(0);
    const date = '{"$pawl":"Date","value":"2026-01-01T00:00:00.000Z"}';
    expect((await project.run(start("date", date))).code).toBe(0);
    expect(await output("text")).toEqual([1]);
    expect(await output("file")).toEqual({ from: "a file" });
    expect(await output("stdin")).toBe("é");
    expect(await output("date")).toEqual(JSON.parse(date));
  });

  test("that cannot be read are refused", async () => {
    expect(await refused(start("x", "{amount:1}"))).toContain("--params is not JSON");
    expect(await refused(start("x", ""))).toContain("--params is empty");
    expect(await refused(start("x", "-"))).toContain("--params from standard input is empty");
    expect(await refused(start("x", "@nothing.json"))).toContain("there is no such file");
    expect(await refused(start("x", "@src"))).toContain("it is a folder");
    expect(await refused(start("x", "params.json"))).toContain("--params @params.json");
    await project.write("bad.json", Buffer.from([0x22, 0xff, 0xfe, 0x22]));
    expect(await refused(start("x", "@bad.json"))).toContain("is not valid UTF-8");
    expect(await refused(start("x", '{"$pawl":"Nonsense"}'))).toContain("--params");
    const send = ["send", "order", "nobody", "approved", "--payload", "{"];
    expect(await refused(send)).toContain("--payload is not JSON");
  });

  test("that are too large or too deep are refused", async () => {
    await project.write("large.json", JSON.stringify("x".repeat(2_000_000)));
    expect(await refused(start("x", "@large.json"))).toContain("1048576");
    await project.write("huge.json", JSON.stringify("x".repeat(65 * 1_048_576)));
    expect(await refused(start("x", "@huge.json"))).toContain("more than 64 MiB");
    const depth = 100_000;
    const deep = "[".repeat(depth) + "]".repeat(depth);
    expect((await project.run(start("x", "-"), { input: deep })).code).toBe(2);
  });
});

describe("configs", () => {
  const made = (files: Readonly<Record<string, string>>, work: (at: Project) => Promise<void>) =>
    inScope(async (own) => work(await Project.make(own, files)));

  test("that are missing are explained with an example", () =>
    inScope(async (own) => {
      const at = await Project.make(own);
      const { code, stderr } = await at.run(["list"], { cwd: "/" });
      expect(code).toBe(2);
      expect(stderr).toContain("CONFIG_NOT_FOUND");
      expect(stderr).toContain("export default defineConfig(({ logger }) =>");
      expect((await at.run(["list", "--config", "other.ts"])).stderr).toContain("other.ts");
    }));

  test("are found from a folder below, and mean the same database", async () => {
    const below = path.join(project.folder, "src");
    const { code } = await project.run(["start", "order", "--id", "below"], { cwd: below });
    expect(code).toBe(0);
    expect((await project.run(["show", "order", "below"])).code).toBe(0);
  });

  const engine = `createWorkflows({ workflows: { A: { name: "a", run: async () => 1 } }, store })`;
  const head = `
    import { createWorkflows } from "pawl";
    import { sqliteStore } from "pawl/sqlite";
    import { openSqlite } from "@pawl/dispatcher-node";
    const store = sqliteStore(openSqlite("pawl.db"));`;

  test.each([
    ["the engine", `export default ${engine};`],
    ["a promise", `export default Promise.resolve(${engine});`],
    ["a function", `export default async () => ({ pawl: ${engine} });`],
    ["an object", `export default { pawl: ${engine} };`],
  ])("may export %s", (_, code) =>
    made({ "pawl.config.ts": "", "other.mjs": head + code }, async (at) => {
      const { code: exit, stderr } = await at.run(["migrate", "--config", "other.mjs"]);
      expect([exit, stderr.includes("error")]).toEqual([0, false]);
    }),
  );

  test("that print something do not disturb an answer for machines", () =>
    made({ "pawl.config.ts": `${head}console.log("hi");export default ${engine};` }, async (at) => {
      await at.run(["migrate"]);
      expect(await at.json(["tick"])).toEqual({ processed: 0, nextWakeInMs: null });
    }));

  test.each([
    ["nothing", "export const x = 1;", "must be what createWorkflows gives"],
    ["something else", "export default 42;", "must be what createWorkflows gives"],
    ["an error", "throw new Error('no luck');", "pawl.config.ts failed: no luck"],
    ["nonsense", "export default {", "pawl.config.ts failed"],
    ["an endless promise", "export default new Promise(() => {});", "never finished loading"],
    ["a missing import", 'import "./nowhere.js";', "nowhere.js"],
    ["a rejection", "export default Promise.reject(new Error('late'));", "failed: late"],
  ])("that export %s are refused", (_, code, message) =>
    made({ "pawl.config.ts": code }, async (at) => {
      const { code: exit, stdout, stderr } = await at.run(["list"]);
      expect([exit, stdout]).toEqual([2, ""]);
      expect(stderr).toContain(message);
      const asked = await at.run(["list", "--json"]);
      expect([asked.code, asked.stdout]).toEqual([2, ""]);
      const { error } = JSON.parse(asked.stderr) as { error: { code: string; message: string } };
      expect(error.code).toMatch(/^CONFIG_/);
      expect(error.message).toContain(message);
    }),
  );
});

describe("the process", () => {
  test("exits with 0 when its reader leaves", async () => {
    for (let n = 0; n < 3; n++) await project.run(["start", "order", "--id", `many-${n}`]);
    const child = project.start(["list", "--all", "--json"]);
    child.stdout?.destroy();
    const [code] = (await once(child, "exit")) as [number | null];
    expect([code, child.stderrText()]).toEqual([0, ""]);
  });

  test("exits with 1 when the disk is full", async () => {
    const { code, output } = await project.shell(`pawl list --all --json > /dev/full`);
    expect(code).toBe(1);
    expect(output).toContain("cannot write: ");
  });

  test("says so when its folder is gone", async () => {
    const { code, output } = await project.shell(
      "mkdir gone && cd gone && rmdir ../gone && pawl list",
    );
    expect(code).toBe(2);
    expect(output).toContain("does not exist any more");
  });

  test("lets running steps end on Ctrl-C, and gives the run back", () =>
    inScope(async (own) => {
      const at = await Project.make(own, { "src/other.ts": slowCode(1_000) });
      await at.run(["migrate"]);
      await at.run(["start", "slow", "--id", "s"]);
      const ticking = at.start(["tick"]);
      await until(() => existsSync(path.join(at.folder, "ledger")), "begun");
      ticking.kill("SIGINT");
      const [code] = (await once(ticking, "exit")) as [number | null];
      expect(code).toBe(130);
      expect(await readFile(path.join(at.folder, "ledger"), "utf8")).toBe("begin 1\nend\n");
      expect(await at.json(["tick"])).toMatchObject({ nextWakeInMs: null });
      expect(await at.json(["show", "slow", "s"])).toMatchObject({ status: "complete" });
    }));

  test("writes no colours without a terminal", async () => {
    const { stdout, stderr } = await project.run(["list"]);
    expect(stdout + stderr).not.toContain("\u001B");
  });

  test("completes commands, options and choices", async () => {
    const complete = async (...words: string[]) =>
      (await project.run(["complete", "--", ...words])).stdout;
    expect(await complete("sho")).toContain("show");
    expect(await complete("list", "--sta")).toContain("--status");
    expect(await complete("list", "--status", "")).toContain("errored");
    for (const shell of ["bash", "zsh", "fish"]) {
      const { code, stdout } = await project.run(["completion", shell]);
      expect(code).toBe(0);
      expect(stdout).toContain("pawl complete --");
    }
    expect((await project.run(["completion", "cobol"])).code).toBe(2);
  });
});

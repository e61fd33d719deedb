import { once } from "node:events";
import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { expect, test } from "vitest";
import { inScope, type Scope } from "../../pawl/test/support/scope.js";
import { until } from "../../pawl/test/support/until.js";
import { orderCode, Project, slowCode, sqliteConfig } from "./support/project.js";

function order(project: Project, url: string, id: string) {
  return project.run(["start", "order", "--id", id, "--params", '{"amount":42}', "--url", url]);
}

test("dev migrates, serves the API, runs workflows and shows what happens", () =>
  inScope(async (scope) => {
    const project = await Project.make(scope);
    const dev = await project.dev();
    await dev.saysErr(/migrated the database from schema version 0 to 1/);
    await dev.saysOut(/workflows {2}order, fails always, echo/);
    await order(project, await dev.url(), "o1");
    await dev.saysOut(/order o1 {2}created/);
    await dev.saysOut(
      /charge the card {2}attempt 1 failed: Error: the bank is away \\u\{1b\}\[31m/,
    );
    await dev.saysErr(/step\.failed workflow=order id=o1 .*step="charge the card" attempt=1/);
    // This is where the error was thrown, in the source.
    await dev.saysErr(/^ +at .*src\/order\.ts:\d+:\d+/m);
    expect(dev.child.stderrText()).not.toContain("/pawl/dist/engine/");
    await dev.saysOut(/charge the card {2}completed in .*, attempt 2 → \{"outcome":"paid"/);
    await dev.saysOut(/approval {2}waits for an event of type "approved"/);
    // This event comes from the database itself, not from the process of dev.
    await project.run(["send", "order", "o1", "approved", "--payload", '"yes"']);
    await dev.saysOut(/order o1 {2}event approved "yes"/);
    await dev.saysOut(/order o1 {2}complete \{"payment"/);
    expect(dev.child.stdoutText().match(/o1 {2}created/g)).toHaveLength(1);

    dev.child.kill("SIGINT");
    expect(await dev.exited()).toBe(0);
    expect((await project.run(["show", "order", "o1"])).stdout).toContain("complete");
  }));

test("dev starts again with changed code, on the same port, and survives broken code", () =>
  inScope(async (scope) => {
    const project = await Project.make(scope);
    const dev = await project.dev();
    const url = await dev.url();
    await order(project, url, "before");
    await dev.saysOut(/before {2}.*approval/);

    await project.write("src/order.ts", "export class OrderWorkflow { nonsense(");
    await dev.saysErr(/src\/order\.ts changed: restarting/);
    await dev.saysErr(/CONFIG_FAILED/);
    await dev.saysErr(/it starts again when a file changes/);
    expect((await project.run(["list", "--url", url])).code).toBe(4);

    await project.write("src/order.ts", orderCode.replace("{ payment,", "{ is: 'new', payment,"));
    await dev.saysErr(/running again: 3 workflows/);
    await project.run(["send", "order", "before", "approved", "--url", url]);
    await dev.saysOut(/before {2}complete \{"is":"new"/);
  }));

test("dev lets running steps end before it restarts or ends, which costs no attempt", () =>
  inScope(async (scope) => {
    const { project, begun, ledger } = await slowProject(scope);
    const dev = await project.dev();
    await project.run(["start", "slow", "--url", await dev.url()]);
    await begun(1);
    await project.write("src/touched.ts", "export {};");
    await dev.saysErr(/running again/);
    expect(await ledger()).toEqual(["begin 1", "end"]);
    await project.run(["start", "slow", "--url", await dev.url()]);
    await begun(2);
    dev.child.kill("SIGTERM");
    expect(await dev.exited()).toBe(0);
    expect(await ledger()).toEqual(["begin 1", "end", "begin 1", "end"]);
  }));

test("a second signal ends dev at once, and a worker whose parent is killed ends, too", () =>
  inScope(async (scope) => {
    const { project, begun } = await slowProject(scope, 60_000);
    const dev = await project.dev();
    const url = await dev.url();
    await project.run(["start", "slow", "--url", url]);
    await begun(1);
    dev.child.kill("SIGINT");
    await dev.saysErr(/again to stop at once/);
    dev.child.kill("SIGINT");
    expect(await dev.exited()).toBe(130);

    const orphaning = await project.dev();
    const second = await orphaning.url();
    orphaning.child.kill("SIGKILL");
    await until(
      () =>
        fetch(`${second}/workflows`).then(
          () => false,
          () => true,
        ),
      "its port was given back",
    );
  }));

test("dev that is ended while its code loads exits with 0, and says no more", () =>
  inScope(async (scope) => {
    const project = await Project.make(scope);
    // This holds the process up until its parent, which was told to end, has left it.
    const held = `
      import { writeFileSync } from "node:fs";
      writeFileSync("loading", "");
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 2_000);
    `;
    await project.write("pawl.config.ts", held + sqliteConfig);
    const dev = project.start(["dev", "--no-watch", "--port", "0"]);
    const ended = once(dev, "exit");
    await until(() => existsSync(`${project.folder}/loading`), "loading");
    dev.kill("SIGINT");
    expect(await ended).toEqual([0, null]);
    expect(dev.stderrText()).not.toContain("EPIPE");
  }));

test("dev --json writes one object per line", () =>
  inScope(async (scope) => {
    const project = await Project.make(scope);
    const dev = await project.dev(["--json", "--no-watch"]);
    const url = JSON.parse((await dev.saysOut(/^\{.*\}$/m)) ?? "") as object;
    expect(url).toMatchObject({ kind: "listening", workflows: ["order", "fails always", "echo"] });
    await project.run([
      "start",
      "echo",
      "--id",
      "e",
      "--params",
      "1",
      "--url",
      (url as { url: string }).url,
    ]);
    await dev.saysOut(/"complete"/);
    const lines = dev.child
      .stdoutText()
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line) as object);
    expect(lines).toContainEqual(
      expect.objectContaining({
        workflow: "echo",
        id: "e",
        kind: "status",
        status: "complete",
        output: 1,
      }),
    );
  }));

test("dev says what keeps it from listening", () =>
  inScope(async (scope) => {
    const project = await Project.make(scope);
    const { port } = new URL(await (await project.dev()).url());
    const second = await project.run(["dev", "--no-watch", "--port", port]);
    expect(second.code).toBe(1);
    expect(second.stderr).toContain("something else listens there");
    expect(second.stderr).toContain("pawl dev --port 0");
  }));

async function slowProject(scope: Scope, ms = 1_500) {
  const project = await Project.make(scope, { "src/other.ts": slowCode(ms) });
  const ledger = async (): Promise<string[]> => {
    const text = await readFile(`${project.folder}/ledger`, "utf8").catch(() => "");
    return text.trim().split("\n");
  };
  const begun = (times: number) =>
    until(
      async () => (await ledger()).filter((line) => line.startsWith("begin")).length >= times,
      "begun",
    );
  return { project, ledger, begun };
}

test("dev ends when nobody reads its output any more", () =>
  inScope(async (scope) => {
    const project = await Project.make(scope);
    const dev = await project.dev(["--json"]);
    const url = await dev.url();
    dev.child.stdout!.destroy();
    await project.run(["start", "echo", "--url", url]);
    expect(await dev.exited()).toBe(0);
  }));

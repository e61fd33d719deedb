import { execFile, spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { until } from "../../packages/pawl/test/support/until.js";

const root = fileURLToPath(new URL("../../", import.meta.url));
const run = promisify(execFile);
const folder = mkdtempSync(path.join(tmpdir(), "pawl-demo-"));
const children: ChildProcess[] = [];

beforeAll(() =>
  run(
    process.execPath,
    [path.join(root, "node_modules/typescript/bin/tsc"), "-b", "examples/demo"],
    {
      cwd: root,
    },
  ),
);
afterAll(() => {
  for (const child of children) child.kill("SIGKILL");
  rmSync(folder, { recursive: true });
});

/** Starts the demo as `npm start` does, in a folder of its own and on any port. */
async function start() {
  const child = spawn(process.execPath, [path.join(root, "examples/dist/demo/main.js")], {
    cwd: folder,
    env: { ...process.env, NODE_OPTIONS: "", PORT: "0" },
  });
  children.push(child);
  let text = "";
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (part) => (text += part));
  await until(() => text.includes("Ctrl-C") || child.exitCode !== null, "started");
  const url = /Look at (\S+)/.exec(text)?.[1];
  if (url === undefined) throw new Error(text);
  const get = async (at: string): Promise<unknown> => (await fetch(`${url}/api${at}`)).json();
  const statusOf = async (at: string): Promise<string> =>
    ((await get(`/workflows/${at}`)) as { details: { status: string } }).details.status;
  const openOrders = async (): Promise<string[]> => {
    const page = (await get("/workflows/order/instances?status=waiting")) as {
      instances: { id: string }[];
    };
    return page.instances.map(({ id }) => id);
  };
  return { child, text, url, statusOf, openOrders, commands: text.match(/^ {2}curl .*$/gm) ?? [] };
}

test("the demo: its commands work, it survives kill -9, and Ctrl-C ends it", async () => {
  const first = await start();
  expect(first.text).toMatch(/order +order-1 \(queued\)/);
  expect(first.commands.length).toBe(4);
  const page = await fetch(first.url);
  expect([page.status, page.headers.get("content-type")]).toEqual([
    200,
    "text/html; charset=utf-8",
  ]);
  expect(await page.text()).toContain("<title>Pawl</title>");

  const answers: unknown[] = [];
  for (const command of first.commands.slice(1)) {
    answers.push(JSON.parse((await run("sh", ["-c", `${command} -sS`])).stdout));
  }
  expect(answers).toMatchObject([
    { id: "order-1" },
    { details: { status: "queued" } },
    { instances: [{}, { id: "order-1" }] },
  ]);
  await until(
    async () => (await first.statusOf("order/instances/order-1")) === "waiting",
    "waiting for approval",
  );
  first.child.kill("SIGKILL");
  await once(first.child, "exit");

  const second = await start();
  expect(second.text).toMatch(/order-1 \(waiting\)/);
  const [approve] = second.commands;
  await run("sh", ["-c", `${approve} -sS --fail`]);
  for (const done of ["order/instances/order-1", "report/instances/report-1"]) {
    await until(async () => (await second.statusOf(done)) === "complete", `${done} complete`);
  }
  // This is the order that the first commands started, which waits for its approval.
  for (const id of await second.openOrders()) {
    await fetch(`${second.url}/api/workflows/order/instances/${id}/terminate`, { method: "POST" });
  }
  second.child.kill("SIGINT");
  expect(await once(second.child, "exit")).toEqual([0, null]);

  // All orders have ended, so there is another one, and the commands work on it.
  const third = await start();
  expect(third.text).toMatch(/order-1 \(complete\)/);
  expect(third.commands.length).toBe(4);
  for (const command of third.commands) await run("sh", ["-c", `${command} -sS --fail`]);
});

test("a SIGTERM to `npm start` leaves nothing behind", async () => {
  // This runs the script itself, in a folder of its own. A link leads to what it runs.
  const own = mkdtempSync(path.join(folder, "npm-"));
  const { scripts } = JSON.parse(readFileSync(path.join(root, "package.json"), "utf8")) as {
    scripts: { start: string };
  };
  writeFileSync(
    path.join(own, "package.json"),
    JSON.stringify({ private: true, scripts: { start: scripts.start } }),
  );
  symlinkSync(path.join(root, "examples"), path.join(own, "examples"));
  const npm = spawn("npm", ["start"], {
    cwd: own,
    env: { ...process.env, NODE_OPTIONS: "", PORT: "0" },
    detached: true,
  });
  onTestFinished(() => {
    try {
      process.kill(-npm.pid!, "SIGKILL");
    } catch {
      // All processes have ended.
    }
  });
  let text = "";
  for (const stream of [npm.stdout, npm.stderr]) stream.on("data", (part) => (text += part));
  await until(() => text.includes("Ctrl-C") || npm.exitCode !== null, "started");
  // The last process that has the streams closes them.
  let isClosed = false;
  npm.once("close", () => (isClosed = true));
  npm.kill("SIGTERM");
  await until(() => isClosed, "all processes ended");
});

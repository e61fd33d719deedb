import { execFile, spawn, type ChildProcess } from "node:child_process";
import { randomBytes } from "node:crypto";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import pg from "pg";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { servers, sharedServer } from "../../packages/pawl/test/support/servers.js";
import { until } from "../../packages/pawl/test/support/until.js";
import { resize } from "./client.js";

const root = fileURLToPath(new URL("../../", import.meta.url));
const token = "a-secret";

describe.each(servers.filter((kind) => kind === "postgres"))("two processes on %s", (kind) => {
  const name = `two_${randomBytes(6).toString("hex")}`;
  const url = new URL(sharedServer(kind));
  const admin = new pg.Client({ connectionString: url.href });
  const children: ChildProcess[] = [];

  beforeAll(async () => {
    const tsc = path.join(root, "node_modules/typescript/bin/tsc");
    await promisify(execFile)(process.execPath, [tsc, "-b", "examples/two-processes"], {
      cwd: root,
    });
    await admin.connect();
    await admin.query(`CREATE DATABASE ${name}`);
    url.pathname = `/${name}`;
  });
  afterAll(async () => {
    for (const child of children) child.kill("SIGKILL");
    await admin.query(`DROP DATABASE ${name} WITH (FORCE)`);
    await admin.end();
  });

  /** Starts a process, and returns what it prints when it is ready. */
  async function start(file: string): Promise<{ child: ChildProcess; said: string }> {
    const child = spawn(process.execPath, [path.join(root, "examples/dist/two-processes", file)], {
      env: {
        ...process.env,
        NODE_OPTIONS: "",
        DATABASE_URL: url.href,
        API_TOKEN: token,
        PORT: "0",
      },
    });
    children.push(child);
    let said = "";
    for (const stream of [child.stdout, child.stderr]) stream.on("data", (part) => (said += part));
    await until(() => said.includes("\n") || child.exitCode !== null, `${file} ready`);
    return { child, said };
  }

  test("one process takes the request, and the other does the work", async () => {
    const [api, worker] = await Promise.all([start("api.js"), start("worker.js")]);
    const baseUrl = /API at (\S+)/.exec(api.said)?.[1];
    if (baseUrl === undefined) throw new Error(api.said);
    expect(await resize(baseUrl, token, "cat")).toEqual({
      sizes: ["cat@100", "cat@400", "cat@1600"],
      process: worker.child.pid,
    });
    await expect(resize(baseUrl, "no secret", "cat")).rejects.toMatchObject({
      code: "UNAUTHORIZED",
    });
  });
});

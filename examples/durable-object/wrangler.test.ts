// These tests run what people type in this folder, on the built packages, without a network.
import { execFile, spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { gzipSync } from "node:zlib";
import { describe, test } from "vitest";

const token = "a-secret-of-at-least-24-bytes";
const folder = fileURLToPath(new URL(".", import.meta.url));
const bin = (file: string): string =>
  fileURLToPath(new URL(`../../node_modules/${file}`, import.meta.url));
const wrangler = bin("wrangler/bin/wrangler.js");

/** A small part of the 3 MB that the free plan takes, compressed. */
const UPLOAD_MAX_BYTES = 150_000;

async function newFolder(onTestFinished: (end: () => Promise<void>) => void): Promise<string> {
  const made = await mkdtemp(join(tmpdir(), "pawl-wrangler-"));
  onTestFinished(() => rm(made, { recursive: true, force: true }));
  return made;
}

/** Nobody listens on port 9, so that requests to the outside fail. */
const environment = (home: string) => ({
  PATH: process.env["PATH"] ?? "",
  HOME: home,
  XDG_CONFIG_HOME: home,
  WRANGLER_LOG_PATH: home,
  WRANGLER_SEND_METRICS: "false",
  HTTP_PROXY: "http://127.0.0.1:9",
  HTTPS_PROXY: "http://127.0.0.1:9",
  NO_PROXY: "127.0.0.1,localhost",
  CI: "1",
});

function run(home: string, command: string, ...args: string[]) {
  const options = { cwd: folder, env: environment(home) };
  return promisify(execFile)(process.execPath, [command, ...args], options);
}

async function readyAt(server: ChildProcess): Promise<string> {
  const heard: string[] = [];
  for await (const line of createInterface({ input: server.stdout as NodeJS.ReadableStream })) {
    heard.push(line);
    const [url] = /http:\/\/127\.0\.0\.1:\d+/.exec(line) ?? [];
    if (url !== undefined && line.includes("Ready on")) return url;
  }
  throw new Error(`wrangler dev ended:\n${heard.join("\n")}`);
}

describe.concurrent("the project", () => {
  test("`wrangler deploy --dry-run` makes the upload, and it is small", async ({
    expect,
    onTestFinished,
  }) => {
    const home = await newFolder(onTestFinished);
    const { stdout } = await run(home, wrangler, "deploy", "--dry-run", "--outdir", home);
    expect(stdout).toMatch(/env\.PAWL \(PawlHost\) +Durable Object/);
    const script = await readFile(join(home, "worker.js"), "utf8");
    const imports = script.matchAll(/^import .* from "(.*)";$/gm);
    expect(new Set(Array.from(imports, ([, name]) => name))).toEqual(
      new Set(["cloudflare:workers"]),
    );
    const bytes = gzipSync(script).length;
    console.log(`the upload of examples/durable-object: ${bytes} bytes, compressed`);
    expect(bytes).toBeLessThan(UPLOAD_MAX_BYTES);
  });

  test("`wrangler dev` serves it", async ({ expect, onTestFinished }) => {
    const home = await newFolder(onTestFinished);
    const args = ["dev", "--ip", "127.0.0.1", "--port", "0", "--inspector-port", "0"];
    const more = ["--persist-to", home, "--var", `API_TOKEN:${token}`];
    const server = spawn(process.execPath, [wrangler, ...args, ...more], {
      cwd: folder,
      env: environment(home),
      stdio: ["ignore", "pipe", "ignore"],
    });
    onTestFinished(async () => {
      if (server.exitCode === null && server.kill("SIGINT")) await once(server, "exit");
    });
    const url = await readyAt(server);
    server.stdout.resume();
    const headers = { authorization: `Bearer ${token}` };
    const { id } = (await (await fetch(url)).json()) as { id: string };
    const instance = `${url}/api/workflows/order/instances/${id}`;
    const body = JSON.stringify({ type: "approved", payload: { by: "Grace" } });
    await fetch(`${instance}/events`, { method: "POST", headers, body });
    const statusOf = async () => (await fetch(instance, { headers })).json();
    await expect
      .poll(statusOf, { timeout: 20_000 })
      .toMatchObject({ details: { status: "complete" } });
  });

  test("`vitest run` tests it in workerd", async ({ expect, onTestFinished }) => {
    const home = await newFolder(onTestFinished);
    const file = join(home, "report.json");
    await run(home, bin("vitest/vitest.mjs"), "run", "--reporter=json", `--outputFile=${file}`);
    const report: unknown = JSON.parse(await readFile(file, "utf8"));
    expect(report).toMatchObject({ success: true, numPassedTests: 3, numFailedTests: 0 });
  });
});

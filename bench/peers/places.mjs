// @ts-check
// Makes the places where engines keep their data: a new database, file or server for every workload.
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import path from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import pg from "pg";
import { freePort, removeDir, serve, throwawayDir } from "../../scripts/servers/process.mjs";
import { childNamed } from "./usage.mjs";

/** @typedef {Pick<import("./engine.mjs").Place, "url" | "file" | "restate" | "cloudflare">} Where */
/** @typedef {{ where: Where, remove: () => Promise<void> }} Made */

/** @type {Where} */
const NOWHERE = { url: "", file: "", restate: undefined, cloudflare: undefined };

let made = 0;

/**
 * @param {import("./engine.mjs").Adapter["store"]} store
 * @param {string} serverUrl of PostgreSQL
 * @returns {Promise<Made>}
 */
export function makePlace(store, serverUrl) {
  if (store === "restate") return restateServer();
  if (store === "cloudflare") return workerd();
  return store === "postgres" ? database(serverUrl) : folder();
}

/**
 * @param {string} serverUrl
 * @returns {Promise<Made>}
 */
async function database(serverUrl) {
  const name = `bench_${process.pid}_${(made += 1)}`;
  await onServer(serverUrl, `CREATE DATABASE ${name}`);
  // Otherwise this database would do the writing that earlier databases left.
  await onServer(serverUrl, "CHECKPOINT");
  const url = new URL(serverUrl);
  url.pathname = `/${name}`;
  return {
    where: { ...NOWHERE, url: url.href },
    remove: () => onServer(serverUrl, `DROP DATABASE ${name} WITH (FORCE)`),
  };
}

/**
 * @param {string} url
 * @param {string} sql
 */
export async function onServer(url, sql) {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    await client.query(sql);
  } finally {
    await client.end();
  }
}

/** @returns {Promise<Made>} */
async function folder() {
  const dir = mkdtempSync(path.join(tmpdir(), "pawl-bench-"));
  return {
    where: { ...NOWHERE, file: path.join(dir, "bench.db") },
    remove: async () => rmSync(dir, { recursive: true, force: true }),
  };
}

/** @returns {Promise<Made>} */
async function restateServer() {
  const dir = throwawayDir("restate");
  const [node, ingress, admin, port] = await freePorts(4);
  const config = path.join(dir, "restate.toml");
  writeFileSync(
    config,
    `disable-telemetry = true
listen-mode = "tcp"
bind-address = "127.0.0.1:${node}"
base-dir = "${path.join(dir, "data")}"
log-disable-ansi-codes = true
[ingress]
bind-address = "127.0.0.1:${ingress}"
[admin]
bind-address = "127.0.0.1:${admin}"
disable-web-ui = true
`,
  );
  const require = createRequire(new URL("../package.json", import.meta.url));
  const home = `@restatedev/restate-server-${process.platform}-${process.arch}`;
  const program = path.join(
    path.dirname(require.resolve(`${home}/package.json`)),
    "bin",
    "restate-server",
  );
  const { pid, kill, exited } = await serve([program, "--no-logo", "--config-file", config], {
    dir,
    ready: /Restate server is ready|Partition .* started|admin/i,
    crashSignal: "SIGKILL",
  });
  const urls = { ingress: `http://127.0.0.1:${ingress}`, admin: `http://127.0.0.1:${admin}` };
  for (const url of [`${urls.admin}/health`, `${urls.ingress}/restate/health`])
    await untilHealthy(url);
  return {
    where: { ...NOWHERE, restate: { ...urls, port: port ?? 0, pid } },
    remove: async () => {
      kill("SIGKILL");
      await exited;
      removeDir(dir);
    },
  };
}

/** @returns {Promise<Made>} */
async function workerd() {
  // Miniflare is loaded only if it is asked for.
  const { openWorkerd } = await import("../workerd/index.mjs");
  const workflows = { BENCH: { name: "bench", className: "Bench" } };
  const { url, end } = await openWorkerd("peer.mjs", { workflows });
  return {
    where: { ...NOWHERE, cloudflare: { url, pid: childNamed("workerd") } },
    remove: end,
  };
}

/** @param {string} url */
async function untilHealthy(url) {
  const deadline = Date.now() + 60_000;
  while (Date.now() < deadline) {
    const response = await fetch(url).catch(() => undefined);
    if (response?.ok) return;
    await pause(50);
  }
  throw new Error(`${url}: not healthy in a minute`);
}

/** @param {number} count */
async function freePorts(count) {
  /** @type {Set<number>} */
  const ports = new Set();
  while (ports.size < count) ports.add(await freePort());
  return [...ports];
}

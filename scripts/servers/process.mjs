// @ts-check
// Child processes of the test servers: unprivileged, on free ports, never outliving this process.
import { spawn, spawnSync } from "node:child_process";
import {
  chownSync,
  closeSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readFileSync,
  rmSync,
} from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";

export const isRoot = process.getuid?.() === 0;

/** Database servers refuse to run as root. */
const [uid, gid] = isRoot ? [idOf("-u"), idOf("-g")] : [-1, -1];
const identity = isRoot ? { uid, gid } : {};

/** @param {string} flag */
function idOf(flag) {
  return Number(spawnSync("id", [flag, "nobody"], { encoding: "utf8" }).stdout);
}

/** Nothing of the caller's environment may configure a server. */
const env = { PATH: process.env["PATH"], LC_ALL: "C", TZ: process.env["TZ"] };

/** @typedef {{ pid: number, exited: Promise<string>, kill: (signal: NodeJS.Signals) => void }} Child */
/** @typedef {string[]} Command program and arguments */

/**
 * Runs a program to its end, and returns what it printed.
 * @param {Command} command
 * @param {{ input?: string, dir?: string }} [options] dir: a throwaway one, to run unprivileged in
 * @returns {Promise<string>}
 */
export async function run([program = "", ...args], { input = "", dir } = {}) {
  const child = spawn(program, args, {
    ...(dir ? { ...identity, cwd: dir, env } : {}),
    stdio: "pipe",
  });
  if (dir && child.pid) guard(`pid ${child.pid} SIGKILL`);
  let output = "";
  let errors = "";
  child.stdout.on("data", (chunk) => (output += chunk));
  child.stderr.on("data", (chunk) => (errors += chunk));
  // A program that fails may close its input first. Its exit code says so.
  child.stdin.on("error", () => {});
  child.stdin.end(input);
  const outcome = await ended(child);
  if (dir && child.pid) guard(`gone ${child.pid}`);
  if (outcome !== "code 0") {
    const shown = [program, ...args].join(" ").slice(0, 500);
    throw new Error(`${shown}: ${outcome}\n${(errors || output).slice(-2000)}`);
  }
  return output;
}

/**
 * Starts a server and waits until its log says that it is ready.
 * @param {Command} command
 * @param {{ dir: string, ready: RegExp, crashSignal: NodeJS.Signals }} options
 * @returns {Promise<Child>}
 */
export async function serve([program = "", ...args], { dir, ready, crashSignal }) {
  const logFile = path.join(dir, "log");
  const log = openSync(logFile, "w");
  const child = spawn(program, args, {
    ...identity,
    cwd: dir,
    env,
    // The server has a group of its own: Ctrl-C reaches us, and we stop it.
    detached: true,
    stdio: ["ignore", log, log],
  });
  closeSync(log);
  const { pid } = child;
  /** @type {string | undefined} */
  let outcome;
  const exited = ended(child).then((how) => {
    guard(`gone ${pid}`);
    return (outcome = how);
  });
  if (!pid) throw new Error(`${program}: ${await exited}`);
  guard(`pid ${pid} ${crashSignal}`);

  const deadline = Date.now() + 60_000;
  while (!ready.test(readFileSync(logFile, "utf8"))) {
    if (outcome || Date.now() > deadline) {
      child.kill("SIGKILL");
      const text = readFileSync(logFile, "utf8").slice(-2000);
      throw new Error(`${program}: ${outcome ?? "not ready in a minute"}\n${text}`);
    }
    await sleep(20);
  }
  return { pid, exited, kill: (signal) => void child.kill(signal) };
}

/**
 * @param {import("node:child_process").ChildProcess} child
 * @returns {Promise<string>} how it ended, never rejects
 */
function ended(child) {
  return new Promise((resolve) => {
    child.once("error", (error) => resolve(error.message));
    child.once("close", (code, signal) => resolve(signal ?? `code ${code}`));
  });
}

/**
 * @param {string} name
 * @returns {string} a new directory that belongs to the servers' user, with an empty `data/`
 */
export function throwawayDir(name) {
  const dir = mkdtempSync(path.join(tmpdir(), `pawl-${name}-`));
  guard(`dir ${dir}`);
  mkdirSync(path.join(dir, "data"), { mode: 0o700 });
  if (isRoot) for (const made of [dir, path.join(dir, "data")]) chownSync(made, uid, gid);
  return dir;
}

/** @param {string} dir */
export function removeDir(dir) {
  rmSync(dir, { recursive: true, force: true, maxRetries: 5 });
  guard(`removed ${dir}`);
}

/**
 * @param {(port: number) => Promise<void>} listen
 * @returns {Promise<number>} the port that it listens on
 */
export async function onFreePort(listen) {
  for (let attempt = 1; ; attempt++) {
    const port = await freePort();
    try {
      await listen(port);
      return port;
    } catch (error) {
      // Someone else may take the port between our look and the server's.
      const taken = error instanceof Error && /address already in use/i.test(error.message);
      if (!taken || attempt === 5) throw error;
    }
  }
}

/**
 * Returns a free port below the range the system hands out. From that range, another connection could take
 * the port while its server restarts, and a client that reconnects could even connect to itself.
 * @returns {Promise<number>}
 */
export async function freePort() {
  const port = 20_000 + Math.floor(Math.random() * 12_000);
  const server = createServer();
  const free = await new Promise((resolve) => {
    server.once("error", () => resolve(false));
    server.listen(port, "127.0.0.1", () => server.close(() => resolve(true)));
  });
  return free ? port : freePort();
}

/** @type {import("node:child_process").ChildProcess | undefined} */
let guardian;

/**
 * Tells the guardian what to clean up when this process ends, however it ends (guard.mjs).
 * @param {string} line
 */
function guard(line) {
  if (!guardian) {
    const script = fileURLToPath(new URL("guard.mjs", import.meta.url));
    guardian = spawn(process.execPath, [script], {
      detached: true,
      stdio: ["pipe", "ignore", "ignore"],
    });
    guardian.unref();
    /** @type {import("node:net").Socket} */ (guardian.stdin).unref();
  }
  guardian.stdin?.write(`${line}\n`);
}

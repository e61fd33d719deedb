// @ts-check
// Makes node_modules match the lockfile, so that one npm command works on a fresh clone.
// Runs before anything is installed: Node's own modules only.
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";

const root = path.dirname(path.dirname(fileURLToPath(import.meta.url)));
const cache = path.join(root, ".cache");
const lock = path.join(cache, "ensure.lock");
const stamp = path.join(root, "node_modules", ".pawl-ensure");

/** @param {string} file */
function read(file) {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return "";
  }
}

// The platform and the Node version count, too: the tree holds native packages chosen by both.
const wanted = createHash("sha256")
  .update(`${process.platform} ${process.arch} ${process.version}\n`)
  .update(read(path.join(root, "package-lock.json")))
  .digest("hex");

// The stamp is written last and inside node_modules, so an interrupted install leaves none.
const isFresh = () => read(stamp) === wanted;

/** @param {number} pid */
function isAlive(pid) {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return /** @type {NodeJS.ErrnoException} */ (error).code === "EPERM";
  }
}

/** @param {string} dir */
const ownerOf = (dir) => Number(read(path.join(dir, "pid")));

/** Takes the lock directory. It appears under its name with the owner's pid already inside. */
function tryLock() {
  const mine = mkdtempSync(path.join(cache, "ensure-"));
  writeFileSync(path.join(mine, "pid"), String(process.pid));
  try {
    renameSync(mine, lock);
    return true;
  } catch {
    rmSync(mine, { recursive: true });
    return false;
  }
}

/** Removes the lock of a killed process, and only that one, because a second remover may be at work. */
function breakStaleLock() {
  const owner = ownerOf(lock);
  if (!owner || isAlive(owner)) return;
  const taken = `${lock}.${process.pid}`;
  try {
    renameSync(lock, taken);
  } catch {
    return;
  }
  if (ownerOf(taken) === owner) rmSync(taken, { recursive: true });
  else renameSync(taken, lock);
}

function install() {
  const npm = process.env["npm_execpath"];
  // No install script is needed by anything here, and skipping them keeps the install safe and quick.
  const args = ["ci", "--ignore-scripts", "--no-audit", "--no-fund"];
  console.log("Installing dependencies (npm ci)");
  const { status, error } = npm
    ? spawnSync(process.execPath, [npm, ...args], { cwd: root, stdio: "inherit" })
    : spawnSync("npm", args, { cwd: root, stdio: "inherit", shell: process.platform === "win32" });
  if (error) throw error;
  if (status !== 0) process.exit(status ?? 1);
  writeFileSync(stamp, wanted);
}

if (!isFresh()) {
  mkdirSync(cache, { recursive: true });
  while (!tryLock()) {
    breakStaleLock();
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 100);
  }
  process.once("exit", () => rmSync(lock, { recursive: true, force: true }));
  if (!isFresh()) install();
}

// @ts-check
// Keeps downloaded servers between runs.
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
} from "node:fs";
import { homedir } from "node:os";
import path from "node:path";
import { isRoot } from "./process.mjs";

const HOUR_MS = 3_600_000;

export function cacheDir() {
  const { PAWL_CACHE_DIR, XDG_CACHE_HOME } = process.env;
  if (PAWL_CACHE_DIR) return path.resolve(PAWL_CACHE_DIR);
  // Root's home is closed to the unprivileged user that the servers run as.
  if (isRoot) return "/var/cache/pawl";
  return path.join(XDG_CACHE_HOME ?? path.join(homedir(), ".cache"), "pawl");
}

/**
 * Returns the cached directory of that name; `fill` makes it when it is missing. Several processes may
 * do so at once: each fills its own directory, and the first to rename it wins.
 * @param {string} name
 * @param {(dir: string) => Promise<void>} fill
 */
export async function cached(name, fill) {
  const dir = path.join(cacheDir(), name);
  if (existsSync(dir)) return dir;
  mkdirSync(cacheDir(), { recursive: true, mode: 0o755 });
  sweep();
  const unfinished = mkdtempSync(path.join(cacheDir(), "unfinished-"));
  try {
    await fill(unfinished);
    // mkdtemp makes it private, but the servers' user must read it.
    chmodSync(unfinished, 0o755);
    renameSync(unfinished, dir);
  } catch (error) {
    rmSync(unfinished, { recursive: true, force: true });
    if (!existsSync(dir)) throw error;
  }
  return dir;
}

/** Removes what killed processes left. */
function sweep() {
  for (const entry of readdirSync(cacheDir())) {
    const dir = path.join(cacheDir(), entry);
    if (entry.startsWith("unfinished-") && Date.now() - statSync(dir).mtimeMs > HOUR_MS) {
      rmSync(dir, { recursive: true, force: true });
    }
  }
}

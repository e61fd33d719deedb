// @ts-check
import { spawnSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, readdirSync, rmSync, symlinkSync } from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));

/**
 * Builds the packages of another commit in a folder of its own, with the dependencies and the benchmarks of this one: only
 * the code that is measured differs.
 * @param {string} given
 * @returns {{ commit: string, worker: string }}
 */
export function buildOf(given) {
  const commit = run(ROOT, "git", "rev-parse", "--short=7", `${given}^{commit}`).trim();
  const folder = path.join(ROOT, ".cache", "against", commit);
  if (!existsSync(path.join(folder, "packages", "pawl", "dist", "index.js"))) {
    console.error(`Building ${commit}`);
    rmSync(folder, { recursive: true, force: true });
    mkdirSync(folder, { recursive: true });
    const archive = path.join(folder, "commit.tar");
    run(ROOT, "git", "archive", "--output", archive, commit);
    run(folder, "tar", "-xf", archive);
    linkDependencies(folder);
    for (const name of ["pawl", "dispatcher-node"]) {
      const project = path.join("packages", name, "tsconfig.src.json");
      run(folder, process.execPath, "node_modules/typescript/bin/tsc", "-b", project);
    }
  }
  for (const name of ["bench", "scripts"]) {
    rmSync(path.join(folder, name), { recursive: true, force: true });
    const filter = (/** @type {string} */ file) => !file.includes("node_modules");
    cpSync(path.join(ROOT, name), path.join(folder, name), { recursive: true, filter });
  }
  return { commit, worker: path.join(folder, "bench", "peers", "worker.mjs") };
}

/**
 * Links all installed packages but the repository's own, which are the folder's.
 * @param {string} folder
 */
function linkDependencies(folder) {
  const modules = path.join(folder, "node_modules");
  mkdirSync(path.join(modules, "@pawl"), { recursive: true });
  const installed = path.join(ROOT, "node_modules");
  for (const name of readdirSync(installed)) {
    if (name === "pawl" || name === "@pawl" || name.startsWith(".")) continue;
    symlinkSync(path.join(installed, name), path.join(modules, name));
  }
  const packages = path.join(folder, "packages");
  symlinkSync(path.join(packages, "pawl"), path.join(modules, "pawl"));
  for (const name of readdirSync(packages)) {
    if (name !== "pawl") symlinkSync(path.join(packages, name), path.join(modules, "@pawl", name));
  }
}

/**
 * @param {string} cwd
 * @param {string} command
 * @param {...string} args
 */
function run(cwd, command, ...args) {
  const { status, stdout, stderr } = spawnSync(command, args, { cwd, encoding: "utf8" });
  if (status !== 0) throw new Error(`${command} ${args.join(" ")}: ${stderr || stdout}`);
  return stdout;
}

import { execFile } from "node:child_process";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import type { Scope } from "./scope.js";

const packages = fileURLToPath(new URL("../../../", import.meta.url));
const root = path.dirname(path.resolve(packages));
const run = promisify(execFile);

export function tsc(...args: readonly string[]): Promise<unknown> {
  return run(process.execPath, [path.join(root, "node_modules/typescript/bin/tsc"), ...args]);
}

/**
 * Compiles a program for a process of its own, which has none of the test runner's transforms, and returns
 * its file. `entry` is a path inside packages/. Modules that it imports by a path are compiled with it.
 */
export async function compiled(scope: Scope, entry: string): Promise<string> {
  const cache = path.join(root, ".cache");
  await mkdir(cache, { recursive: true });
  // The folder is inside the repository, so that packages and drivers are found.
  const folder = await mkdtemp(path.join(cache, "process-"));
  scope.defer(() => rm(folder, { recursive: true }));
  const config = {
    extends: path.join(root, "tsconfig.base.json"),
    compilerOptions: {
      types: ["node"],
      composite: false,
      sourceMap: false,
      noCheck: true, // `npm run check` checks the types
      customConditions: [],
      rootDir: packages,
      outDir: folder,
    },
    files: [path.join(packages, entry)],
  };
  await writeFile(path.join(folder, "tsconfig.json"), JSON.stringify(config));
  await tsc("-p", folder);
  return path.join(folder, entry.replace(/\.ts$/, ".js"));
}

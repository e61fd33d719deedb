import { execFile } from "node:child_process";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import type { Scope } from "../../../pawl/test/support/scope.js";

const packages = fileURLToPath(new URL("../../../", import.meta.url));
const tsc = path.join(packages, "../node_modules/typescript/bin/tsc");
const run = promisify(execFile);

/** Builds the packages, and compiles a program against them; answers its file. `entry` is a path inside packages/. */
export async function compileProcess(scope: Scope, entry: string): Promise<string> {
  const build = path.join(packages, "dispatcher-node/tsconfig.src.json");
  await run(process.execPath, [tsc, "-b", build]);
  const cache = path.join(packages, "../.cache");
  await mkdir(cache, { recursive: true });
  // Inside the repository, to find the packages.
  const folder = await mkdtemp(path.join(cache, "process-"));
  scope.defer(() => rm(folder, { recursive: true }));
  const config = {
    extends: path.join(packages, "../tsconfig.base.json"),
    compilerOptions: {
      types: ["node"],
      composite: false,
      sourceMap: false,
      noCheck: true, // that is `npm run check`'s
      customConditions: [],
      rootDir: packages,
      outDir: folder,
    },
    files: [path.join(packages, entry)],
  };
  await writeFile(path.join(folder, "tsconfig.json"), JSON.stringify(config));
  await run(process.execPath, [tsc, "-p", folder]);
  return path.join(folder, entry.replace(/\.ts$/, ".js"));
}

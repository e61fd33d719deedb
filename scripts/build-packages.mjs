// @ts-check
// This is vitest's global setup of the `stores` project. The tests of the `pawl` command and of wrangler run
// what users run, the built packages.
import { execFile } from "node:child_process";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

const root = path.dirname(path.dirname(fileURLToPath(import.meta.url)));

export default async function build() {
  const tsc = path.join(root, "node_modules", "typescript", "bin", "tsc");
  const projects = ["cli", "dispatcher-cloudflare-do"].map((name) =>
    path.join(root, "packages", name, "tsconfig.src.json"),
  );
  await promisify(execFile)(process.execPath, [tsc, "-b", ...projects], { cwd: root });
}

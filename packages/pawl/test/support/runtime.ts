import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

const finder = fileURLToPath(new URL("../../../../scripts/servers/runtime.mjs", import.meta.url));

/** Returns the program of another runtime, or of another Node. It is fetched once. */
export async function runtime(name: "node" | "bun" | "deno", version: string): Promise<string> {
  const { stdout } = await promisify(execFile)(process.execPath, [finder, name, version]);
  return stdout.trim();
}

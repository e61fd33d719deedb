import { spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import type { Scope } from "./scope.js";

const script = fileURLToPath(new URL("../../../../scripts/servers/pgbouncer.mjs", import.meta.url));

/** Starts a pgbouncer in transaction mode before this server, and returns its URL. */
export async function bouncer(scope: Scope, server: string, ignored: string): Promise<string> {
  const child = spawn(process.execPath, [script, server, ignored], {
    stdio: ["pipe", "pipe", "pipe"],
  });
  let errors = "";
  child.stderr.on("data", (chunk) => (errors += String(chunk)));
  const exited = once(child, "exit");
  scope.defer(async () => {
    child.stdin.end();
    await exited;
  });
  const [line] = (await Promise.race([
    once(child.stdout, "data"),
    exited.then(() => Promise.reject(new Error(errors))),
  ])) as [Buffer];
  return line.toString().trim();
}

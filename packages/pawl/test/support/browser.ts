import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { chromium, type Browser } from "playwright-core";
import type { Scope } from "./scope.js";

const find = fileURLToPath(new URL("../../../../scripts/servers/chromium.mjs", import.meta.url));

/**
 * Starts a real Chromium, found or fetched. No test runs without it. It takes 5 s to fetch, once, and 0.3 s
 * to start.
 */
export async function browser(scope: Scope): Promise<Browser> {
  const { stdout } = await promisify(execFile)(process.execPath, [find]);
  const started = await chromium.launch({ executablePath: stdout.trim() });
  scope.defer(() => started.close());
  return started;
}

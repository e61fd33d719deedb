// @ts-check
import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";

/**
 * Ends the process if one of these options is not a whole number from 1.
 *
 * @param {Readonly<Record<string, string>>} options
 */
export function needWholeNumbers(options) {
  for (const [name, value] of Object.entries(options)) {
    if (/^[1-9]\d*$/.test(value)) continue;
    console.error(`--${name} must be a whole number from 1, got ${value}`);
    process.exit(2);
  }
}

/**
 * Runs some of the tests, and ends as they do.
 *
 * @param {string} project
 * @param {string} file
 * @param {Readonly<Record<string, string>>} env
 */
export function runTests(project, file, env) {
  const vitest = fileURLToPath(new URL("../node_modules/vitest/vitest.mjs", import.meta.url));
  const { status } = spawnSync(process.execPath, [vitest, "run", "--project", project, file], {
    stdio: "inherit",
    env: { ...process.env, ...env },
  });
  process.exit(status ?? 1);
}

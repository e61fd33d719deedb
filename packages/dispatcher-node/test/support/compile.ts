import { fileURLToPath } from "node:url";
import { compiled, tsc } from "../../../pawl/test/support/compile.js";
import type { Scope } from "../../../pawl/test/support/scope.js";

/**
 * Builds the packages, compiles a program against them, and returns its file. `entry` is a path inside
 * packages/.
 */
export async function compileProcess(scope: Scope, entry: string): Promise<string> {
  await tsc("-b", fileURLToPath(new URL("../../tsconfig.src.json", import.meta.url)));
  return compiled(scope, entry);
}

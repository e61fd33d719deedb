import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import type { Scope } from "./scope.js";

/** Makes an empty folder, which goes with its scope. */
export function temporaryFolder(scope: Scope): string {
  const folder = mkdtempSync(path.join(tmpdir(), "pawl-"));
  scope.defer(() => rmSync(folder, { recursive: true }));
  return folder;
}

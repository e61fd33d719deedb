import { createRequire } from "node:module";
import type { SqliteHandle } from "pawl/sqlite";

export type OpenSqliteOptions = {
  /**
   * How durable a commit is. `"full"` (default) survives a power cut. `"normal"` is about ten times faster for single
   * commits; a power cut may lose the last moments, but leaves the database consistent.
   */
  readonly synchronous?: "full" | "normal";
};

/** How long a user's own statement waits for another writer. */
const BUSY_TIMEOUT_MS = 5_000;

/**
 * Opens a SQLite file, or `:memory:`, with the settings that Pawl wants: WAL, a sync at every commit, and 5 seconds of
 * patience with other writers. It uses Node's own SQLite where there is one, and else `@photostructure/sqlite`, its
 * drop-in for Node 20. Throws if there is neither.
 */
export function openSqlite(path: string, options: OpenSqliteOptions = {}): SqliteHandle {
  const Database = databaseClass();
  const handle = new Database(path);
  handle.exec(`PRAGMA busy_timeout = ${BUSY_TIMEOUT_MS}`);
  handle.exec("PRAGMA journal_mode = WAL");
  handle.exec(`PRAGMA synchronous = ${options.synchronous ?? "full"}`);
  return handle;
}

type DatabaseModule = { readonly DatabaseSync: new (path: string) => SqliteHandle };

function databaseClass(): DatabaseModule["DatabaseSync"] {
  const builtin = process.getBuiltinModule("node:sqlite" as "node:fs") as unknown;
  if (builtin !== undefined) return (builtin as DatabaseModule).DatabaseSync;
  const require = createRequire(import.meta.url);
  try {
    return (require("@photostructure/sqlite") as DatabaseModule).DatabaseSync;
  } catch (error) {
    throw new Error(
      "this Node has no SQLite: use Node 22.5 or later, or `npm install @photostructure/sqlite@1`",
      { cause: error },
    );
  }
}

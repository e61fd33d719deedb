import type { SqliteHandle } from "../sqlite.js";

type OpenClass = new (file: string) => SqliteHandle;

/** The modules that may have SQLite, the best one first, and the name of the class in each. */
const drivers = [
  { module: "node:sqlite", member: "DatabaseSync" },
  { module: "@photostructure/sqlite", member: "DatabaseSync" },
  { module: "better-sqlite3", member: "default" },
];

/** Opens a database in memory with the first driver that the program has. Throws if it has none. */
export async function openMemorySqlite(
  load: (module: string) => Promise<unknown> = (module) => import(/* @vite-ignore */ module),
): Promise<SqliteHandle> {
  const causes: unknown[] = [];
  for (const { module, member } of drivers) {
    try {
      const Database = ((await load(module)) as Record<string, unknown>)[member];
      if (typeof Database === "function") return new (Database as OpenClass)(":memory:");
    } catch (error) {
      causes.push(error);
    }
  }
  throw new Error(
    "createHarness() found no SQLite for its store in memory: use Node 22.5 or later, " +
      "or `npm install --save-dev @photostructure/sqlite` (or better-sqlite3), or give it a `store`",
    { cause: new AggregateError(causes) },
  );
}

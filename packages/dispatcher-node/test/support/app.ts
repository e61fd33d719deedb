/*
 * An application process, as a user would write one, driven by signals and files (apps.ts). Compiled for each run of the
 * tests: a process of its own has none of the test runner's transforms.
 */
import { appendFileSync, existsSync } from "node:fs";
import { join } from "node:path";
import { drainOnSignals, openSqlite, startRunner } from "@pawl/dispatcher-node";
import { createWorkflows, type Store } from "pawl";
import { workflow } from "./work.js";

export type AppPlace = {
  readonly kind: "sqlite" | "postgres" | "mariadb" | "mysql";
  /** A URL, or the path of a SQLite file. */
  readonly at: string;
  /** The schema or the database. */
  readonly name: string;
};

export type AppOptions = {
  readonly place: AppPlace;
  /** Where its bodies leave their traces, and look whether they may go on. */
  readonly folder: string;
  readonly leaseMs: number;
  readonly drainMs: number;
  readonly pollMs: number;
};

async function open({ kind, at, name }: AppPlace): Promise<Store> {
  if (kind === "sqlite") {
    const { sqliteStore } = await import("pawl/sqlite");
    return sqliteStore(openSqlite(at));
  }
  if (kind === "postgres") {
    const { default: pg } = await import("pg");
    const { postgresStore } = await import("pawl/postgres");
    return postgresStore(new pg.Pool({ connectionString: at }), { schema: name });
  }
  const { default: mysql } = await import("mysql2/promise");
  const { mysqlStore } = await import("pawl/mysql");
  return mysqlStore(mysql.createPool({ uri: at, database: name }));
}

const { place, folder, leaseMs, drainMs, pollMs } = JSON.parse(process.argv[2] ?? "") as AppOptions;
const WORK = workflow(
  (line) => appendFileSync(join(folder, "ledger"), `${JSON.stringify(line)}\n`),
  (gate) => existsSync(join(folder, gate)),
);
const logger = { debug() {}, info: log, warn: log, error: log };
const pawl = createWorkflows({ workflows: { WORK }, store: await open(place), logger });
const poll = { minMs: pollMs, maxMs: pollMs };
const runner = startRunner(pawl, { leaseMs, poll });
drainOnSignals([runner], { timeoutMs: drainMs });
process.on("disconnect", () => process.exit(99));
process.send?.("ready");

function log(event: string, fields?: object): void {
  process.send?.({ event, ...fields });
}

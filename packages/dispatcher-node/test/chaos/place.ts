import path from "node:path";
import { openSqlite } from "@pawl/dispatcher-node";
import { sqliteStore } from "pawl/sqlite";
import type { Snapshot } from "../../../pawl/test/sim/checker.js";
import { database, type Row, type Session } from "../../../pawl/test/support/database.js";
import { temporaryFolder } from "../../../pawl/test/support/folder.js";
import { proxy } from "../../../pawl/test/support/proxy.js";
import type { Scope } from "../../../pawl/test/support/scope.js";
import { privateServer, type Kind } from "../../../pawl/test/support/servers.js";
import type { StorePlace } from "../support/open-store.js";

/** The place where the processes meet: a database, what can happen to it, and a look at its rows. */
export type Place = {
  readonly store: StorePlace;
  /** Things that can happen to a server and the lines to it, by what they are called in the report. */
  readonly accidents: Readonly<Record<string, (dice: { upTo(max: number): number }) => unknown>>;
  /** Returns all rows at one moment. */
  snapshot(): Promise<Snapshot & { readonly eventIds: readonly string[] }>;
};

const tables = {
  instances: "SELECT iid, id, run_no, status, params, output, error FROM %instance",
  tickets:
    "SELECT tid, run_no, state, owner, due_at, wait_mask, claim_no, pause_requested FROM %ticket",
  steps: `SELECT iid, run_no, ord, name, type, status, seq, attempts, claim_no, started_at, ended_at, wake_at, wait_key,
    result, error FROM %step ORDER BY iid, run_no, ord`,
  events: "SELECT iid, run_no, number, type, created_at, consumed_by, event_id FROM %event",
  runners: "SELECT id, dead FROM %runner",
} as const;
const NUMBERS = new Set(
  "run_no due_at wait_mask claim_no pause_requested ord seq attempts started_at ended_at wake_at number created_at consumed_by dead".split(
    " ",
  ),
);

export async function somewhere(scope: Scope, kind: Kind | "sqlite"): Promise<Place> {
  return kind === "sqlite" ? sqliteFile(scope) : onServer(scope, kind);
}

async function sqliteFile(scope: Scope): Promise<Place> {
  const at = path.join(temporaryFolder(scope), "chaos.db");
  const handle = openSqlite(at);
  scope.defer(() => handle.close());
  await sqliteStore(handle).migrate();
  return {
    store: { kind: "sqlite", at, name: "" },
    accidents: {},
    snapshot: async () => {
      handle.exec("BEGIN");
      try {
        return await readAll((sql) => handle.prepare(sql).all() as Row[], "pawl_");
      } finally {
        handle.exec("COMMIT");
      }
    },
  };
}

async function onServer(scope: Scope, kind: Kind): Promise<Place> {
  const server = await privateServer(scope, kind);
  const db = await database(scope, kind, { url: server.url });
  await db.store().migrate();
  const line = await proxy(scope, kind, server.url);
  const withSession = async <T>(use: (session: Session) => Promise<T>): Promise<T> => {
    const session = await db.session();
    try {
      return await use(session);
    } finally {
      await session.close();
    }
  };
  return {
    store: { kind, at: line.url, name: db.name },
    accidents: {
      "server restarts": () => server.restart(),
      "replies lost": (dice) => line.cut("reply", 1 + dice.upTo(60)),
      "requests lost": (dice) => line.cut("request", 1 + dice.upTo(60)),
      "backends killed": () => withSession((session) => killBackends(kind, session)),
    },
    snapshot: () =>
      withSession(async (session) => {
        const begin =
          kind === "postgres"
            ? "BEGIN ISOLATION LEVEL REPEATABLE READ"
            : "START TRANSACTION WITH CONSISTENT SNAPSHOT";
        await session.query(begin);
        const prefix = kind === "postgres" ? `${db.name}.` : `${db.name}.pawl_`;
        return readAll((sql) => session.query(sql), prefix);
      }),
  };
}

async function killBackends(kind: Kind, session: Session): Promise<void> {
  if (kind === "postgres") {
    await session.query(
      `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
       WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'`,
    );
    return;
  }
  const rows = await session.query("SHOW PROCESSLIST");
  for (const { Id, User } of rows as { Id: number; User: string }[]) {
    if (Id !== session.id && User === "pawl") await session.query(`KILL ${Id}`).catch(() => {});
  }
}

async function readAll(
  query: (sql: string) => Row[] | Promise<Row[]>,
  prefix: string,
): ReturnType<Place["snapshot"]> {
  const read = async (table: keyof typeof tables): Promise<Row[]> =>
    (await query(tables[table].replace("%", prefix))).map(plain);
  const events = await read("events");
  const inbox = await query(`SELECT event_id FROM ${prefix}inbox`);
  return {
    instances: (await read("instances")) as unknown as Snapshot["instances"],
    tickets: (await read("tickets")) as unknown as Snapshot["tickets"],
    steps: (await read("steps")) as unknown as Snapshot["steps"],
    events: events as unknown as Snapshot["events"],
    runners: (await read("runners")) as unknown as Snapshot["runners"],
    eventIds: [...events, ...inbox.map(plain)].map(({ event_id }) => String(event_id)),
  };
}

/** Drivers give bytes for binary columns and text for long integers. */
function plain(row: Row): Row {
  return Object.fromEntries(
    Object.entries(row).map(([column, value]) => {
      if (value === null) return [column, null];
      if (NUMBERS.has(column)) return [column, Number(value)];
      return [column, Buffer.isBuffer(value) ? value.toString("utf8") : value];
    }),
  );
}

import { WorkflowError } from "../../model/errors.js";
import type { Clock } from "../../model/seams.js";
import type { Dialect } from "../dialect.js";
import type { Driver } from "../driver.js";
import { tables } from "../schema.js";
import type { Call, Row, Script } from "../statement.js";
import { EngineConnections, type Connection } from "./engine-connections.js";

/** The members used of a `pg` Pool. */
export interface PgPool {
  readonly options: object;
  on(event: "error", listener: (error: Error) => void): unknown;
}

/** A `pg` client inside a transaction. A client has `escapeLiteral` and a pool has not. */
export interface PgTransaction {
  query(query: { text: string; values?: unknown[] }): Promise<{ rows: unknown[] }>;
  escapeLiteral(text: string): string;
}

interface PgQueryable {
  query(query: PgQuery): Promise<{ rows: unknown[] }>;
}

interface PgClient extends PgQueryable {
  connect(): Promise<unknown>;
  end(): Promise<unknown>;
  on(event: "error" | "end", listener: () => void): unknown;
  on(event: "notification", listener: (message: PgNotification) => void): unknown;
}

type PgNotification = { readonly payload?: string | undefined };

type PgQuery = {
  readonly name?: string;
  readonly text: string;
  readonly values?: readonly unknown[];
  readonly query_timeout?: number;
};

/**
 * The engine waits only for its own short transactions. A lock that is held longer is one that it must not wait for.
 */
const LOCK_TIMEOUT_MS = 500;

/**
 * A server that says nothing counts as away: a lost packet must not hold a connection for ever. The user's limits win.
 */
const CONNECT_TIMEOUT_MS = 5_000;
const QUERY_TIMEOUT_MS = 30_000;
const MIGRATION_TIMEOUT_MS = 3_600_000;

/**
 * Plans are made once for each connection and kept. A plan made while a table was empty turned a commit into 64 s at a
 * million rows, so everything but an index lookup is switched off by `settings`.
 *
 * These settings are not enough. In a table that was analysed while it was empty every index costs the same, and the
 * plan may walk along the wrong one. New statistics make the server plan anew by itself; apart from them, a plan
 * depends on how large the tables are. So a connection looks at their sizes once a second, and forgets its plans when a
 * table has passed a power of eight. (When plans were forgotten every second, they took 3 ms of each event that came
 * after a pause.)
 *
 * The connection reads the server's counters and not the sizes of files, which cannot be read of a table that another
 * session has locked.
 */
const LOOK_AT_SIZES_MS = 1_000;
const SIZES = "SELECT pg_stat_get_live_tuples(to_regclass(t)) AS rows FROM unnest($1::text[]) AS t";

const settings = {
  plan_cache_mode: "force_generic_plan",
  enable_seqscan: "off",
  enable_bitmapscan: "off",
  enable_indexonlyscan: "off",
  enable_hashjoin: "off",
  enable_mergejoin: "off",
  enable_material: "off",
  jit: "off",
  default_transaction_isolation: "read\\ committed",
  lock_timeout: `${LOCK_TIMEOUT_MS}ms`,
};
export const startupOptions = Object.entries(settings)
  .map(([name, value]) => `-c ${name}=${value}`)
  .join(" ");

const BEGIN_BEHIND_A_POOLER = `BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL lock_timeout = ${LOCK_TIMEOUT_MS}`;

export type PgConnection = Connection & {
  readonly client: PgClient;
  /** False behind a pooler, where neither settings nor prepared statements stay with this connection. */
  readonly direct: boolean;
  /** The time of the last look, by the process's clock. */
  lookedAtSizes: number;
  /** The sizes that its plans were made for; empty before the first look, which comes before the first plan. */
  sizes: string;
  plansAreOld: boolean;
  readonly rehearsed: Set<Call>;
};

/**
 * The engine's own connections, opened with the pool's options, so that its settings and prepared statements stay out
 * of the user's sessions. Behind a pooler such as pgbouncer the settings are refused or ignored. Statements then go out
 * unprepared, planned for the tables as they are, in transactions that name their isolation.
 */
export function postgresDriver(
  pool: PgPool,
  connections: number,
  dialect: Dialect,
  clock: Clock,
): Driver<PgTransaction> {
  surviveIdleErrors(pool);
  const names = (Object.keys(tables) as (keyof typeof tables)[]).map((name) => dialect.table(name));
  const owned = new EngineConnections<PgConnection>(connections, () => connect(pool));
  return {
    run: (by, verb, args) =>
      owned.use(by, async (connection) => {
        const { client, direct } = connection;
        const send = (call: Call): Promise<Row[]> => execute(client, call, direct);
        // Behind a pooler too each statement stands alone: a script may go on after one that failed.
        const sendAlone = direct
          ? send
          : (call: Call) => inTransaction(connection, () => send(call));
        try {
          if (direct) forgetOldPlans(connection, names, clock.now());
          const result = verb.transaction
            ? await inTransaction(connection, () => drive(send, verb.script(...args)))
            : await drive(sendAlone, verb.script(...args));
          if (direct) rehearse(connection, verb.rehearsal ?? []);
          return result;
        } catch (error) {
          if (dialect.classify(error) === "disconnected") connection.broken = true;
          throw error;
        }
      }),
    within: async (tx, verb, args) => {
      if (typeof tx?.query !== "function" || typeof tx.escapeLiteral !== "function") {
        throw new WorkflowError(
          "INVALID_REQUEST",
          "tx must be a pg client with an open transaction, not a pool",
        );
      }
      return drive((call) => execute(tx, call, false), verb.script(...args));
    },
    close: async () => owned.close(),
  };
}

/** Nothing is awaited: the look travels with the next statement, and its consequence with the one after that. */
function forgetOldPlans(connection: PgConnection, names: readonly string[], now: number): void {
  const { client } = connection;
  if (connection.plansAreOld) client.query({ text: "DISCARD PLANS" }).catch(() => {});
  connection.plansAreOld = false;
  if (Math.abs(now - connection.lookedAtSizes) < LOOK_AT_SIZES_MS) return;
  connection.lookedAtSizes = now;
  const looked = client.query({ name: "pawl.sizes", text: SIZES, values: [names] });
  looked.then(
    ({ rows }) => {
      const sizes = (rows as { rows: unknown }[]).map((table) => magnitude(Number(table.rows)));
      connection.plansAreOld = connection.sizes !== "" && connection.sizes !== sizes.join();
      connection.sizes = sizes.join();
    },
    () => {},
  );
}

/**
 * Makes plans ahead, once for each connection, without waiting for them: the plans of a load and a commit are 3 ms of
 * the first run that a process goes on with. If a plan cannot be made because a table is locked, the driver believes
 * all the same that its statement is prepared, so the connection is given up.
 */
function rehearse(connection: PgConnection, calls: readonly Call[]): void {
  for (const call of calls) {
    if (connection.rehearsed.has(call)) continue;
    connection.rehearsed.add(call);
    execute(connection.client, call, true).catch(() => void (connection.broken = true));
  }
}

const magnitude = (rows: number): number => Math.ceil(Math.log2(rows + 1) / 3);

const surviving = new WeakSet<PgPool>();

/** Without a listener, an idle client of the user's pool that loses its server would end the process. */
function surviveIdleErrors(pool: PgPool): void {
  if (surviving.has(pool)) return;
  surviving.add(pool);
  pool.on("error", () => {});
}

export async function connect(pool: PgPool, onLost = (): void => {}): Promise<PgConnection> {
  try {
    const connection = await open(pool, startupOptions, onLost);
    const { rows } = await connection.client.query({ text: "SHOW enable_seqscan" });
    const [row] = rows as { enable_seqscan: string }[];
    return Object.assign(connection, { direct: row?.enable_seqscan === "off" });
  } catch (error) {
    if (!refusesStartupOptions(error)) throw error;
    return open(pool, undefined, onLost);
  }
}

/** A pooler answers a startup parameter that it does not know with a protocol violation. */
function refusesStartupOptions(error: unknown): boolean {
  return error instanceof Error && "code" in error && error.code === "08P01";
}

async function open(
  pool: PgPool,
  options: string | undefined,
  onLost: () => void,
): Promise<PgConnection> {
  const given = pool.options as {
    connectionString?: string;
    options?: string;
    password?: unknown;
    connectionTimeoutMillis?: number;
    query_timeout?: number;
  };
  const { Client } = pool as unknown as { Client: new (config: object) => PgClient };
  const url = withoutOptions(given.connectionString);
  const client = new Client({
    ...given,
    ...(url === undefined ? {} : { connectionString: url.rest }),
    password: given.password, // not enumerable in pg
    options:
      [url?.options ?? given.options, options].filter((part) => part !== undefined).join(" ") ||
      undefined,
    connectionTimeoutMillis: given.connectionTimeoutMillis || CONNECT_TIMEOUT_MS,
    query_timeout: given.query_timeout || QUERY_TIMEOUT_MS,
    pipeline: true,
  });
  const connection = {
    client,
    direct: false,
    lookedAtSizes: 0,
    sizes: "",
    plansAreOld: false,
    rehearsed: new Set<Call>(),
    broken: false,
    close: () => void client.end().catch(() => {}),
  };
  const lost = (): void => {
    connection.broken = true;
    onLost();
  };
  client.on("error", lost);
  client.on("end", lost);
  await client.connect();
  return connection;
}

/** Options in a URL would replace the engine's instead of joining them, so they are taken out of it. */
function withoutOptions(url: string | undefined): { rest: string; options: string } | undefined {
  const found = /([?&])options=([^&#]*)/.exec(url ?? "");
  if (url === undefined || found === null) return undefined;
  const [whole, separator = "", options = ""] = found;
  return {
    rest: url.replace(whole, separator),
    options: decodeURIComponent(options.replaceAll("+", " ")),
  };
}

async function drive<T>(send: (call: Call) => Promise<Row[]>, script: Script<T>): Promise<T> {
  let step = script.next();
  while (step.done !== true) {
    let rows: Row[];
    try {
      rows = await send(step.value);
    } catch (error) {
      step = script.throw(error);
      continue;
    }
    step = script.next(rows);
  }
  return step.value;
}

async function execute(
  client: PgQueryable,
  { statement, executions }: Call,
  prepared: boolean,
): Promise<Row[]> {
  const [values = []] = executions;
  const query: PgQuery = { text: statement.text, values };
  const { rows } = await client.query(
    statement.name === null
      ? { ...query, query_timeout: MIGRATION_TIMEOUT_MS }
      : prepared
        ? { ...query, name: `pawl.${statement.name}` }
        : query,
  );
  return rows as Row[];
}

async function inTransaction<T>(connection: PgConnection, work: () => Promise<T>): Promise<T> {
  const { client, direct } = connection;
  // BEGIN is not awaited: it travels with the first statement, whose own failure is the one to report.
  client.query({ text: direct ? "BEGIN" : BEGIN_BEHIND_A_POOLER }).catch(() => {});
  try {
    const result = await work();
    await client.query({ text: "COMMIT" });
    return result;
  } catch (error) {
    await client.query({ text: "ROLLBACK" }).catch(() => void (connection.broken = true));
    throw error;
  }
}

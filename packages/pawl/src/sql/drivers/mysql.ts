import { ValidationError, WorkflowError } from "../../model/errors.js";
import { mysqlLiteral } from "../dialects/mysql.js";
import type { Driver } from "../driver.js";
import type { Call, Row, Script } from "../statement.js";
import { EngineConnections, type Connection } from "./engine-connections.js";

/** A `mysql2` pool: one for callbacks has `promise()`, one for promises is used as it is. */
export type MysqlPool = MysqlPromisePool | { promise(): MysqlPromisePool };

interface MysqlPromisePool {
  getConnection(): Promise<{ destroy(): void }>;
}

/** A `mysql2` connection inside a transaction. A connection has `beginTransaction` and a pool has not. */
export interface MysqlTransaction {
  beginTransaction(...args: never): unknown;
}

interface MysqlQueryable {
  query(options: MysqlQuery): Promise<[unknown, ...unknown[]]>;
  execute(options: MysqlQuery): Promise<[unknown, ...unknown[]]>;
}

type MysqlQuery = {
  readonly sql: string;
  readonly values?: readonly unknown[] | null;
  readonly namedPlaceholders?: boolean;
  /** In milliseconds; 0 is none. */
  readonly timeout?: number;
  readonly rowsAsArray?: boolean;
  readonly nestTables?: boolean;
  readonly typeCast?: boolean;
};

/** Options that a pool may have set differently for all of its connections. */
const plainRows = { rowsAsArray: false, nestTables: false, typeCast: true };

/** The driver does not search the text for places of values, which takes it 1 ms in a commit of 200 steps. */
const wholeText = { ...plainRows, values: null, namedPlaceholders: false };

/** A server that says nothing counts as away: a lost packet must not hold a connection for ever. */
const QUERY_TIMEOUT_MS = 30_000;

interface MysqlPoolConnection extends MysqlQueryable {
  destroy(): void;
  on(event: "error" | "end", listener: () => void): unknown;
}

/**
 * The settings of a session. READ COMMITTED, since at the default REPEATABLE READ a queue deadlocks thousands of times
 * a minute on gap locks, and correctness rests on fencing anyway. The user's sql_mode must not change the meaning of
 * the engine's texts.
 */
const session = [
  "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED",
  "SET SESSION innodb_lock_wait_timeout = 1",
  "SET SESSION sql_mode = 'STRICT_TRANS_TABLES,NO_ENGINE_SUBSTITUTION'",
  "SET NAMES utf8mb4",
  "SET SESSION autocommit = 0",
];

type MysqlConnection = Connection & {
  readonly connection: MysqlQueryable;
  /** While it is off, a transaction begins by itself, which saves a commit of steps the round trip of its BEGIN. */
  autocommit: boolean;
};

/** The engine takes a few connections out of the user's pool and keeps them: they never go back with its settings. */
export function mysqlDriver(
  pool: MysqlPool,
  connections: number,
  isDisconnect: (error: unknown) => boolean,
  timeout = QUERY_TIMEOUT_MS,
): Driver<MysqlTransaction> {
  const promised = "promise" in pool ? pool.promise() : pool;
  checkRoom(promised, connections);
  const owned = new EngineConnections<MysqlConnection>(connections, () =>
    connect(promised, timeout),
  );
  return {
    run: (by, verb, args) =>
      owned.use(by, async (held) => {
        try {
          // The engine's few reads between its transactions end with a COMMIT. Requests may be many reads in a row.
          await autocommit(held, !verb.transaction && by === "request");
          return held.autocommit
            ? await drive(held.connection, verb.script(...args))
            : await inTransaction(held, verb.script(...args), isDisconnect);
        } catch (error) {
          if (isDisconnect(error)) held.broken = true;
          throw error;
        }
      }),
    within: async (tx, verb, args) => {
      if (typeof tx?.beginTransaction !== "function") {
        throw new WorkflowError(
          "INVALID_REQUEST",
          "tx must be a mysql2 connection with an open transaction, not a pool",
        );
      }
      const given = tx as MysqlTransaction & MysqlQueryable & { promise?(): MysqlQueryable };
      const connection = given.promise?.() ?? given;
      await checkCharacterSet(given, connection);
      return drive(connection, verb.script(...args));
    },
    close: async () => owned.close(),
  };
}

/** The engine's connections never come back, so the user of a pool that is no bigger would wait for ever. */
function checkRoom(promised: MysqlPromisePool, connections: number): void {
  const { pool } = promised as { pool?: { config?: { connectionLimit?: number } } };
  const limit = pool?.config?.connectionLimit;
  if (limit !== undefined && limit <= connections) {
    throw new ValidationError(
      `the pool's connectionLimit is ${limit}, and Pawl keeps ${connections} of its connections: give it more`,
    );
  }
}

const withRightCharacterSet = new WeakSet<object>();

/**
 * Refuses a connection that does not use utf8mb4. In another character set, names become other bytes than the engine's,
 * and letters that the set lacks become other letters: through latin1, "日" arrives as "å". The driver writes by its own
 * idea of the session's character set, so both are asked.
 */
async function checkCharacterSet(given: object, connection: MysqlQueryable): Promise<void> {
  if (withRightCharacterSet.has(given)) return;
  const sql =
    "SELECT @@character_set_client AS client, @@character_set_connection AS connection, HEX('é') AS sent";
  const [rows] = await connection.query({ ...plainRows, sql });
  const { client, connection: own, sent } = (rows as Row[])[0] ?? {};
  if (client !== "utf8mb4" || own !== "utf8mb4" || sent !== "C3A9") {
    throw new WorkflowError(
      "INVALID_REQUEST",
      `tx must be a connection of which driver and session use the character set utf8mb4, not ${String(client)}`,
    );
  }
  withRightCharacterSet.add(given);
}

async function connect(pool: MysqlPromisePool, timeout: number): Promise<MysqlConnection> {
  const connection = (await pool.getConnection()) as MysqlPoolConnection;
  const held: MysqlConnection = {
    connection: {
      query: (options) => connection.query({ timeout, ...options }),
      execute: (options) => connection.execute({ timeout, ...options }),
    },
    autocommit: false,
    broken: false,
    close: () => connection.destroy(),
  };
  const lost = (): void => void (held.broken = true);
  connection.on("error", lost);
  connection.on("end", lost);
  try {
    for (const sql of session) await held.connection.query({ sql });
  } catch (error) {
    connection.destroy();
    throw error;
  }
  return held;
}

async function autocommit(held: MysqlConnection, wanted: boolean): Promise<void> {
  if (held.autocommit === wanted) return;
  await held.connection.query({ sql: `SET SESSION autocommit = ${wanted ? 1 : 0}` });
  held.autocommit = wanted;
}

async function drive<T>(connection: MysqlQueryable, script: Script<T>): Promise<T> {
  let step = script.next();
  while (step.done !== true) {
    let rows: Row[];
    try {
      rows = await execute(connection, step.value);
    } catch (error) {
      step = script.throw(error);
      continue;
    }
    step = script.next(rows);
  }
  return step.value;
}

async function execute(connection: MysqlQueryable, call: Call): Promise<Row[]> {
  const answer = send(connection, call);
  call.meanwhile?.();
  const [rows] = await answer;
  return Array.isArray(rows) ? rows.map(decoded) : [];
}

function send(
  connection: MysqlQueryable,
  { statement: { name, text }, executions: [values = []], list }: Call,
): Promise<[unknown, ...unknown[]]> {
  if (list !== undefined) {
    // The list is put into the text here, since a pool can have its own way to put `values` into a text.
    const literals = [...values.map(mysqlLiteral), list];
    const sql = text.split("?").reduce((head, tail, n) => head + literals[n - 1] + tail);
    return connection.query({ ...wholeText, sql }).catch((error: unknown) => {
      // The driver puts the text into its errors, which end up in logs: users' data must not be in it.
      if (error instanceof Error && "sql" in error) error.sql = text;
      throw error;
    });
  }
  // Migrations lock tables and names, which the protocol for prepared statements does not take.
  return name === null && values.length === 0
    ? connection.query({ ...plainRows, sql: text, timeout: 0 })
    : connection.execute({ ...plainRows, sql: text, values });
}

/** Every VARBINARY of the schema holds UTF-8, which the driver hands out as bytes. */
function decoded(row: Record<string, unknown>): Row {
  for (const column in row) {
    const value = row[column];
    if (value instanceof Uint8Array) row[column] = utf8.decode(value);
  }
  return row;
}

declare class TextDecoder {
  constructor(label: string, options: { ignoreBOM: boolean });
  decode(bytes: Uint8Array): string;
}
/** A name may begin with U+FEFF, which then is part of the name and not a byte order mark. */
const utf8 = new TextDecoder("utf-8", { ignoreBOM: true });

/** Error 1205 undoes one statement only, so any error rolls back the whole transaction. */
async function inTransaction<T>(
  held: MysqlConnection,
  script: Script<T>,
  isDisconnect: (error: unknown) => boolean,
): Promise<T> {
  const { connection } = held;
  try {
    const result = await drive(connection, script);
    await connection.query({ sql: "COMMIT" });
    return result;
  } catch (error) {
    // Behind a statement that hangs, a ROLLBACK would hang too.
    if (!isDisconnect(error)) {
      await connection.query({ sql: "ROLLBACK" }).catch(() => void (held.broken = true));
    }
    throw error;
  }
}

import type { CreateAnswer, NewInstance } from "../../store/store.js";
import { int, text, textOrNull, type Sql, type Verb } from "../sql.js";
import type { Row, Script, Statement } from "../statement.js";
import { birthOf } from "../ticket.js";
import {
  hookBit,
  hookedColumn,
  isRegistered,
  poster,
  postId,
  postSelected,
  type Posted,
} from "./hooks/posting.js";
import { isAmong } from "./is-among.js";

const columns = {
  iid: "key",
  workflow: "key",
  id: "key",
  queue: "key",
  params: "body",
  origin: "key",
} as const;

/** The most params of one statement, in UTF-16 units. As escaped UTF-8 they can take four times as many bytes. */
const CHUNK_LENGTH = 2 * 1024 * 1024;

/** With `hooked` the caller has code for `onWorkflowEnqueued`, which may not be registered yet. */
type Create = Verb<
  [items: readonly NewInstance[], runner: string | null, hooked: boolean],
  CreateAnswer[]
>;

/**
 * How long a create waits for a lock. `hasty` is for requests that travel together: one that meets a lock must not hold
 * up the others. On PostgreSQL a hasty create waits a little longer than another process's commit takes as a rule.
 * MySQL waits in whole seconds, so a hasty create looks first there; for a lock that is taken after that look, it
 * waits.
 */
type LockPatience = "patient" | "hasty";
const HASTY_LOCK_WAIT = "50ms";

export function createVerb(sql: Sql, patience: LockPatience = "patient"): Create {
  return sql.dialect.writableCtes ? inOneStatement(sql, patience) : inSteps(sql, patience);
}

/** Writes the instances of many requests at once. */
export function createTogetherVerb(sql: Sql): Create {
  return { ...createVerb(sql, "hasty"), answersLocked: true };
}

function existingItems(sql: Sql): Statement {
  return sql.prepare("create.existing", existingItemsText(sql));
}

/** Fails if an open transaction has taken one of the ids. */
function existingItemsOrFail(sql: Sql): Statement {
  const body = existingItemsText(sql, sql.dialect.throughIndex("instance_id"));
  return sql.prepare("create.existing.or-fail", `${body} ${sql.dialect.shareOrFailOf("i")}`);
}

function existingItemsText(sql: Sql, through = ""): string {
  const items = sql.rows("items", "r", columns);
  return `SELECT r.iid AS wanted, i.iid, i.origin, i.created_at
     FROM ${items} ${sql.dialect.drivenJoin} ${sql.table("instance")} AS i ${through}
       ON i.workflow == r.workflow AND i.id = r.id`;
}

/** Creates inside a user's transaction, which a savepoint keeps usable where a failed insert would spoil it. */
export function createWithinVerb(sql: Sql): Create {
  const create = createVerb(sql);
  if (!sql.dialect.savepointOnInsert) return create;
  const savepoint = sql.once("SAVEPOINT pawl_create");
  const undo = sql.once("ROLLBACK TO SAVEPOINT pawl_create");
  const release = sql.once("RELEASE SAVEPOINT pawl_create");

  function* attempt(items: readonly NewInstance[], hooked: boolean): Script<CreateAnswer[] | null> {
    yield savepoint.with();
    try {
      const answered = yield* create.script(items, null, hooked);
      yield release.with();
      return answered;
    } catch (error) {
      if (sql.dialect.classify(error) !== "transient") throw error;
      yield undo.with();
      yield release.with();
      return null;
    }
  }

  return {
    transaction: true,
    *script(items, _runner, hooked): Script<CreateAnswer[]> {
      const together = yield* attempt(items, hooked);
      if (together !== null) return together;
      const answered: CreateAnswer[] = [];
      for (const item of items) {
        const alone = yield* attempt([item], hooked);
        answered.push(...(alone ?? [{ kind: "duplicate" as const, existing: null }]));
      }
      return answered;
    },
  };
}

/** Whether the runner is alive. A dead one must not be given anything, since nobody would look for it there. */
export function aliveSql(sql: Sql): string {
  return `SELECT 1 FROM ${sql.table("runner")} WHERE id = :runner AND dead = 0`;
}

/** PostgreSQL: instances, tickets and posted rows in one statement, one round trip. */
function inOneStatement(sql: Sql, patience: LockPatience): Create {
  const existing = existingItems(sql);
  // The setting lasts until the end of the transaction, so a create inside a user's transaction leaves it alone.
  const lockWait = patience === "hasty" ? HASTY_LOCK_WAIT : null;
  const queued = insertAll(sql, "create.queued", "create");
  const leased = insertAll(sql, "create.leased", "createLeased");
  return {
    transaction: false,
    *script(items, runner, hasHook): Script<CreateAnswer[]> {
      const rows = inLockOrder(items).map((item) => toRow(item));
      const values = { items: rows, hooked: hasHook ? 1 : 0, lockWait };
      let born = runner === null ? [] : yield leased.with({ ...values, runner });
      const eager = born.length > 0;
      if (!eager) born = yield queued.with(values);
      // The row that has the id may be newer than the insert's snapshot, so it takes a second statement to see it.
      const found = born.length < items.length ? yield existing.with({ items: rows }) : [];
      return answers(items, born, found, eager);
    },
  };
}

function insertAll(sql: Sql, name: string, edge: "create" | "createLeased"): Statement {
  const ticket = birthOf(edge, "clock.now");
  const isBorn = isAmong("i.iid", "SELECT iid FROM born");
  return sql.prepare(
    name,
    `WITH item AS MATERIALIZED (
       SELECT * FROM ${sql.rows("items", "r", columns)} ${edge === "createLeased" ? `WHERE EXISTS (${aliveSql(sql)})` : ""}),
     clock AS MATERIALIZED (
       SELECT :now AS now, CASE WHEN :lockWait::text IS NOT NULL
         THEN set_config('lock_timeout', :lockWait::text, true) END AS lock_wait),
     born AS (
       INSERT INTO ${sql.table("instance")} (iid, workflow, id, queue, run_no, status, params, origin, created_at)
       SELECT i.iid, i.workflow, i.id, i.queue, 1, 'live', i.params, i.origin, clock.now FROM item AS i, clock
       ON CONFLICT DO NOTHING RETURNING iid, created_at),
     queued AS (
       INSERT INTO ${sql.table("ticket")} (tid, queue, handler, ${ticket.columns})
       SELECT i.iid, i.queue, i.workflow, ${ticket.values} FROM item AS i, clock WHERE ${isBorn}),
     posted AS (${postSelected(
       sql,
       `SELECT 'create.1.' || i.iid, 'onWorkflowEnqueued', i.workflow, i.id, 1, 'create', clock.now, clock.now
        FROM item AS i, clock
        WHERE ${isBorn} AND (:hooked::int = 1 OR ${isRegistered(sql, "onWorkflowEnqueued")})`,
     )})
     SELECT iid, created_at FROM born`,
  );
}

/** Everywhere else: look which ids are taken, then insert the others, in one transaction. */
function inSteps(sql: Sql, patience: LockPatience): Create {
  const existing = existingItems(sql);
  const existingAtFirst = patience === "hasty" ? existingItemsOrFail(sql) : existing;
  const { now, nowAndAlive, queued, leased } = bornStatements(sql);
  const insertWhatIsFree = inserter(sql);
  const post = poster(sql, "create");
  return {
    transaction: true,
    *script(items, runner, hasHook): Script<CreateAnswer[]> {
      const ordered = inLockOrder(items);
      const keys = ordered.map((item) => toRow(item, null));
      const found = yield existingAtFirst.with({ items: keys });
      const taken = new Set(found.map((row) => text(row, "wanted")));
      const free = firstOfEachId(ordered.filter((item) => !taken.has(item.iid)));
      const [clock] = yield runner === null ? now.with() : nowAndAlive.with({ runner });
      const at = int(clock as Row, "now");
      const eager = int(clock as Row, "alive") === 1;
      const kept: NewInstance[] = [];
      for (const chunk of byBytes(free)) kept.push(...(yield* insertWhatIsFree(chunk, at)));
      if (kept.length > 0) {
        const isAll = kept.length === items.length;
        const tickets = isAll ? keys : kept.map((item) => toRow(item, null));
        yield eager
          ? leased.with({ items: tickets, at, runner })
          : queued.with({ items: tickets, at });
        if (hasHook || (int(clock as Row, "hooked") & hookBit.onWorkflowEnqueued) !== 0) {
          yield post("onWorkflowEnqueued", kept.map(enqueued), at);
        }
      }
      const born = kept.map((item) => ({ iid: item.iid, created_at: at }));
      const explained = found.length + kept.length === items.length;
      return answers(items, born, explained ? found : yield existing.with({ items: keys }), eager);
    },
  };
}

function bornStatements(sql: Sql) {
  const registered = hookedColumn(sql);
  const now = sql.prepare("create.now", `SELECT :now AS now, 0 AS alive, ${registered}`);
  const nowAndAlive = sql.prepare(
    "create.alive",
    `SELECT :now AS now, EXISTS (${aliveSql(sql)}) AS alive, ${registered}`,
  );
  const insertTickets = (name: string, edge: "create" | "createLeased"): Statement => {
    const ticket = birthOf(edge, ":at");
    return sql.prepare(
      name,
      `INSERT INTO ${sql.table("ticket")} (tid, queue, handler, ${ticket.columns})
       SELECT r.iid, r.queue, r.workflow, ${ticket.values} FROM ${sql.rows("items", "r", columns)}`,
    );
  };
  const queued = insertTickets("create.tickets.queued", "create");
  const leased = insertTickets("create.tickets.leased", "createLeased");
  return { now, nowAndAlive, queued, leased };
}

type Inserter = (items: readonly NewInstance[], at: number) => Script<readonly NewInstance[]>;

/** Inserts instances. Another insert of the same id may have won since we looked; then they go one by one. */
function inserter(sql: Sql): Inserter {
  const insertInstances = sql.prepare(
    "create.instances",
    `INSERT INTO ${sql.table("instance")} (iid, workflow, id, queue, run_no, status, params, origin, created_at)
     SELECT r.iid, r.workflow, r.id, r.queue, 1, 'live', r.params, r.origin, :at FROM ${sql.rows("items", "r", columns)}`,
  );

  return function* insertWhatIsFree(items, at): Script<readonly NewInstance[]> {
    try {
      yield insertInstances.with({ items: items.map((item) => toRow(item)), at });
      return items;
    } catch (error) {
      if (sql.dialect.classify(error) !== "duplicate") throw error;
    }
    const kept: NewInstance[] = [];
    if (items.length === 1) return kept;
    for (const item of items) kept.push(...(yield* insertWhatIsFree([item], at)));
    return kept;
  };
}

function enqueued({ iid, workflow, id }: NewInstance): Posted {
  return {
    id: postId.create(iid),
    workflow,
    instanceId: id,
    runNumber: 1,
    reason: "create",
  };
}

/** Splits items over several statements, each well below MariaDB's default packet of 16 MiB. */
function byBytes(items: readonly NewInstance[]): NewInstance[][] {
  const chunks: NewInstance[][] = [];
  let room = 0;
  for (const item of items) {
    const length = item.params?.length ?? 0;
    if (chunks.length === 0 || length > room) {
      chunks.push([]);
      room = CHUNK_LENGTH;
    }
    chunks.at(-1)?.push(item);
    room -= length;
  }
  return chunks;
}

/** Two creates that insert the same ids at the same time then wait for one another, but not in a circle. */
function inLockOrder(items: readonly NewInstance[]): readonly NewInstance[] {
  return items.toSorted((a, b) => compare(a.workflow, b.workflow) || compare(a.id, b.id));
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

/** One batch may name an id twice; the first one wins. */
export function firstOfEachId<T extends { readonly workflow?: unknown; readonly id?: unknown }>(
  items: readonly T[],
): T[] {
  const byId = new Map<string, T>();
  for (const item of items) {
    const key = JSON.stringify([item.workflow, item.id]);
    if (!byId.has(key)) byId.set(key, item);
  }
  return [...byId.values()];
}

function answers(
  items: readonly NewInstance[],
  born: readonly Row[],
  found: readonly Row[],
  leased: boolean,
): CreateAnswer[] {
  const bornAt = new Map(born.map((row) => [text(row, "iid"), int(row, "created_at")]));
  const byWanted = new Map(found.map((row) => [text(row, "wanted"), row]));
  return items.map((item): CreateAnswer => {
    const createdAt = bornAt.get(item.iid);
    if (createdAt !== undefined) {
      return { kind: "created", iid: item.iid, createdAt, leased };
    }
    const row = byWanted.get(item.iid);
    if (row === undefined) return { kind: "duplicate", existing: null };
    const iid = text(row, "iid");
    return iid === item.iid
      ? { kind: "created", iid, createdAt: int(row, "created_at"), leased: false }
      : { kind: "duplicate", existing: { iid, origin: textOrNull(row, "origin") } };
  });
}

/** The row of an instance. Statements that have no use for its params do without them. */
function toRow(
  item: NewInstance,
  params = item.params,
): Record<keyof typeof columns, string | null> {
  return {
    iid: item.iid,
    workflow: item.workflow,
    id: item.id,
    queue: item.queue,
    params,
    origin: item.origin ?? null,
  };
}

import { isTerminal, type InstanceStatusName } from "../../model/status.js";
import {
  comparePositions,
  listCursor,
  listPosition,
  type ListPosition,
} from "../../store/list-cursor.js";
import { type InstanceRecord } from "../../store/records.js";
import { targetKey, type Target } from "../../model/target.js";
import type { ListQuery, Page } from "../../store/store.js";
import { int, intOrNull, text, textOrNull, type Sql, type Verb } from "../sql.js";
import type { Row, Script, Statement } from "../statement.js";
import { statusOfRow } from "./status.js";

/** A filter on a live status walks over the live instances. These limits bound the walk of one page. */
const WINDOW = 1_000;
const MAX_WINDOWS = 20;

const fields = `i.iid, i.workflow, i.id, i.run_no, i.status, i.params, i.output, i.error, i.created_at,
  COALESCE(i.started_at, t.started_at) AS started_at, i.finished_at, i.origin, t.state, t.pause_requested`;

type Get = Verb<[target: Target], InstanceRecord | null>;

export function getVerb(sql: Sql): Get {
  const read = sql.prepare(
    "get",
    `SELECT ${fields} FROM ${sql.table("instance")} AS i LEFT JOIN ${sql.table("ticket")} AS t ON t.tid == i.iid
     WHERE i.workflow = :workflow AND i.id = :id`,
  );
  return {
    transaction: false,
    *script(target): Script<InstanceRecord | null> {
      const [row] = yield read.with({ workflow: target.workflow, id: target.id });
      return row === undefined ? null : toInstance(row);
    },
  };
}

type GetMany = Verb<[targets: readonly Target[]], (InstanceRecord | null)[]>;

export function getManyVerb(sql: Sql): GetMany {
  const read = sql.prepare(
    "get.many",
    `SELECT ${fields} FROM ${sql.rows("targets", "w", { workflow: "key", id: "key" })}
     ${sql.dialect.drivenJoin} ${sql.table("instance")} AS i ON i.workflow == w.workflow AND i.id = w.id
     LEFT JOIN ${sql.table("ticket")} AS t ON t.tid == i.iid`,
  );
  return {
    transaction: false,
    *script(targets): Script<(InstanceRecord | null)[]> {
      const wanted = new Map(targets.map((target) => [targetKey(target), target]));
      const rows = yield read.with({
        targets: Array.from(wanted.values(), ({ workflow, id }) => ({ workflow, id })),
      });
      const found = new Map(
        rows.map((row) => {
          const record = toInstance(row);
          return [targetKey(record), record];
        }),
      );
      return targets.map((target) => found.get(targetKey(target)) ?? null);
    },
  };
}

type List = Verb<[query: ListQuery], Page<InstanceRecord>>;

type Order = ListQuery["order"];

/** One index, (workflow, status, created_at, iid), serves every list, since each status is a range of it. */
export function listVerb(sql: Sql): List {
  const { all, ended, live, byIid } = listStatements(sql);
  return {
    transaction: false,
    *script(query): Script<Page<InstanceRecord>> {
      const from = startOf(query);
      const { status } = query;
      const filteredByTicket = status !== undefined && !isTerminal(status);
      const { items, end } = filteredByTicket
        ? yield* walk(query, status, from)
        : yield* read(query, from);
      return end === null
        ? { items, hasNextPage: false }
        : { items, cursor: listCursor(query, end), hasNextPage: true };
    },
  };

  function* read(query: ListQuery, from: ListPosition): Script<FoundPage> {
    const { workflow, status, pageSize } = query;
    const limit = pageSize + 1;
    const rows = yield status === undefined
      ? all[query.order].with({ workflow, limit, ...from })
      : ended[query.order].with({ workflow, status, limit, ...from });
    return cut(rows.map(toInstance), pageSize);
  }

  /** A page may be short, but never wrong: a walk that found too little ends at its last row and says there is more. */
  function* walk(
    query: ListQuery,
    status: InstanceStatusName,
    start: ListPosition,
  ): Script<FoundPage> {
    const matching: ListPosition[] = [];
    let from = start;
    let end: ListPosition | null = null;
    for (let n = 0; n < MAX_WINDOWS && matching.length <= query.pageSize; n++) {
      const rows = yield live[query.order].with({
        workflow: query.workflow,
        limit: WINDOW,
        ...from,
      });
      const window = inOrder(rows, query.order);
      matching.push(...window.filter((row) => statusOfRow(row) === status).map(toPosition));
      const last = window.at(-1);
      end = last === undefined || window.length < WINDOW ? null : toPosition(last);
      if (end === null) break;
      from = end;
    }
    const page = matching.slice(0, query.pageSize);
    if (matching.length > page.length) end = page.at(-1) ?? null;
    const rows =
      page.length === 0 ? [] : yield byIid.with({ keys: page.map(({ iid }) => ({ iid })) });
    const found = inOrder(rows, query.order).map(toInstance);
    return { items: found, end };
  }
}

function listStatements(sql: Sql) {
  const range = (status: string, order: Order, limit: string): string => {
    const [beyond, direction] = order === "oldest" ? [">", "ASC"] : ["<", "DESC"];
    return `SELECT iid, created_at FROM ${sql.table("instance")}
      WHERE workflow = :workflow AND status = ${status} AND created_at ${beyond}= :at
        AND (created_at ${beyond} :at OR iid ${beyond} :iid)
      ORDER BY created_at ${direction}, iid ${direction} LIMIT ${limit}`;
  };
  const pageOf = (from: string, order: Order): string => {
    const direction = order === "oldest" ? "ASC" : "DESC";
    return `SELECT ${fields} FROM (${from}) AS k
      ${sql.dialect.drivenJoin} ${sql.table("instance")} AS i ON i.iid == k.iid
      LEFT JOIN ${sql.table("ticket")} AS t ON t.tid == i.iid
      ORDER BY i.created_at ${direction}, i.iid ${direction} LIMIT :limit`;
  };
  const byOrder = (name: string, build: (order: Order) => string): Record<Order, Statement> => ({
    oldest: sql.prepare(`list.${name}.oldest`, build("oldest")),
    newest: sql.prepare(`list.${name}.newest`, build("newest")),
  });
  const all = byOrder("all", (order) =>
    pageOf(
      ["'live'", "'complete'", "'errored'", "'terminated'"]
        .map((status, n) => `SELECT * FROM (${range(status, order, ":limit")}) AS r${n}`)
        .join(" UNION ALL "),
      order,
    ),
  );
  const ended = byOrder("ended", (order) => pageOf(range(":status", order, ":limit"), order));
  // Few columns, since most rows of a window are only looked at.
  const live = byOrder(
    "live",
    (order) =>
      `SELECT k.iid, k.created_at, 'live' AS status, t.state, t.pause_requested
       FROM (${range("'live'", order, ":limit")}) AS k
         ${sql.dialect.drivenJoin} ${sql.table("ticket")} AS t ON t.tid == k.iid`,
  );
  const byIid = sql.prepare(
    "list.rows",
    `SELECT ${fields} FROM ${sql.rows("keys", "k", { iid: "key" })}
       ${sql.dialect.drivenJoin} ${sql.table("instance")} AS i ON i.iid == k.iid
       LEFT JOIN ${sql.table("ticket")} AS t ON t.tid == i.iid`,
  );
  return { all, ended, live, byIid };
}

function toPosition(row: Row): ListPosition {
  return { at: int(row, "created_at"), iid: text(row, "iid") };
}

function inOrder(rows: readonly Row[], order: Order): Row[] {
  return rows.toSorted((a, b) => comparePositions(order, toPosition(a), toPosition(b)));
}

type FoundPage = { readonly items: InstanceRecord[]; readonly end: ListPosition | null };

function cut(rows: readonly InstanceRecord[], pageSize: number): FoundPage {
  const items = rows.slice(0, pageSize);
  const last = items.at(-1);
  const more = rows.length > pageSize && last !== undefined;
  return { items, end: more ? { at: last.createdAt, iid: last.iid } : null };
}

function startOf({ cursor, ...query }: ListQuery): ListPosition {
  if (cursor !== undefined) return listPosition(query, cursor);
  return query.order === "oldest" ? { at: -1, iid: "" } : { at: Number.MAX_SAFE_INTEGER, iid: "" };
}

function toInstance(row: Row): InstanceRecord {
  return {
    iid: text(row, "iid"),
    workflow: text(row, "workflow"),
    id: text(row, "id"),
    runNumber: int(row, "run_no"),
    status: statusOfRow(row),
    params: textOrNull(row, "params"),
    output: textOrNull(row, "output"),
    error: textOrNull(row, "error"),
    createdAt: int(row, "created_at"),
    startedAt: intOrNull(row, "started_at"),
    finishedAt: intOrNull(row, "finished_at"),
    origin: textOrNull(row, "origin"),
  };
}

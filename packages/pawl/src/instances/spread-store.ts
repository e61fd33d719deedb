import { fnv1a, mixed } from "../model/hash.js";
import {
  comparePositions,
  listCursor,
  listPosition,
  spreadListCursor,
  spreadListPositions,
  type ListPosition,
} from "../store/list-cursor.js";
import type { Target } from "../model/target.js";
import type { InstanceStore, ListedRecord } from "../store/instance-store.js";
import type { CreateAnswer, ListQuery, NewInstance, Page } from "../store/store.js";

/** Tells which of several stores has which instances. */
export interface ShardMap<Tx> {
  /** How instances are spread, in words. Cursors that were made under another spread are refused. */
  readonly spread: string;
  of(target: Target): InstanceStore<Tx>;
  /** The stores that may have instances of a workflow, always in the same order. */
  all(workflow: string): readonly InstanceStore<Tx>[];
  /** Tells whether a new id suits this process. Absent where an id makes no difference. */
  fits?(target: Target): boolean;
}

/**
 * Returns which of `count` places an instance has. The answer must never change: it says where to look for an instance
 * later.
 */
export function placeOf({ workflow, id }: Target, count: number): number {
  return mixed(fnv1a(`${workflow}\n${id}`)) % count;
}

/** Makes one store of several. An instance is in one of them; lists and batches go to all of them. */
export function spreadStore<Tx>(places: ShardMap<Tx>): InstanceStore<Tx> {
  return {
    create: (rows, options) => createSpread(places, rows, options),
    sendEvent: (target, event, options) => places.of(target).sendEvent(target, event, options),
    control: (target, request) => places.of(target).control(target, request),
    get: (target) => places.of(target).get(target),
    history: (target, query) => places.of(target).history(target, query),
    list: (query) => listSpread(places, query),
    ...(places.fits === undefined ? {} : { fits: (target) => places.fits?.(target) !== false }),
  };
}

/** Creates all or none of the rows in each store. A store that is away does not undo the others. */
async function createSpread<Tx>(
  places: ShardMap<Tx>,
  rows: readonly NewInstance[],
  options: { readonly tx?: Tx | undefined } = {},
): Promise<CreateAnswer[]> {
  const groups = new Map<InstanceStore<Tx>, number[]>();
  for (const [i, row] of rows.entries()) {
    const store = places.of(row);
    groups.set(store, [...(groups.get(store) ?? []), i]);
  }
  const answers: CreateAnswer[] = [];
  const writes = Array.from(groups, async ([store, indices]) => {
    const group = indices.map((i) => rows[i] as NewInstance);
    const created = await store.create(group, options);
    for (const [n, i] of indices.entries()) answers[i] = created[n] as CreateAnswer;
  });
  // All writes are waited for, so that none is still on its way when the caller learns that one has failed.
  const outcomes = await Promise.allSettled(writes);
  const failed = outcomes.find((outcome) => outcome.status === "rejected");
  if (failed !== undefined) throw failed.reason;
  return answers;
}

type Listed = Page<ListedRecord> & {
  /** How far this page reaches; null if it reaches the end. */
  readonly reach: ListPosition | null;
};

async function listSpread<Tx>(places: ShardMap<Tx>, query: ListQuery): Promise<Page<ListedRecord>> {
  const { cursor: given, ...question } = query;
  const stores = places.all(query.workflow);
  const [only] = stores;
  if (only !== undefined && stores.length === 1) return only.list(query);

  const before = startsOf(places.spread, question, stores.length, given);
  const pages = await Promise.all(
    stores.map(async (store, i): Promise<Listed> => {
      const start = before[i];
      const page = await store.list(
        start === undefined ? question : { ...question, cursor: listCursor(question, start) },
      );
      const reach = page.cursor === undefined ? null : listPosition(question, page.cursor);
      return { ...page, reach };
    }),
  );
  const merged = merge(query, pages);
  if (merged.end === null) return { items: merged.items, hasNextPage: false };
  const ends = endsOf(query, pages, merged, before);
  return {
    items: merged.items,
    cursor: spreadListCursor(question, places.spread, ends),
    hasNextPage: true,
  };
}

type Merged = { readonly items: ListedRecord[]; readonly end: ListPosition | null };

/**
 * Merges the pages in order, as far as all of them reach. Beyond that point some store may have rows that nobody has
 * read.
 */
function merge({ order, pageSize }: ListQuery, pages: readonly Listed[]): Merged {
  const reaches = pages.flatMap(({ reach }) => (reach === null ? [] : [reach]));
  const [shortest] = reaches.toSorted((a, b) => comparePositions(order, a, b));
  const rows = pages
    .flatMap(({ items }) => items)
    .toSorted((a, b) => comparePositions(order, positionOf(a), positionOf(b)));
  const known =
    shortest === undefined
      ? rows
      : rows.filter((row) => comparePositions(order, positionOf(row), shortest) <= 0);
  const items = known.slice(0, pageSize);
  const last = items.at(-1);
  if (last !== undefined && known.length > items.length) return { items, end: positionOf(last) };
  return { items, end: shortest ?? null };
}

function positionOf({ createdAt, iid }: ListedRecord): ListPosition {
  return { at: createdAt, iid };
}

/**
 * Where each store's next page begins. From the newest on, one position serves all stores, because rows that come later
 * are not asked for. From the oldest on, each store has its own: clocks differ, and a store whose clock is behind may
 * still get rows that are older than the last one of this page.
 */
function endsOf(
  { order }: ListQuery,
  pages: readonly Listed[],
  { items, end }: Merged,
  before: readonly ListPosition[],
): ListPosition[] {
  if (end === null) return [];
  if (order === "newest") return [end];
  const listed = new Set(items.map(({ iid }) => iid));
  return pages.map((page, i) => {
    if (page.reach !== null && comparePositions(order, page.reach, end) <= 0) return page.reach;
    const last = page.items.findLast(({ iid }) => listed.has(iid));
    return last === undefined ? (before[i] ?? BEFORE_ALL) : positionOf(last);
  });
}

const BEFORE_ALL: ListPosition = { at: -1, iid: "" };

/** Returns where each store's page begins; nothing for the first page. */
function startsOf(
  spread: string,
  query: Omit<ListQuery, "cursor">,
  count: number,
  cursor: string | undefined,
): readonly ListPosition[] {
  if (cursor === undefined) return [];
  if (query.order === "oldest") return spreadListPositions(query, spread, count, cursor);
  const positions = spreadListPositions(query, spread, 1, cursor);
  return Array.from({ length: count }, () => positions[0] as ListPosition);
}

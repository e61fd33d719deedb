import { liveStates, terminalStates, type InstanceStatusName } from "../../model/status.js";
import type { ListQuery, Store } from "../../store/store.js";
import { defined, equal, equalSets, matches, ok, refused } from "./assert.js";
import {
  aPart,
  aRunner,
  anInstance,
  allPages,
  claim,
  claimOne,
  commitOk,
  complete,
  create,
  inState,
  parkUntil,
  someInstances,
  targetOf,
} from "./build.js";
import type { ConformanceCase } from "./fixture.js";
import { realTime, stillTime } from "./world.js";

const states = [...liveStates, ...terminalStates];

const iidsOf = (items: readonly { readonly iid: string }[]) => items.map(({ iid }) => iid);

function pagesOf(store: Store, query: Partial<ListQuery>, between?: () => Promise<void>) {
  const whole: ListQuery = { workflow: "order", order: "oldest", pageSize: 10, ...query };
  return allPages((from) => store.list({ ...whole, ...from }), between);
}

/** Cursors that no store has given out. */
export const garbageCursors: readonly string[] = [
  "",
  "x",
  "null",
  "{}",
  "[]",
  "1",
  "AAAA",
  "e30",
  "e30=",
  "W10=",
  "eyJ2IjoxfQ==",
  "../../etc/passwd",
  "' OR 1=1 --",
  "😀",
  "x".repeat(10_000),
];

/** Returns a real cursor, damaged as careless hands would. */
export function damagedCursors(cursor: string): string[] {
  const middle = Math.floor(cursor.length / 2);
  const other = cursor[middle] === "A" ? "B" : "A";
  return [
    cursor.slice(0, -1),
    cursor.slice(1),
    `${cursor}${cursor}`,
    cursor.slice(0, middle),
    `${cursor.slice(0, middle)}${other.repeat(8)}${cursor.slice(middle + 8)}`,
  ];
}

export const listCases: readonly ConformanceCase[] = [
  stillTime("get answers null for an instance that does not exist", async ({ store }) => {
    const run = await create(store);
    equal(await store.get({ workflow: "order", id: "unknown" }), null, "an unknown id");
    equal(await store.get({ workflow: "other", id: run.id }), null, "another workflow");
  }),

  stillTime("concurrent gets are each answered", async ({ store }) => {
    const instances = [
      ...someInstances(250),
      ...["Case", "case", "case_"].map((id) => anInstance({ id })),
      anInstance({ workflow: "other", id: "case" }),
    ];
    for (let n = 0; n < instances.length; n += 100) {
      await store.create(instances.slice(n, n + 100));
    }
    const unknown = someInstances(20);
    const asked = [...instances, ...unknown, ...instances.slice(0, 50)];
    const found = await Promise.all(
      asked.map(async (one) => (await store.get(targetOf(one)))?.iid),
    );
    const known = new Set(instances);
    equal(
      found,
      asked.map((one) => (known.has(one) ? one.iid : undefined)),
      "what was found",
    );
  }),

  stillTime("a run's start is its first claim, kept for good", async ({ store, clock }) => {
    const run = await create(store);
    const startedAt = async () => (await store.get(targetOf(run)))?.startedAt;
    equal(await startedAt(), null, "before the first claim");
    clock.advance(100);
    const first = clock.now();
    const claimed = await claimOne(store);
    equal(await startedAt(), first, "after the first claim");
    clock.advance(100);
    await commitOk(store, aPart(claimed, { next: parkUntil({ inMs: 0 }) }));
    equal(await startedAt(), first, "after a park");
    clock.advance(100);
    const again = await claimOne(store);
    equal(await startedAt(), first, "after the second claim");
    await commitOk(store, aPart(again, { next: complete() }));
    equal(await startedAt(), first, "after the end");
  }),

  ...states.map((state) =>
    stillTime(`get and list agree on a run that is ${state}`, async ({ store }) => {
      const run = await inState(store, state);
      const record = defined(await store.get(targetOf(run)), "the instance");
      matches(record, { ...targetOf(run), iid: run.iid, status: state }, "the instance");
      equal((await pagesOf(store, {})).flat(), [record], "the list");
    }),
  ),

  stillTime("a list can be filtered by each status", async ({ store }) => {
    const made = new Map<InstanceStatusName, string[]>();
    // Queued runs come last, because the others are claimed on their way.
    const others = states.filter((state) => state !== "queued");
    for (const state of [...others, ...others, "queued", "queued"] as const) {
      const { iid } = await inState(store, state);
      made.set(state, [...(made.get(state) ?? []), iid]);
    }
    for (const status of states) {
      for (const pageSize of [1, 10]) {
        const listed = (await pagesOf(store, { status, pageSize })).flat();
        equal(iidsOf(listed), made.get(status), `the ${status} ones, oldest first`);
        const newest = (await pagesOf(store, { status, pageSize, order: "newest" })).flat();
        equal(iidsOf(newest), made.get(status)?.toReversed(), `the ${status} ones, newest first`);
      }
    }
    equal((await pagesOf(store, { status: "unknown" })).flat(), [], "the unknown ones");
    equal((await pagesOf(store, {})).flat().length, 16, "all of them");
  }),

  stillTime("a list shows only its workflow, in both orders", async ({ store, clock }) => {
    const iids: string[] = [];
    for (let i = 0; i < 7; i++) {
      iids.push((await create(store)).iid);
      await create(store, { workflow: "other" });
      clock.advance(i % 2); // some share a time
    }
    equal(iidsOf((await pagesOf(store, {})).flat()), iids, "oldest first");
    equal(
      iidsOf((await pagesOf(store, { order: "newest" })).flat()),
      iids.toReversed(),
      "newest first",
    );
  }),

  stillTime("a list goes by the database's time, not by ids", async ({ store, clock }) => {
    // Ids are made by processes, whose clocks may be an hour off.
    const ids = someInstances(6).map(({ iid }) => iid);
    const shuffled = [3, 0, 5, 1, 4, 2].map((i) => ids[i]!);
    for (const iid of shuffled) {
      await create(store, { iid });
      clock.advance(1);
    }
    for (const pageSize of [2, 10]) {
      equal(iidsOf((await pagesOf(store, { pageSize })).flat()), shuffled, "oldest first");
      const newest = (await pagesOf(store, { pageSize, order: "newest" })).flat();
      equal(iidsOf(newest), shuffled.toReversed(), "newest first");
    }
  }),

  stillTime("all pages are full but the last, which has no next page", async ({ store }) => {
    await store.create(someInstances(6));
    for (const order of ["oldest", "newest"] as const) {
      const sizes = async (pageSize: number) =>
        (await pagesOf(store, { pageSize, order })).map((page) => page.length);
      equal(await sizes(4), [4, 2], "pages of 4");
      equal(await sizes(3), [3, 3], "pages of 3");
      equal(await sizes(6), [6], "pages of 6");
      equal(await sizes(7), [6], "pages of 7");
      equal(await sizes(1), Array(6).fill(1), "pages of 1");
    }
    const empty = await store.list({ workflow: "none", order: "oldest", pageSize: 5 });
    equal([empty.items.length, empty.hasNextPage], [0, false], "an empty list");
  }),

  stillTime("250 instances of one millisecond are each listed once", async ({ store }) => {
    const created = [...someInstances(100), ...someInstances(100), ...someInstances(50)];
    for (let i = 0; i < created.length; i += 100) await store.create(created.slice(i, i + 100));
    for (const order of ["oldest", "newest"] as const) {
      for (const query of [{ order }, { order, status: "queued" }] as const) {
        const listed = iidsOf((await pagesOf(store, { ...query, pageSize: 7 })).flat());
        equal(listed.length, 250, "listed");
        equalSets(listed, iidsOf(created), "listed");
      }
    }
  }),

  stillTime("rows inserted while paging do not disturb the pages", async ({ store, clock }) => {
    const existing = someInstances(25);
    await store.create(existing);
    for (const order of ["oldest", "newest"] as const) {
      for (const step of [0, 1]) {
        const insert = async () => {
          clock.advance(step);
          await create(store);
        };
        const listed = iidsOf((await pagesOf(store, { order, pageSize: 5 }, insert)).flat());
        const old = new Set(iidsOf(existing));
        equalSets(
          listed.filter((iid) => old.has(iid)),
          [...old],
          `the existing ones, ${order} first`,
        );
        equal(new Set(listed).size, listed.length, "none twice");
      }
    }
  }),

  realTime(
    "a filtered list is not disturbed by rows that change while paging",
    async ({ store }) => {
      const existing = someInstances(20);
      await store.create(existing);
      const runner = await aRunner(store);
      const claimSome = async () => void (await claim(store, runner, { limit: 1 }));
      const listed = iidsOf(
        (
          await pagesOf(store, { status: "queued", order: "newest", pageSize: 4 }, claimSome)
        ).flat(),
      );
      equal(new Set(listed).size, listed.length, "none twice");
      ok(listed.length >= 16, `${listed.length} of at least 16 that stayed queued`);
    },
  ),

  stillTime("an invalid cursor is refused", async ({ store }) => {
    await store.create(someInstances(3));
    const query: ListQuery = { workflow: "order", order: "oldest", pageSize: 2 };
    const { cursor } = await store.list(query);
    const real = defined(cursor, "the cursor");
    for (const bad of [...garbageCursors, ...damagedCursors(real)]) {
      await refused(store.list({ ...query, cursor: bad }), "INVALID_CURSOR", `cursor ${bad}`);
    }
    equal((await store.list({ ...query, cursor: real })).items.length, 1, "the real one");
  }),

  stillTime("a cursor works for the longest names, too", async ({ store }) => {
    const workflow = "😀".repeat(64);
    await store.create(someInstances(3, { workflow }));
    const pages = await pagesOf(store, { workflow, status: "queued", pageSize: 1 });
    equal(pages.length, 3, "pages");
  }),

  stillTime("a cursor of another query is refused", async ({ store }) => {
    await store.create(someInstances(3));
    const query: ListQuery = { workflow: "order", order: "oldest", pageSize: 2 };
    const cursor = defined((await store.list(query)).cursor, "the cursor");
    const others: readonly Partial<ListQuery>[] = [
      { order: "newest" },
      { workflow: "other" },
      { workflow: "Order" },
      { status: "queued" },
    ];
    for (const other of others) {
      await refused(
        store.list({ ...query, ...other, cursor }),
        "INVALID_CURSOR",
        `a cursor used with ${JSON.stringify(other)}`,
      );
    }
  }),
];

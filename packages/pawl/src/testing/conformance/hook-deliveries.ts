import { hookNames } from "../../model/hooks.js";
import type { Store } from "../../store/store.js";
import type { HookRow } from "../../store/outbox.js";
import { equal, matches, only } from "./assert.js";
import {
  allPages,
  complete,
  create,
  finished,
  someInstances,
  targetOf,
  terminate,
} from "./build.js";
import { atOnce, storesOn } from "./concurrency.js";
import type { ConformanceCase } from "./fixture.js";
import { claimed, hookLeaseMs, told } from "./hook-rows.js";
import { realTime, stillTime } from "./world.js";

/** Creates an instance, and claims the row that tells of it. */
async function aRow(store: Store): Promise<HookRow> {
  await store.registerHooks(["onWorkflowEnqueued"]);
  await create(store);
  return only(await claimed(store), "claimed");
}

async function fails(store: Store, row: HookRow, retryInMs: number | null): Promise<void> {
  const failure = { error: "no", retryInMs };
  await store.settleHooks([{ id: row.id, claimNumber: row.claimNumber, failure }]);
}

/** Rows for hooks are delivered at least once, or kept as failed. */
export const hookDeliveryCases: readonly ConformanceCase[] = [
  stillTime("hooks: a claim takes only the hooks it asks for, oldest first", async (world) => {
    const { store, clock } = world;
    await store.registerHooks(hookNames);
    const runs = [];
    for (let i = 0; i < 3; i++) {
      runs.push(await create(store));
      clock.advance(1);
    }
    await store.control(targetOf(runs[0]!), terminate("terminate"));
    equal(await claimed(store, { hooks: [] }), [], "none");
    const ids = (rows: readonly HookRow[]): string[] => rows.map(({ instanceId }) => instanceId);
    const enqueued = { hooks: ["onWorkflowEnqueued" as const], limit: 2 };
    equal(ids(await claimed(store, enqueued)), [runs[0]!.id, runs[1]!.id], "the oldest");
    equal(ids(await claimed(store, enqueued)), [runs[2]!.id], "the next");
    equal(await claimed(store, enqueued), [], "no more");
    equal(only(await claimed(store), "the rest").hook, "onInstanceFinished", "the other hook");
  }),

  stillTime("hooks: a row that nobody settles is due again after its lease", async (world) => {
    const { store, clock } = world;
    const row = await aRow(store);
    equal(await store.nextDueInMs([], ["onWorkflowEnqueued"]), hookLeaseMs, "due in");
    clock.advance(hookLeaseMs - 1);
    equal(await claimed(store), [], "too early");
    clock.advance(1);
    const again = only(await claimed(store), "again");
    equal<HookRow>(again, { ...row, attempts: 2, claimNumber: row.claimNumber + 1 }, "the row");
  }),

  stillTime("hooks: a failed delivery is due again later, by the store's clock", async (world) => {
    const { store, clock } = world;
    const row = await aRow(store);
    clock.advance(10);
    await fails(store, row, 500);
    equal(await store.nextDueInMs([], ["onWorkflowEnqueued"]), 500, "due in");
    equal(await store.nextDueInMs([], ["onInstanceFinished"]), null, "of another hook");
    equal(await store.nextDueInMs([]), null, "of none");
    clock.advance(499);
    equal(await claimed(store), [], "too early");
    clock.advance(1);
    matches(only(await claimed(store), "again"), { id: row.id, attempts: 2 }, "the row");
  }),

  stillTime("hooks: a late failure changes nothing, and a late success counts", async (world) => {
    const { store, clock } = world;
    const row = await aRow(store);
    clock.advance(hookLeaseMs);
    only(await claimed(store), "claimed by another");
    await fails(store, row, 0);
    equal(await claimed(store), [], "still with the other");
    await fails(store, row, null);
    equal((await store.failedHooks({ pageSize: 10 })).items, [], "given up");
    await store.settleHooks([{ id: row.id, claimNumber: row.claimNumber, failure: null }]);
    clock.advance(hookLeaseMs);
    equal(await claimed(store), [], "delivered all the same");
  }),

  stillTime("hooks: a given-up delivery is kept, listed, and can be retried", async (world) => {
    const { store, clock } = world;
    const { claimNumber, ...row } = await aRow(store);
    clock.advance(5);
    await fails(store, { ...row, claimNumber }, null);
    const { items, hasNextPage } = await store.failedHooks({ pageSize: 10 });
    equal(only(items, "failed"), { ...row, failedAt: clock.now(), error: "no" }, "the row");
    equal(hasNextPage, false, "one page");
    clock.advance(10 * hookLeaseMs);
    equal(await claimed(store), [], "not delivered");
    equal(await store.nextDueInMs([], hookNames), null, "not due");

    equal(await store.retryHook("nothing"), false, "an unknown id");
    equal(await store.retryHook(row.id), true, "retry");
    equal(await store.retryHook(row.id), true, "sent again");
    equal((await store.failedHooks({ pageSize: 10 })).items, [], "failed");
    await fails(store, { ...row, claimNumber }, null);
    matches(only(await claimed(store), "again"), { id: row.id, attempts: 1 }, "the row");
  }),

  stillTime("hooks: failed rows come in pages, the latest first", async ({ store, clock }) => {
    await store.registerHooks(["onWorkflowEnqueued"]);
    await store.create(someInstances(7));
    const order: string[] = [];
    for (const row of await claimed(store)) {
      await fails(store, row, null);
      if (order.length % 2 === 1) clock.advance(1);
      order.push(row.id);
    }
    const read = (from: object) => store.failedHooks({ pageSize: 3, ...from });
    const pages = await allPages(read);
    equal(
      pages.map(({ length }) => length),
      [3, 3, 1],
      "pages",
    );
    const times = pages.flat().map(({ failedAt }) => failedAt);
    equal(
      times,
      times.toSorted((a, b) => b - a),
      "the order",
    );
    equal(new Set(pages.flat().map(({ id }) => id)), new Set(order), "all of them");
  }),

  stillTime("hooks: a row whose deliveries never end is given up", async (world) => {
    const { store, clock } = world;
    const row = await aRow(store);
    for (let attempts = 2; attempts <= 3; attempts++) {
      clock.advance(hookLeaseMs);
      equal(only(await claimed(store, { maxAttempts: 3 }), "again").attempts, attempts, "attempts");
    }
    clock.advance(hookLeaseMs);
    equal(await claimed(store, { maxAttempts: 3 }), [], "no more");
    const { items } = await store.failedHooks({ pageSize: 10 });
    matches(only(items, "failed"), { id: row.id, attempts: 3 }, "the row");
  }),

  stillTime("hooks: unregistering drops the rows left and stops the writing", async (world) => {
    const { store, clock } = world;
    await store.registerHooks(hookNames);
    await store.create(someInstances(3));
    const [failed] = await claimed(store, { limit: 2 });
    await fails(store, failed!, null);
    await finished(store, complete(), { workflow: "other" });
    equal(await store.unregisterHook("onWorkflowEnqueued"), 4, "dropped");
    equal(await store.unregisterHook("onWorkflowEnqueued"), 0, "dropped again");
    await create(store);
    clock.advance(hookLeaseMs);
    equal((await store.failedHooks({ pageSize: 10 })).items, [], "failed");
    equal(only(await claimed(store), "the other hook's").hook, "onInstanceFinished", "hook");
  }),

  stillTime("hooks: rows that nobody takes are reported", async (world) => {
    const { store, clock } = world;
    await store.registerHooks(hookNames);
    await finished(store);
    clock.advance(1_000);
    equal(await store.unknownHooks([], 1_000), [], "too early");
    clock.advance(1);
    equal(await store.unknownHooks([], 1_000), [...hookNames], "both");
    equal(await store.unknownHooks(["onWorkflowEnqueued"], 1_000), ["onInstanceFinished"], "one");
    equal(await store.unknownHooks(hookNames, 1_000), [], "none");
    await told(store);
    equal(await store.unknownHooks([], 0), [], "none is left");
  }),

  realTime("hooks: claims from many connections share out the rows", async ({ db }) => {
    const stores = await storesOn(db, 4);
    await db.store.registerHooks(["onWorkflowEnqueued"]);
    await db.store.create(someInstances(60));
    const taken = await atOnce(
      stores.map((store) => async () => {
        const rows: HookRow[] = [];
        for (let empty = 0; empty < 3;) {
          const some = await claimed(store, { limit: 7 });
          rows.push(...some);
          empty = some.length === 0 ? empty + 1 : 0;
        }
        return rows;
      }),
      "claims",
    );
    const ids = taken.flat().map(({ id }) => id);
    equal(ids.length, 60, "rows");
    equal(new Set(ids).size, 60, "each once");
  }),
];

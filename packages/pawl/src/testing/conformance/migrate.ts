import { equal, ok, rejection } from "./assert.js";
import {
  aPart,
  aStep,
  anEvent,
  anInstance,
  claimOne,
  commitOk,
  complete,
  create,
  leasedRun,
  leaseMs,
  currentStatus,
  recordedSteps,
  targetOf,
  pause,
  restart,
  terminate,
} from "./build.js";
import { atOnce, storesOn } from "./concurrency.js";
import type { ConformanceCase } from "./fixture.js";
import { realTime, unmigrated, withTransactions } from "./world.js";

export const migrateCases: readonly ConformanceCase[] = [
  realTime("migrating again changes nothing", async ({ db, store }) => {
    const run = await leasedRun(store);
    await commitOk(store, aPart(run, { steps: [aStep(1)] }));
    await store.migrate();
    await (await db.connect()).migrate();
    equal((await recordedSteps(store, run)).length, 1, "steps");
    await commitOk(store, aPart(run, { partNumber: 2, next: complete() }));
  }),

  unmigrated("a migration plan says what would be done, and does nothing", async ({ store }) => {
    const plan = await store.planMigration();
    equal(plan.from, 0, "the version of an empty database");
    ok(
      plan.statements.some((statement) => statement.startsWith("CREATE TABLE")),
      "it makes tables",
    );
    equal((await store.planMigration()).from, 0, "the version after a plan");
    await store.migrate();
    const after = { from: plan.to, to: plan.to, statements: [] };
    equal(await store.planMigration(), after, "the plan of a migrated database");
  }),

  unmigrated("four stores can migrate an empty database at once", async ({ db }) => {
    const stores = await storesOn(db, 4);
    await atOnce(
      stores.map((store) => () => store.migrate()),
      "migrate",
    );
    for (const store of stores) {
      const run = await create(store);
      await commitOk(store, aPart(await claimOne(store), { next: complete() }));
      equal(await currentStatus(store, run), "complete", "the status");
    }
  }),

  unmigrated("a store that was not migrated says how to migrate it", async ({ store }) => {
    const target = { workflow: "order", id: "x" };
    const lanes = [{ queue: "default", handler: "order" }];
    const operations: Readonly<Record<string, () => Promise<unknown>>> = {
      create: () => store.create([anInstance()]),
      get: () => store.get(target),
      list: () => store.list({ workflow: "order", order: "newest", pageSize: 10 }),
      history: () => store.history(target, { order: "newest", pageSize: 10 }),
      sendEvent: () => store.sendEvent(target, anEvent()),
      pause: () => store.control(target, pause),
      terminate: () => store.control(target, terminate("t")),
      restart: () => store.control(target, restart("r")),
      register: () => store.register("r", leaseMs),
      heartbeat: () => store.heartbeat("r", leaseMs),
      declareDead: () => store.declareDead(),
      claim: () => store.claim({ runner: "r", lanes, limit: 1, reservedForNew: 0 }),
      moveInbox: () => store.moveInbox(1),
      nextDueInMs: () => store.nextDueInMs(lanes),
      unknownLanes: () => store.unknownLanes(lanes),
    };
    for (const [name, operation] of Object.entries(operations)) {
      const { message } = await rejection(operation(), name);
      ok(message.includes("pawl.migrate()"), `${name} names pawl.migrate(): ${message}`);
    }
  }),

  unmigrated("a store works as soon as it is migrated", async ({ store }) => {
    const early = await rejection(store.create([anInstance()]), "create");
    equal(early.name, "NotMigratedError", "why it was refused");
    await store.migrate();
    const run = await create(store);
    equal(await currentStatus(store, run), "queued", "the status");
    equal((await store.get(targetOf(run)))?.iid, run.iid, "the instance");
  }),

  ...withTransactions([
    realTime("a closed store leaves the user's connections open", async ({ db }) => {
      const transaction = await db.begin();
      await transaction.rollback();
      await db.store.close();
      const late = await rejection(db.store.now(), "a closed store");
      equal(late.name, "StoreClosedError", "why it was refused");
      const again = await db.begin();
      await again.rollback();
      const other = await db.connect();
      await create(other);
    }),
  ]),
];

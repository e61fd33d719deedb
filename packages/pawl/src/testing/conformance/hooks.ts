import { hookNames, type HookName } from "../../model/hooks.js";
import type { Store } from "../../store/store.js";
import type { HookRow } from "../../store/outbox.js";
import { equal, only } from "./assert.js";
import {
  anEvent,
  anInstance,
  aPart,
  aStep,
  commit,
  commitOk,
  complete,
  create,
  failWith,
  finished,
  leasedRun,
  letRunnersDie,
  parkFor,
  sendTo,
  someInstances,
  targetOf,
  unique,
  waiting,
  pause,
  resume,
  restart,
  terminate,
} from "./build.js";
import { atOnce, storesOn, whileOpen } from "./concurrency.js";
import type { ConformanceCase } from "./fixture.js";
import { claimed, told } from "./hook-rows.js";
import { realTime, stillTime, withTransactions, type World } from "./world.js";

/** Everything that causes a row. */
const causes: readonly {
  readonly name: string;
  readonly hook: HookName;
  readonly reason: string;
  readonly runNumber?: number;
  readonly cause: (store: Store) => Promise<{ readonly workflow: string; readonly id: string }>;
}[] = [
  { name: "create", hook: "onWorkflowEnqueued", reason: "create", cause: (store) => create(store) },
  {
    name: "a spawn",
    hook: "onWorkflowEnqueued",
    reason: "create",
    cause: async (store) => {
      const run = await leasedRun(store, { workflow: "parent" });
      const child = anInstance({ workflow: "child" });
      await told(store);
      await commitOk(store, aPart(run, { steps: [aStep(1)], spawns: [child] }));
      return child;
    },
  },
  {
    name: "restart",
    hook: "onWorkflowEnqueued",
    reason: "restart",
    runNumber: 2,
    cause: async (store) => {
      const run = await finished(store);
      await told(store);
      await store.control(targetOf(run), restart(`restart-${unique()}`));
      return run;
    },
  },
  {
    name: "resume",
    hook: "onWorkflowEnqueued",
    reason: "resume",
    cause: async (store) => {
      const run = await create(store);
      await store.control(targetOf(run), pause);
      await told(store);
      await store.control(targetOf(run), resume);
      return run;
    },
  },
  {
    name: "an event that wakes a run",
    hook: "onWorkflowEnqueued",
    reason: "event",
    cause: async (store) => {
      const run = await waiting(store);
      await told(store);
      await sendTo(store, run);
      return run;
    },
  },
  ...(
    [
      ["complete", complete()],
      ["errored", failWith()],
    ] as const
  ).map(([reason, next]) => ({
    name: `a run that ends ${reason}`,
    hook: "onInstanceFinished" as const,
    reason,
    cause: async (store: Store) => {
      const run = await leasedRun(store);
      await told(store);
      await commitOk(store, aPart(run, { steps: [aStep(1)], next }));
      return run;
    },
  })),
  {
    name: "terminate",
    hook: "onInstanceFinished",
    reason: "terminated",
    cause: async (store) => {
      const run = await leasedRun(store);
      await told(store);
      await store.control(targetOf(run), terminate(`terminate-${unique()}`));
      return run;
    },
  },
];

const refusals: Readonly<Record<string, (world: World) => Promise<void>>> = {
  "a taken id": async ({ store }) => {
    const taken = await create(store);
    await told(store);
    await store.create([anInstance(targetOf(taken))]);
  },
  "a resume of a run that is not paused": async ({ store }) => {
    const run = await leasedRun(store);
    await store.control(targetOf(run), pause);
    await told(store);
    await store.control(targetOf(run), resume);
    await store.control(targetOf(run), resume);
  },
  "a pause": async ({ store }) => {
    const run = await create(store);
    await told(store);
    await store.control(targetOf(run), pause);
  },
  "a terminate of an ended run": async ({ store }) => {
    const run = await finished(store);
    await told(store);
    await store.control(targetOf(run), terminate("late"));
  },
  "a duplicate or unawaited event": async ({ store }) => {
    const run = await waiting(store);
    const event = anEvent("paid");
    await sendTo(store, run, event);
    await told(store);
    await store.sendEvent(targetOf(run), event);
    await sendTo(store, run, anEvent("shipped"));
    await sendTo(store, await leasedRun(store, { workflow: "busy" }));
    await told(store);
  },
  "progress, a park and a release": async ({ store }) => {
    const run = await leasedRun(store);
    await told(store);
    await commitOk(store, aPart(run, { steps: [aStep(1)] }));
    await commitOk(store, aPart(run, { partNumber: 2, next: parkFor(["paid"]) }));
  },
  "a part of a claim that was lost": async ({ store }) => {
    const run = await leasedRun(store);
    await store.control(targetOf(run), restart("restart"));
    await told(store);
    const spawns = [anInstance({ workflow: "child" })];
    equal((await commit(store, aPart(run, { spawns, next: complete() }))).kind, "lost", "the part");
  },
  "a spawn of a taken id": async ({ store }) => {
    const taken = await create(store, { workflow: "child" });
    const run = await leasedRun(store);
    await told(store);
    await commitOk(store, aPart(run, { steps: [aStep(1)], spawns: [anInstance(targetOf(taken))] }));
  },
};

/** Rows for hooks are written with their cause. */
export const hookCases: readonly ConformanceCase[] = [
  ...causes.map(({ name, hook, reason, runNumber = 1, cause }) =>
    stillTime(`hooks: ${name} leaves a row`, async ({ store, clock }) => {
      await store.registerHooks(hookNames);
      const { workflow, id } = await cause(store);
      const row = only(await claimed(store), "rows");
      const expected = { hook, reason, workflow, instanceId: id, runNumber };
      const counts = { createdAt: clock.now(), attempts: 1, claimNumber: 1 };
      equal<HookRow>(row, { ...expected, ...counts, id: row.id }, "the row");
    }),
  ),

  ...causes.map(({ name, cause }) =>
    stillTime(`hooks: ${name} leaves no row unless a hook is registered`, async ({ store }) => {
      await cause(store);
      await store.registerHooks(hookNames);
      equal(await told(store), [], "rows");
    }),
  ),

  ...Object.entries(refusals).map(([name, play]) =>
    stillTime(`hooks: ${name} leaves no row`, async (world) => {
      await world.store.registerHooks(hookNames);
      await play(world);
      equal(await told(world.store), [], "rows");
    }),
  ),

  stillTime("hooks: rows are written for registered hooks only", async ({ store }) => {
    await store.registerHooks(["onInstanceFinished"]);
    const first = await finished(store);
    equal(await told(store), [`onInstanceFinished complete ${first.id} 1`], "one");
    await store.registerHooks(["onWorkflowEnqueued", "onInstanceFinished"]);
    await store.registerHooks(["onWorkflowEnqueued"]);
    const second = await finished(store);
    const both = [
      `onInstanceFinished complete ${second.id} 1`,
      `onWorkflowEnqueued create ${second.id} 1`,
    ];
    equal(await told(store), both, "both");
  }),

  stillTime("hooks: every process writes rows for a hook of any process", async ({ db, store }) => {
    await store.registerHooks(hookNames);
    const other = await db.connect();
    const run = await finished(other);
    equal((await told(store)).length, 2, "rows");
    await other.control(targetOf(run), restart("restart"));
    equal(await told(store), [`onWorkflowEnqueued restart ${run.id} 2`], "rows");
  }),

  stillTime("hooks: each instance of a batch leaves a row with its own id", async (world) => {
    const { store } = world;
    await store.registerHooks(hookNames);
    const taken = await create(store);
    await told(store);
    const batch = [...someInstances(20), anInstance(targetOf(taken)), ...someInstances(20)];
    await store.create(batch);
    const rows = await claimed(store);
    equal(rows.length, 40, "rows");
    equal(new Set(rows.map(({ id }) => id)).size, 40, "ids");
  }),

  stillTime("hooks: an eager create leaves a row, too", async ({ store }) => {
    await store.registerHooks(hookNames);
    const { runner } = await leasedRun(store);
    await told(store);
    const eager = anInstance();
    await store.create([eager], { lease: { runner } });
    equal(await told(store), [`onWorkflowEnqueued create ${eager.id} 1`], "rows");
  }),

  stillTime("hooks: a resent operation leaves one row, delivered or not", async ({ store }) => {
    await store.registerHooks(hookNames);
    const run = await leasedRun(store);
    const child = anInstance({ workflow: "child" });
    const part = aPart(run, { spawns: [child], next: complete() });
    await told(store);
    for (let i = 0; i < 2; i++) await commitOk(store, part);
    equal((await told(store)).length, 2, "of a part");
    for (let i = 0; i < 2; i++) await store.control(targetOf(run), restart("restart"));
    equal((await told(store)).length, 1, "of a restart");
    for (let i = 0; i < 2; i++) await store.control(targetOf(run), terminate("terminate"));
    equal((await told(store)).length, 1, "of a terminate");
    const instance = anInstance();
    for (let i = 0; i < 2; i++) await store.create([instance]);
    equal((await told(store)).length, 1, "of a create");
    for (const again of [
      () => commitOk(store, part).catch(() => {}),
      () => store.control(targetOf(run), restart("restart")),
      () => store.control(targetOf(run), terminate("terminate")),
      () => store.create([instance]),
    ]) {
      await again();
    }
    equal(await told(store), [], "after their delivery");
  }),

  ...withTransactions([
    ...(["commit", "rollback"] as const).flatMap((end) => [
      stillTime(`hooks: a transaction's rows ${end} with it`, async ({ db, store }) => {
        await store.registerHooks(hookNames);
        const run = await waiting(store);
        await told(store);
        const created = anInstance();
        const transaction = await db.begin();
        const { tx } = transaction;
        await store.create([created], { tx });
        await store.sendEvent(targetOf(run), anEvent(), { tx });
        await transaction[end]();
        const rows = [
          `onWorkflowEnqueued create ${created.id} 1`,
          `onWorkflowEnqueued event ${run.id} 1`,
        ];
        equal(await told(store), end === "commit" ? rows.toSorted() : [], "rows");
      }),
      stillTime(
        `hooks: nobody waits for an open transaction with rows that will ${end}`,
        async (world) => {
          const { db, store } = world;
          await store.registerHooks(["onWorkflowEnqueued"]);
          await create(store);
          const row = only(await claimed(store), "before");
          const transaction = await db.begin();
          await store.create([anInstance()], { tx: transaction.tx });
          await whileOpen(db, transaction, end, async () => {
            await store.registerHooks(hookNames);
            await store.settleHooks([{ id: row.id, claimNumber: row.claimNumber, failure: null }]);
            await create(store);
            equal(only(await claimed(store, { limit: 1 }), "its own").attempts, 1, "attempts");
          });
          equal((await told(store)).length, end === "commit" ? 1 : 0, "of the transaction");
        },
      ),
    ]),

    stillTime(
      "hooks: a transaction in a process with hooks leaves rows before they are registered",
      async ({ db, store }) => {
        const run = await waiting(store);
        const transaction = await db.begin();
        const { tx } = transaction;
        await store.create([anInstance({ id: "in" })], { tx, hooked: true });
        await store.sendEvent(targetOf(run), anEvent(), { tx, hooked: true });
        await transaction.commit();
        equal(
          (await told(store)).map((row) => row.split(" ")[1]!),
          ["create", "event"],
          "rows",
        );
      },
    ),
  ]),

  stillTime("hooks: a run whose owner died ends once", async (world) => {
    const { store } = world;
    await store.registerHooks(["onInstanceFinished"]);
    const run = await leasedRun(store);
    await letRunnersDie(world);
    const taken = await store.claim({
      runner: (await leasedRun(store, { workflow: "other" })).runner,
      lanes: [{ queue: "default", handler: run.workflow }],
      limit: 1,
      reservedForNew: 0,
    });
    if (taken.kind !== "ok") throw new Error("dead");
    equal((await commit(store, aPart(run, { next: complete() }))).kind, "lost", "the dead owner");
    await commitOk(store, aPart(taken.claimed[0]!, { next: failWith() }));
    equal(await told(store), [`onInstanceFinished errored ${run.id} 1`], "rows");
  }),

  realTime("hooks: processes that register concurrently agree", async ({ db }) => {
    const stores = await storesOn(db, 4);
    await atOnce(
      stores.map((store) => () => store.registerHooks(hookNames)),
      "registering",
    );
    await create(db.store);
    equal((await told(db.store)).length, 1, "rows");
  }),
];

import type { Claimed } from "../../store/store.js";
import { defined, equal, equalSets, kindOf, matches, ok, only } from "./assert.js";
import {
  aPart,
  aRunner,
  aStep,
  anEvent,
  claim,
  claimOne,
  commit,
  commitOk,
  create,
  finished,
  inState,
  laneOf,
  leasedRun,
  leaseMs,
  letRunnersDie,
  loadOne,
  parkFor,
  parkUntil,
  release,
  sendTo,
  someInstances,
  currentStatus,
  takeOver,
  targetOf,
  waiting,
  pause,
  resume,
} from "./build.js";
import { atOnce, inTime, storesOn } from "./concurrency.js";
import type { ConformanceCase } from "./fixture.js";
import { realTime, stillTime } from "./world.js";

const iidsOf = (runs: readonly { readonly iid: string }[]) => runs.map(({ iid }) => iid);

export const claimCases: readonly ConformanceCase[] = [
  stillTime("a claim takes a ticket when it is due and not a millisecond before", async (world) => {
    const { store, clock } = world;
    const run = await waiting(store, { wake: { inMs: 1_000 } });
    const runner = await aRunner(store);
    clock.advance(999);
    equal(await claim(store, runner), [], "999 ms later");
    clock.advance(1);
    equal(iidsOf(await claim(store, runner)), [run.iid], "1,000 ms later");
  }),

  stillTime("a claim takes no more than its limit", async ({ store }) => {
    await store.create(someInstances(10));
    const runner = await aRunner(store);
    equal(await claim(store, runner, { limit: 0 }), [], "limit 0");
    equal((await claim(store, runner, { limit: 4 })).length, 4, "limit 4");
    equal((await claim(store, runner, { limit: 100 })).length, 6, "limit 100");
    equal(await claim(store, runner), [], "nothing left");
  }),

  stillTime("new runs are claimed oldest first", async ({ store, clock }) => {
    const created: string[] = [];
    for (let i = 0; i < 4; i++) {
      created.push((await create(store)).iid);
      clock.advance(1);
    }
    const runner = await aRunner(store);
    equal(
      iidsOf(await claim(store, runner, { limit: 3 })).toSorted(),
      created.slice(0, 3),
      "three",
    );
    equal(iidsOf(await claim(store, runner, { limit: 3 })), created.slice(3), "the last");
  }),

  stillTime("resuming runs are claimed by due time, not by age", async ({ store, clock }) => {
    const late = await waiting(store, { wake: { inMs: 2_000 } });
    const early = await waiting(store, { wake: { inMs: 1_000 } });
    clock.advance(5_000);
    const runner = await aRunner(store);
    equal(iidsOf(await claim(store, runner, { limit: 1 })), [early.iid], "first");
    equal(iidsOf(await claim(store, runner, { limit: 1 })), [late.iid], "second");
  }),

  stillTime("the oldest are claimed first across lanes", async ({ store, clock }) => {
    const created: string[] = [];
    const lanes = ["a", "b", "c"].map((workflow) => laneOf({ workflow }));
    for (const workflow of ["b", "a", "c", "a", "b"]) {
      created.push((await create(store, { workflow })).iid);
      clock.advance(10);
    }
    const runner = await aRunner(store);
    const three = await claim(store, runner, { lanes, limit: 3 });
    equalSets(iidsOf(three), created.slice(0, 3), "the first three");
    equalSets(iidsOf(await claim(store, runner, { lanes })), created.slice(3), "the others");
  }),

  stillTime("resuming runs go before new ones", async ({ store, clock }) => {
    const resuming = await waiting(store, { wake: { inMs: 10 } });
    const older = await create(store);
    clock.advance(1_000);
    const runner = await aRunner(store);
    equal(iidsOf(await claim(store, runner, { limit: 1 })), [resuming.iid], "first");
    equal(iidsOf(await claim(store, runner, { limit: 1 })), [older.iid], "second");
  }),

  stillTime("claiming a resuming run keeps the order of the new runs", async (world) => {
    const { store, clock } = world;
    const older = await create(store);
    const resuming = await waiting(store, { workflow: "resuming", wake: { inMs: 10 } });
    clock.advance(20);
    const newer = await create(store);
    const lanes = [older, resuming].map(laneOf);
    const runner = await aRunner(store);
    for (const expected of [resuming, older, newer]) {
      const claimed = await claim(store, runner, { lanes, limit: 1 });
      equal(iidsOf(claimed), [expected.iid], "the next one");
    }
  }),

  stillTime("claims of one lane do not change the order in another", async ({ store, clock }) => {
    const first = await create(store);
    clock.advance(10);
    const other = await create(store, { workflow: "other" });
    clock.advance(10);
    await create(store);
    const runner = await aRunner(store);
    await claim(store, runner, { lanes: [laneOf(other)], limit: 1 });
    const claimed = await claim(store, runner, { lanes: [laneOf(first)], limit: 1 });
    equal(iidsOf(claimed), [first.iid], "the oldest of the lane");
  }),

  stillTime(
    "a run that falls due in the past is claimed within a second",
    async ({ store, clock }) => {
      const runner = await aRunner(store);
      await store.create(someInstances(20));
      await claim(store, runner, { limit: 1 });
      const late = await leasedRun(store, { workflow: "late", runner });
      await commitOk(store, aPart(late, { next: parkUntil({ at: clock.now() - 60_000 }) }));
      const lanes = ["order", "late"].map((workflow) => laneOf({ workflow }));
      const claimed: string[] = [];
      for (let i = 0; i < 10; i++) {
        clock.advance(100);
        claimed.push(...iidsOf(await claim(store, runner, { lanes, limit: 1 })));
      }
      ok(claimed.includes(late.iid), "claimed within a second");
    },
  ),

  stillTime("a share of a claim is reserved for new runs", async ({ store, clock }) => {
    const runner = await aRunner(store, 1_000_000);
    for (let i = 0; i < 8; i++) await waiting(store, { runner, wake: { inMs: 10 } });
    await store.create(someInstances(5));
    clock.advance(10);
    const split = async (limit: number, reservedForNew: number) => {
      const claimed = await claim(store, runner, { limit, reservedForNew });
      const resuming = claimed.filter((run) => run.resuming).length;
      return { resuming, fresh: claimed.length - resuming };
    };
    equal(await split(5, 2), { resuming: 3, fresh: 2 }, "limit 5 with 2 reserved");
    equal(await split(1, 1), { resuming: 0, fresh: 1 }, "limit 1 with 1 reserved");
    equal(await split(3, 0), { resuming: 3, fresh: 0 }, "limit 3 with none reserved");
    equal(await split(10, 1), { resuming: 2, fresh: 2 }, "a claim that takes all");
  }),

  stillTime("a share reserved for new runs goes to resuming ones if none is new", async (world) => {
    const { store, clock } = world;
    const runner = await aRunner(store, 1_000_000);
    for (let i = 0; i < 4; i++) await waiting(store, { runner, wake: { inMs: 10 } });
    clock.advance(10);
    equal((await claim(store, runner, { limit: 3, reservedForNew: 2 })).length, 3, "resuming runs");
  }),

  stillTime("a claim takes only from the queues and handlers it names", async ({ store }) => {
    const here = await create(store, { workflow: "order", queue: "fast" });
    await create(store, { workflow: "order", queue: "slow" });
    await create(store, { workflow: "invoice", queue: "fast" });
    await create(store, { workflow: "order", queue: "Fast" });
    const runner = await aRunner(store);
    const lanes = [{ queue: "fast", handler: "order" }];
    equal(iidsOf(await claim(store, runner, { lanes })), [here.iid], "claimed");
    equal(await claim(store, runner, { lanes: [] }), [], "claimed from no lane");
  }),

  stillTime("a claim can name many lanes", async ({ store }) => {
    const runs = Array.from({ length: 60 }, (_, i) => ({
      workflow: `workflow-${i % 20}`,
      queue: `queue-${i % 3}`,
    }));
    const created = [];
    for (const given of runs) created.push((await create(store, given)).iid);
    const claimed = await claim(store, await aRunner(store), { lanes: runs.map(laneOf) });
    equalSets(iidsOf(claimed), created, "claimed");
  }),

  stillTime("a claim never takes leased, paused or terminal runs", async ({ store, clock }) => {
    for (const state of [
      "running",
      "waitingForPause",
      "paused",
      "complete",
      "errored",
      "terminated",
    ] as const) {
      await inState(store, state);
    }
    const parked = await waiting(store, { wake: { inMs: 10 } });
    await store.control(targetOf(parked), pause);
    clock.advance(1_000);
    equal(await claim(store, await aRunner(store)), [], "claimed");
  }),

  stillTime("a claim of a new run brings all that it needs to start", async ({ store, clock }) => {
    const created = await create(store, { params: '{"a":[1]}' });
    const createdAt = clock.now();
    clock.advance(250);
    const answer = kindOf(
      await store.claim({
        runner: await aRunner(store),
        lanes: [laneOf(created)],
        limit: 1,
        reservedForNew: 0,
      }),
      "ok",
      "claim",
    );
    equal(answer.now, clock.now(), "now");
    equal(
      answer.claimed,
      [
        {
          ...targetOf(created),
          iid: created.iid,
          runNumber: 1,
          claimNumber: 1,
          resuming: false,
          takenOver: false,
          takeovers: 0,
          eventCount: 0,
          historyBytes: 0,
          createdAt,
          params: '{"a":[1]}',
          now: clock.now(),
        },
      ],
      "claimed",
    );
  }),

  stillTime("a claim of a resuming run brings its counts", async ({ store, clock }) => {
    const run = await leasedRun(store);
    await sendTo(store, run, anEvent("one"));
    await sendTo(store, run, anEvent("two"));
    const next = parkUntil({ inMs: 10 }, 12_345);
    await commitOk(store, aPart(run, { seenEvents: 2, next }));
    clock.advance(10);
    matches(
      await claimOne(store),
      { claimNumber: 2, resuming: true, takenOver: false, eventCount: 2, historyBytes: 12_345 },
      "claimed",
    );
  }),

  stillTime("a claim of a new run tells how many events it has", async ({ store }) => {
    const run = await create(store);
    await sendTo(store, run);
    matches(await claimOne(store), { resuming: false, eventCount: 1 }, "claimed");
  }),

  stillTime("every claim raises the claim number by one", async ({ store }) => {
    let run = await leasedRun(store);
    for (let claims = 1; claims <= 5; claims++) {
      equal(run.claimNumber, claims, "the claim number");
      await commitOk(store, aPart(run, { next: release() }));
      run = await claimOne(store);
    }
  }),

  stillTime("a released run is claimed as resuming", async ({ store }) => {
    const run = await leasedRun(store);
    await commitOk(store, aPart(run, { steps: [aStep(1)], next: release() }));
    equal((await claimOne(store)).resuming, true, "resuming");
  }),

  stillTime("a run paused before its code ran is still claimed as new", async ({ store }) => {
    const run = await create(store);
    await store.control(targetOf(run), pause);
    await store.control(targetOf(run), resume);
    matches(await claimOne(store), { resuming: false, params: run.params }, "claimed");
  }),

  stillTime(
    "a run whose lease ran out is not claimed before its owner is declared dead",
    async (world) => {
      const { store, clock } = world;
      const run = await leasedRun(store);
      clock.advance(leaseMs * 10);
      const runner = await aRunner(store);
      equal(await claim(store, runner), [], "before");
      equal(await store.declareDead(), [run.runner], "declared dead");
      equal(iidsOf(await claim(store, runner)), [run.iid], "after");
    },
  ),

  stillTime("a run taken over from a dead runner is marked as such, and resumes", async (world) => {
    const run = await leasedRun(world.store);
    await commitOk(world.store, aPart(run, { steps: [aStep(1)] }));
    const taken = await takeOver(world, run);
    matches(taken, { claimNumber: 2, takenOver: true, resuming: true, takeovers: 1 }, "claimed");
  }),

  stillTime("takeovers are counted until the run parks", async (world) => {
    let run = await leasedRun(world.store);
    for (const takeovers of [1, 2, 3]) {
      run = await takeOver(world, run);
      equal(run.takeovers, takeovers, "takeovers in a row");
      await commitOk(world.store, aPart(run, { takeovers }));
    }
    const part = aPart(run, { partNumber: 2, next: parkUntil({ inMs: 0 }) });
    await commitOk(world.store, part);
    run = await claimOne(world.store);
    matches(run, { takeovers: 0, takenOver: false }, "after a park");
    equal((await takeOver(world, run)).takeovers, 1, "after the next death");
  }),

  stillTime("a takeover counts even if the new owner dies before it commits", async (world) => {
    const first = await leasedRun(world.store);
    const second = await takeOver(world, first);
    equal((await takeOver(world, second)).takeovers, 2, "takeovers in a row");
  }),

  stillTime("runs of dead runners are claimed before all others", async (world) => {
    const { store } = world;
    const orphan = await leasedRun(store);
    await letRunnersDie(world);
    await waiting(store, { wake: { inMs: 0 }, workflow: "invoice" });
    await create(store);
    const lanes = ["order", "invoice"].map((workflow) => laneOf({ workflow }));
    const claimed = await claim(store, await aRunner(store), { lanes, limit: 1 });
    equal(iidsOf(claimed), [orphan.iid], "claimed");
  }),

  stillTime("runs of dead runners are taken only from the lanes named", async (world) => {
    await leasedRun(world.store, { workflow: "invoice" });
    await letRunnersDie(world);
    equal(await claim(world.store, await aRunner(world.store)), [], "claimed");
  }),

  stillTime(
    "a dead runner's run that was asked to pause is paused without running",
    async (world) => {
      const { store } = world;
      const run = await leasedRun(store);
      await store.control(targetOf(run), pause);
      await letRunnersDie(world);
      equal(await claim(store, await aRunner(store)), [], "claimed");
      equal(await currentStatus(store, run), "paused", "the status");
      equal(
        await commit(store, aPart(run, { steps: [aStep(1)] })),
        { kind: "lost" },
        "the dead turn",
      );
      await store.control(targetOf(run), resume);
      const resumed = { resuming: true, takenOver: false, takeovers: 1 };
      matches(await claimOne(store), resumed, "after the resume");
    },
  ),

  stillTime("a dead runner cannot claim", async (world) => {
    const { store } = world;
    const dead = await aRunner(store);
    await letRunnersDie(world);
    await create(store);
    const lanes = [laneOf({ workflow: "order" })];
    equal(
      await store.claim({ runner: dead, lanes, limit: 1, reservedForNew: 0 }),
      { kind: "dead" },
      "the answer",
    );
    equal((await claim(store, await aRunner(store))).length, 1, "left for others");
  }),

  stillTime("a claim whose reply was lost can be adopted at no cost", async ({ store }) => {
    const created = await create(store, { params: '"p"' });
    const claimed = await claimOne(store);
    const adopted = only(await store.adopt(claimed.runner, [created.iid]), "adopted");
    // Nobody knows whether the run's code ever ran, so the answer may say that the run resumes.
    const { runNumber, claimNumber, takenOver, takeovers, eventCount, params } = claimed;
    const expected = { runNumber, claimNumber, takenOver, takeovers, eventCount, params };
    matches(adopted, expected, "adopted");
    equal((await commitOk(store, aPart(adopted))).state, "leased", "a commit");
  }),

  stillTime(
    "a takeover whose reply was lost is adopted as a takeover until it is charged",
    async (world) => {
      const { store } = world;
      const run = await takeOver(world, await leasedRun(store));
      const adopted = only(await store.adopt(run.runner, [run.iid]), "adopted");
      matches(
        adopted,
        { takenOver: true, takeovers: 1, resuming: true, claimNumber: 2 },
        "adopted",
      );
      await commitOk(store, aPart(adopted, { takeovers: 1, steps: [aStep(1)] }));
      const again = only(await store.adopt(run.runner, [run.iid]), "adopted again");
      matches(again, { takenOver: false, takeovers: 1 }, "adopted after the charge");
    },
  ),

  stillTime("a runner adopts only what it owns", async ({ store, clock }) => {
    const [mine, theirs] = [await leasedRun(store), await leasedRun(store)];
    const parked = await waiting(store, { runner: mine.runner, wake: { inMs: 1_000 } });
    const iids = [mine.iid, theirs.iid, parked.iid];
    equal(iidsOf(await store.adopt(mine.runner, iids)), [mine.iid], "adopted");
    clock.advance(1);
    equal(await store.adopt(mine.runner, []), [], "adopted of none");
  }),

  realTime("concurrent claimers share no ticket and together take all", async ({ db }) => {
    const stores = await storesOn(db, 8);
    const lanes = ["a", "b", "c"].map((workflow) => laneOf({ workflow }));
    const created = lanes.flatMap(({ handler }) => someInstances(100, { workflow: handler }));
    await db.store.create(created);
    const takeAll = async (store: (typeof stores)[number]) => {
      const runner = await aRunner(store);
      const taken: Claimed[] = [];
      // A claim may come back short while others hold the locks. The next claim takes more.
      while (taken.length < created.length) {
        const some = await claim(store, runner, { lanes, limit: 7, reservedForNew: 2 });
        taken.push(...some);
        if (some.length === 0 && (await store.nextDueInMs(lanes)) === null) break;
      }
      return taken;
    };
    const taken = (
      await atOnce(
        stores.map((store) => () => takeAll(store)),
        "claims",
      )
    ).flat();
    equalSets(iidsOf(taken), iidsOf(created), "claimed");
    equal([...new Set(taken.map((run) => run.claimNumber))], [1], "the claim numbers");
  }),

  realTime("a claim is full even while events are sent to the runs it takes", async ({ db }) => {
    const [store, ...senders] = await storesOn(db, 6);
    const runner = await aRunner(store);
    for (let round = 0; round < 20; round++) {
      const workflow = `full-${round}`;
      const created = someInstances(300, { workflow });
      await store.create(created);
      const claiming = { isOver: false };
      const sending = senders.map(async (sender) => {
        // The events go to the last runs that the claim takes, because those are locked last.
        for (let n = 0; !claiming.isOver; n = (n + 1) % 20) await sendTo(sender, created[99 - n]!);
      });
      const lanes = [laneOf({ workflow })];
      const claimed = await claim(store, runner, { lanes, limit: 100, reservedForNew: 100 });
      claiming.isOver = true;
      await inTime(Promise.all(sending), "sending");
      equal(claimed.length, 100, `claimed in round ${round}`);
    }
  }),

  stillTime("concurrent takeovers share no ticket and together take all", async (world) => {
    const { db, store } = world;
    const dead = await aRunner(store);
    const created = someInstances(60);
    await store.create(created, { lease: { runner: dead } });
    const stores = await storesOn(db, 4);
    await letRunnersDie(world);
    const taken = await atOnce(
      stores.map((each) => async () => {
        const runner = await aRunner(each);
        const mine: Claimed[] = [];
        for (let short = 0; short < 20;) {
          const some = await claim(each, runner, { limit: 5 });
          mine.push(...some);
          if (some.length === 0) short++;
        }
        return mine;
      }),
      "takeovers",
    );
    equalSets(iidsOf(taken.flat()), iidsOf(created), "taken over");
    equal([...new Set(taken.flat().map((run) => run.claimNumber))], [2], "the claim numbers");
  }),

  realTime("a claim and its load see the last commit of the previous owner", async ({ db }) => {
    const [one, two] = await storesOn(db, 2);
    const [first, second] = [await aRunner(one), await aRunner(two!)];
    for (let round = 0; round < 30; round++) {
      const workflow = `handover-${round}`;
      const run = await leasedRun(one, { workflow, runner: first });
      const steps = [aStep(1), aStep(2)];
      const give = commitOk(one, aPart(run, { steps, next: parkFor([], { inMs: 0 }) }));
      const take = async () => {
        for (;;) {
          const [taken] = await claim(two!, second, { lanes: [laneOf({ workflow })] });
          if (taken !== undefined) return loadOne(two!, taken);
        }
      };
      const [, loaded] = await inTime(Promise.all([give, take()]), "handover");
      equal(loaded.steps.length, 2, "steps that the new owner sees");
    }
  }),

  stillTime("a finished run leaves no ticket behind", async (world) => {
    const run = await finished(world.store);
    await letRunnersDie(world);
    equal(await claim(world.store, await aRunner(world.store)), [], "claimed");
    equal(await world.store.adopt(run.runner, [run.iid]), [], "adopted");
    defined(await world.store.get(targetOf(run)), "the instance");
  }),
];

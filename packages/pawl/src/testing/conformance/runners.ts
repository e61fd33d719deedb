import { equal, equalSets, kindOf, only } from "./assert.js";
import {
  aPart,
  aRunner,
  aStep,
  anEvent,
  claim,
  commit,
  commitOk,
  complete,
  create,
  laneOf,
  type Leased,
  leasedRun,
  leaseMs,
  letRunnersDie,
  sendTo,
  currentStatus,
  recordedSteps,
  targetOf,
  waiting,
  pause,
  restart,
  terminate,
} from "./build.js";
import { atOnce, storesOn } from "./concurrency.js";
import type { ConformanceCase } from "./fixture.js";
import { realTime, stillTime } from "./world.js";

export const runnerCases: readonly ConformanceCase[] = [
  stillTime("a lease runs out at its end and not a millisecond before", async (world) => {
    const { store, clock } = world;
    const runner = await aRunner(store, 1_000);
    clock.advance(999);
    equal(await store.declareDead(), [], "999 ms later");
    clock.advance(1);
    equal(await store.declareDead(), [runner], "1,000 ms later");
    equal(await store.declareDead(), [], "once more");
  }),

  stillTime("a heartbeat extends the lease from its own time", async ({ store, clock }) => {
    const runner = await aRunner(store, 1_000);
    clock.advance(600);
    equal(
      await store.heartbeat(runner, 2_000),
      { kind: "ok", now: clock.now(), owned: [] },
      "the answer",
    );
    clock.advance(1_999);
    equal(await store.declareDead(), [], "1,999 ms after the heartbeat");
    clock.advance(1);
    equal(await store.declareDead(), [runner], "2,000 ms after the heartbeat");
  }),

  stillTime("nextExpiryInMs tells when an owner may next be dead", async ({ store, clock }) => {
    const me = await aRunner(store, 500);
    equal(await store.nextExpiryInMs(me), null, "while nobody owns anything");
    const run = await leasedRun(store);
    equal(await store.nextExpiryInMs(run.runner), null, "of others, if I am the owner");
    equal(await store.nextExpiryInMs(me), leaseMs, "of the owner");
    clock.advance(100);
    equal(await store.nextExpiryInMs(me), leaseMs - 100, "100 ms later");
    await store.heartbeat(run.runner, leaseMs);
    equal(await store.nextExpiryInMs(me), leaseMs, "after its heartbeat");
    clock.advance(leaseMs + 1);
    equal(await store.nextExpiryInMs(me), 0, "after its lease");
    await store.declareDead();
    equal(await store.nextExpiryInMs(me), null, "after its death");
  }),

  stillTime("a late heartbeat saves a lease that nobody has ended", async ({ store, clock }) => {
    const run = await leasedRun(store);
    clock.advance(leaseMs * 3);
    kindOf(await store.heartbeat(run.runner, leaseMs), "ok", "heartbeat");
    equal(await store.declareDead(), [], "declared dead");
    equal(await claim(store, await aRunner(store)), [], "claimed by another");
  }),

  stillTime("only runners whose lease ran out are declared dead", async ({ store, clock }) => {
    const [short, also] = [await aRunner(store, 1_000), await aRunner(store, 500)];
    const long = await aRunner(store, 5_000);
    clock.advance(2_000);
    equalSets(await store.declareDead(), [short, also], "declared dead");
    kindOf(await store.heartbeat(long, 1_000), "ok", "the other's heartbeat");
  }),

  stillTime("a dead runner stays dead", async (world) => {
    const { store, clock } = world;
    const run = await leasedRun(store);
    await letRunnersDie(world);
    equal(await store.heartbeat(run.runner, leaseMs), { kind: "dead" }, "a heartbeat");
    await store.register(run.runner, leaseMs).catch(() => {}); // refused or without effect
    equal(await store.heartbeat(run.runner, leaseMs), { kind: "dead" }, "after registering again");
    clock.advance(-leaseMs);
    equal(
      await store.heartbeat(run.runner, leaseMs),
      { kind: "dead" },
      "after the clock went back",
    );
    equal((await claim(store, await aRunner(store))).length, 1, "claimed by another");
  }),

  ...["dead", "retired"].map((how) =>
    stillTime(
      `a runner that is ${how} long after its lease ran out is remembered`,
      async (world) => {
        const { store, clock } = world;
        const runner = await aRunner(store);
        clock.advance(24 * 3_600_000);
        if (how === "retired") await store.retire(runner);
        equal(await store.declareDead(), how === "dead" ? [runner] : [], "declared dead");
        clock.advance(9 * 60_000);
        await store.declareDead();
        await store.register(runner, leaseMs);
        equal(await store.heartbeat(runner, leaseMs), { kind: "dead" }, "the answer");
      },
    ),
  ),

  stillTime("a heartbeat of a runner that never registered answers dead", async ({ store }) => {
    equal(await store.heartbeat("never registered", leaseMs), { kind: "dead" }, "the answer");
  }),

  stillTime("registering again does not lose the runner's runs", async ({ store, clock }) => {
    const run = await leasedRun(store);
    await store.register(run.runner, leaseMs); // as if the reply to the first had been lost
    clock.advance(1);
    const answer = kindOf(await store.heartbeat(run.runner, leaseMs), "ok", "heartbeat");
    equal(
      answer.owned.map(({ iid }) => iid),
      [run.iid],
      "owned",
    );
  }),

  stillTime("a heartbeat lists everything that the runner owns", async ({ store }) => {
    const runner = await aRunner(store);
    const [plain, asked, sent] = [
      await leasedRun(store, { runner }),
      await leasedRun(store, { runner }),
      await leasedRun(store, { runner }),
    ];
    await waiting(store, { runner });
    await leasedRun(store);
    await store.control(targetOf(asked), pause);
    await sendTo(store, sent, anEvent("a"));
    await sendTo(store, sent, anEvent("b"));
    const { owned } = kindOf(await store.heartbeat(runner, leaseMs), "ok", "heartbeat");
    const ticket = {
      runNumber: 1,
      claimNumber: 1,
      pauseRequested: false,
      eventCount: 0,
    };
    equal(
      owned.toSorted((a, b) => (a.iid < b.iid ? -1 : 1)),
      [
        { ...ticket, iid: plain.iid },
        { ...ticket, iid: asked.iid, pauseRequested: true },
        { ...ticket, iid: sent.iid, eventCount: 2 },
      ],
      "owned",
    );
  }),

  stillTime("a heartbeat leaves out the runs that are lost", async ({ store }) => {
    const runner = await aRunner(store);
    const [kept, terminated, restarted, ended] = [
      await leasedRun(store, { runner }),
      await leasedRun(store, { runner }),
      await leasedRun(store, { runner }),
      await leasedRun(store, { runner }),
    ];
    await store.control(targetOf(terminated), terminate("t"));
    await store.control(targetOf(restarted), restart("r"));
    await commitOk(store, aPart(ended, { next: complete() }));
    const { owned } = kindOf(await store.heartbeat(runner, leaseMs), "ok", "heartbeat");
    equal(
      owned.map(({ iid }) => iid),
      [kept.iid],
      "owned",
    );
  }),

  stillTime("a heartbeat shows tickets of a claim whose reply was lost", async ({ store }) => {
    const created = await create(store);
    const runner = await aRunner(store);
    await store.claim({ runner, lanes: [laneOf(created)], limit: 1, reservedForNew: 0 });
    const { owned } = kindOf(await store.heartbeat(runner, leaseMs), "ok", "heartbeat");
    equal(only(owned, "owned").iid, created.iid, "the unknown ticket");
    const adopted = only(await store.adopt(runner, [created.iid]), "adopted");
    equal(
      (await commitOk(store, aPart(adopted, { next: complete() }))).state,
      "finished",
      "its run",
    );
  }),

  stillTime("a retired runner's runs can be claimed at once", async ({ store }) => {
    const run = await leasedRun(store);
    await store.retire(run.runner);
    const claimed = await claim(store, await aRunner(store));
    equal(
      claimed.map(({ iid }) => iid),
      [run.iid],
      "claimed",
    );
    equal(await commit(store, aPart(run, { steps: [aStep(1)] })), { kind: "lost" }, "the old turn");
  }),

  stillTime("a retired runner never returns", async ({ store, clock }) => {
    const runner = await aRunner(store);
    await store.retire(runner);
    await store.retire(runner);
    equal(await store.heartbeat(runner, leaseMs), { kind: "dead" }, "a heartbeat");
    await create(store);
    const lanes = [laneOf({ workflow: "order" })];
    const answer = await store.claim({ runner, lanes, limit: 1, reservedForNew: 0 });
    equal(answer, { kind: "dead" }, "a claim");
    clock.advance(leaseMs);
    equal(await store.declareDead(), [], "declared dead afterwards");
  }),

  stillTime("a runner declared dead may still commit runs that nobody took", async (world) => {
    const { store } = world;
    const run = await leasedRun(store);
    await letRunnersDie(world);
    await commitOk(store, aPart(run, { steps: [aStep(1)], next: complete() }));
    equal((await recordedSteps(store, run)).length, 1, "steps");
    equal(await currentStatus(store, run), "complete", "the status");
    equal(await claim(store, await aRunner(store)), [], "claimed");
  }),

  stillTime("runner ids that look alike are different", async ({ store, clock }) => {
    await store.register("runner", 1_000);
    await store.register("Runner", 5_000);
    await store.register("runner ", 5_000);
    clock.advance(1_000);
    equal(await store.declareDead(), ["runner"], "declared dead");
    kindOf(await store.heartbeat("Runner", 1_000), "ok", "heartbeat");
    kindOf(await store.heartbeat("runner ", 1_000), "ok", "heartbeat");
  }),

  stillTime("many at once declare a runner dead exactly once", async ({ db, store, clock }) => {
    const stores = await storesOn(db, 4);
    for (let round = 0; round < 5; round++) {
      const runner = await aRunner(store, 1_000);
      clock.advance(1_000);
      const answers = await atOnce(
        stores.map((each) => () => each.declareDead()),
        "declareDead",
      );
      equal(answers.flat(), [runner], "declared dead");
    }
  }),

  realTime(
    "heartbeats and commits of a runner do not disturb each other",
    async ({ db, store }) => {
      const [, beating] = await storesOn(db, 2);
      const runner = await aRunner(store);
      const runs: Leased[] = [];
      for (let i = 0; i < 10; i++) runs.push(await leasedRun(store, { runner }));
      const commits = async () => {
        for (let n = 1; n <= 30; n++) {
          const parts = runs.map((run) => aPart(run, { partNumber: n, steps: [aStep(n)] }));
          const answers = await store.commit(parts);
          equal(
            answers.map(({ kind }) => kind),
            Array(10).fill("ok"),
            "the answers",
          );
        }
      };
      const heartbeats = async () => {
        for (let n = 0; n < 60; n++) {
          const answer = kindOf(await beating!.heartbeat(runner, leaseMs), "ok", "heartbeat");
          equal(answer.owned.length, 10, "owned");
        }
      };
      await atOnce([commits, heartbeats], "commits and heartbeats");
    },
  ),
];

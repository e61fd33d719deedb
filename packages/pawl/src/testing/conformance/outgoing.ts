import { equal, matches, only } from "./assert.js";
import {
  aDelivery,
  aPart,
  aRunner,
  aStep,
  aWait,
  anAttempt,
  anInstance,
  claim,
  claimOne,
  commitOk,
  complete,
  create,
  dueIn,
  recordedEvents,
  leasedRun,
  laneOf,
  parkUntil,
  sendTo,
  currentStatus,
  recordedSteps,
  targetOf,
  waiting,
  restart,
} from "./build.js";
import { atOnce, storesOn } from "./concurrency.js";
import type { ConformanceCase } from "./fixture.js";
import { realTime, stillTime } from "./world.js";

/** Parts that send something out of their run: new runs, and events for others. */
export const outgoingCases: readonly ConformanceCase[] = [
  stillTime("a commit spawns instances", async ({ store, clock }) => {
    const run = await leasedRun(store);
    const child = anInstance({ workflow: "child", params: '"p"', origin: "parent/1/1" });
    clock.advance(50);
    await commitOk(store, aPart(run, { spawns: [child] }));
    matches(
      (await store.get(targetOf(child)))!,
      { status: "queued", createdAt: clock.now(), origin: "parent/1/1", params: '"p"' },
      "the child",
    );
    matches(await claimOne(store, child), { iid: child.iid, params: '"p"' }, "claimed");
  }),

  stillTime(
    "a spawn of a taken id affects neither the rest of its part nor the id's holder",
    async (world) => {
      const { store } = world;
      const taken = await create(store, { workflow: "child", params: '"first"' });
      const run = await leasedRun(store);
      const spawns = [
        anInstance({ ...targetOf(taken), params: '"second"' }),
        anInstance({ workflow: "child" }),
      ];
      await commitOk(store, aPart(run, { steps: [aStep(1)], spawns }));
      matches(
        (await store.get(targetOf(taken)))!,
        { iid: taken.iid, params: '"first"' },
        "the first",
      );
      equal(await currentStatus(store, spawns[1]!), "queued", "the other spawn");
      equal((await recordedSteps(store, run)).length, 1, "steps");
    },
  ),

  stillTime("two parts of a batch may spawn the same id, and the first wins", async ({ store }) => {
    const runs = [await leasedRun(store), await leasedRun(store)];
    const children = runs.map((_, i) => anInstance({ workflow: "child", id: "c", params: `${i}` }));
    const answers = await store.commit(
      runs.map((run, i) => aPart(run, { steps: [aStep(1)], spawns: [children[i]!] })),
    );
    equal(
      answers.map(({ kind }) => kind),
      ["ok", "ok"],
      "the answers",
    );
    equal((await store.get(targetOf(children[0]!)))?.params, "0", "the child");
    equal(
      (await claim(store, await aRunner(store), { lanes: [laneOf(children[0]!)] })).length,
      1,
      "tickets",
    );
  }),

  realTime("spawns of the same ids from many connections apply once", async ({ db }) => {
    const stores = await storesOn(db, 3);
    for (let round = 0; round < 8; round++) {
      const ids = Array.from({ length: 6 }, (_, i) => `child-${round}-${i}`);
      const work = stores.map((store, i) => async () => {
        const run = await leasedRun(store, { workflow: `parent-${round}-${i}` });
        const order = i % 2 === 0 ? ids : ids.toReversed();
        const spawns = order.map((id) => anInstance({ workflow: "child", id }));
        return commitOk(store, aPart(run, { steps: [aStep(1)], spawns }));
      });
      await atOnce(work, "spawns");
    }
    const lanes = [laneOf({ workflow: "child" })];
    equal((await claim(db.store, await aRunner(db.store), { lanes })).length, 48, "children");
  }),

  stillTime("a delivery reaches and wakes the run it is for", async ({ store }) => {
    const parent = await waiting(store, { workflow: "parent", types: ["child-done"] });
    const run = await leasedRun(store);
    const delivery = aDelivery(parent.iid, { kind: "child", type: "child-done", payload: '"r"' });
    await commitOk(store, aPart(run, { deliveries: [delivery], next: complete() }));
    equal(await store.moveInbox(10), 1, "moved");
    matches(
      only(await recordedEvents(store, parent), "events"),
      { number: 1, kind: "child", type: "child-done", payload: '"r"' },
      "the event",
    );
    equal(await dueIn(store, parent), 0, "due");
  }),

  stillTime("deliveries keep the order in which they were given", async ({ store }) => {
    const target = await create(store, { workflow: "target" });
    const run = await leasedRun(store);
    const ids = ["m", "z", "a", "Z", "0"];
    const deliveries = ids.map((eventId) => aDelivery(target.iid, { eventId, payload: eventId }));
    await commitOk(store, aPart(run, { deliveries: deliveries.slice(0, 3) }));
    await commitOk(store, aPart(run, { partNumber: 2, deliveries: deliveries.slice(3) }));
    while ((await store.moveInbox(2)) > 0);
    equal(
      (await recordedEvents(store, target)).map(({ payload }) => payload),
      ids,
      "events",
    );
  }),

  stillTime("one event id may be delivered to many runs", async ({ store }) => {
    const targets = [
      await create(store, { workflow: "a" }),
      await create(store, { workflow: "b" }),
    ];
    const run = await leasedRun(store);
    const deliveries = targets.map(({ iid }) => aDelivery(iid, { eventId: "same" }));
    await commitOk(store, aPart(run, { deliveries }));
    while ((await store.moveInbox(10)) > 0);
    for (const target of targets) equal((await recordedEvents(store, target)).length, 1, "events");
  }),

  stillTime("a delivery to a run that was replaced is dropped", async ({ store }) => {
    const parent = await waiting(store, { workflow: "parent" });
    const run = await leasedRun(store);
    await store.control(targetOf(parent), restart("restart"));
    const deliveries = [aDelivery(parent.iid, { runNumber: 1 })];
    await commitOk(store, aPart(run, { deliveries }));
    await store.moveInbox(10);
    equal(await store.moveInbox(10), 0, "left in the inbox");
    equal(await recordedEvents(store, parent, 2), [], "events of the new run");
  }),

  stillTime("one part can write everything at once", async ({ store, clock }) => {
    const other = await create(store, { workflow: "other" });
    const run = await leasedRun(store);
    await sendTo(store, run);
    const child = anInstance({ workflow: "child" });
    clock.advance(10);
    const answer = await commitOk(
      store,
      aPart(run, {
        seenEvents: 1,
        steps: [aStep(1), aWait(2, { inMs: 500 })],
        attempts: [anAttempt(1, 1)],
        consumed: [{ number: 1, ord: 1 }],
        spawns: [child],
        deliveries: [aDelivery(other.iid)],
        next: parkUntil({ inMs: 500 }),
      }),
    );
    equal(answer.state, "parked", "the state");
    await store.moveInbox(10);
    equal((await recordedSteps(store, run)).length, 2, "steps");
    equal(only(await recordedEvents(store, run), "events").consumedBy, 1, "consumed");
    equal(await currentStatus(store, child), "queued", "the child");
    equal((await recordedEvents(store, other)).length, 1, "delivered");
    equal(await dueIn(store, run), 500, "due");
  }),
];

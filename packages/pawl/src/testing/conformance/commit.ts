import type { StepRecord } from "../../store/records.js";
import type { PartAnswer } from "../../store/store.js";
import { defined, equal, kindOf, matches, ok, only, rejection } from "./assert.js";
import {
  aDelivery,
  aPart,
  aRunner,
  aRunningStep,
  aStep,
  aWait,
  anAttempt,
  anEvent,
  anInstance,
  claim,
  claimOne,
  commit,
  commitOk,
  complete,
  create,
  dueIn,
  entriesOf,
  eventsOf,
  failWith,
  type Leased,
  leased,
  laneOf,
  leaseMs,
  loadOne,
  parkFor,
  parkUntil,
  release,
  send,
  someInstances,
  statusOf,
  stepsOf,
  takeOver,
  targetOf,
  unique,
  waiting,
  watch,
} from "./build.js";
import { atOnce, storesOn } from "./concurrency.js";
import type { ConformanceCase } from "./fixture.js";
import { hostileTexts, mebibyteText } from "./text.js";
import { realTime, stillTime, type StillWorld } from "./world.js";

const lost: PartAnswer = { kind: "lost" };

/** Every way to lose a claim. */
const fences: Readonly<Record<string, (world: StillWorld, run: Leased) => Promise<unknown>>> = {
  "a takeover": takeOver,
  "a restart": ({ store }, run) => store.restart(targetOf(run), "restart"),
  "a terminate": ({ store }, run) => store.terminate(targetOf(run), "terminate"),
  "a release and another claim": async ({ store }, run) => {
    await commitOk(store, aPart(run, { next: release() }));
    await claimOne(store, run, run.runner);
  },
  "an end and a restart": async ({ store }, run) => {
    await commitOk(store, aPart(run, { next: complete() }));
    await store.restart(targetOf(run), "restart");
  },
  "a restart and another claim": async ({ store }, run) => {
    await store.restart(targetOf(run), "restart");
    await claimOne(store, run, run.runner);
  },
};

export const commitCases: readonly ConformanceCase[] = [
  stillTime("a commit answers with the time and the lease kept", async ({ store, clock }) => {
    const run = await leased(store);
    clock.advance(123);
    equal(
      await store.commit([aPart(run, { steps: [aStep(1)] })]),
      [{ kind: "ok", now: clock.now(), state: "leased", pauseRequested: false, events: [] }],
      "the answer",
    );
    equal(await statusOf(store, run), "running", "the status");
  }),

  stillTime("a commit writes steps as they are", async ({ store, clock }) => {
    const run = await leased(store);
    clock.advance(5_000);
    const now = clock.now();
    await commitOk(
      store,
      aPart(run, {
        steps: [
          aStep(1, { tookMs: 40, result: '{"a":1}' }),
          aStep(2, {
            status: "errored",
            attempts: 3,
            tookMs: 40,
            result: null,
            error: '{"message":"e"}',
          }),
          aRunningStep(3, { tookMs: 2_000, attempts: 2 }),
          aWait(4, { inMs: 60_000 }),
          aWait(5, { at: now + 1_500 }, { type: "waitForEvent", waitKey: "paid" }),
          aWait(6, null, { type: "some later kind", count: 7 }),
        ],
      }),
    );
    const recorded = (ord: number, given: Partial<StepRecord>): StepRecord => ({
      ord,
      name: `step ${ord}`,
      count: 1,
      type: "do",
      status: "waiting",
      seq: null,
      calledAfter: ord - 1,
      attempts: 0,
      startedAt: now,
      endedAt: null,
      wakeAt: null,
      waitKey: null,
      result: null,
      error: null,
      claimNumber: 1,
      ...given,
    });
    const ended = { startedAt: now - 40, endedAt: now };
    equal(
      (await stepsOf(store, run)).toSorted((a, b) => a.ord - b.ord),
      [
        recorded(1, { status: "completed", seq: 1, attempts: 1, result: '{"a":1}', ...ended }),
        recorded(2, { status: "errored", seq: 2, attempts: 3, error: '{"message":"e"}', ...ended }),
        recorded(3, { status: "running", attempts: 2, startedAt: now - 2_000 }),
        recorded(4, { type: "sleep", wakeAt: now + 60_000 }),
        recorded(5, { type: "waitForEvent", wakeAt: now + 1_500, waitKey: "paid" }),
        recorded(6, { type: "some later kind", count: 7 }),
      ],
      "the steps",
    );
  }),

  stillTime("a step keeps its start from its first write", async ({ store, clock }) => {
    const run = await leased(store);
    const startedAt = clock.now();
    await commitOk(store, aPart(run, { steps: [aRunningStep(1)] }));
    clock.advance(4_000);
    await commitOk(store, aPart(run, { partNumber: 2, steps: [aStep(1, { tookMs: 10 })] }));
    matches(
      only(await stepsOf(store, run), "steps"),
      { status: "completed", startedAt, endedAt: clock.now() },
      "the step",
    );
  }),

  stillTime("a newer part overwrites a step and an older one never does", async ({ store }) => {
    const run = await leased(store);
    const older = aPart(run, { steps: [aRunningStep(1)] });
    await commitOk(store, older);
    await commitOk(store, aPart(run, { partNumber: 2, steps: [aStep(1, { result: '"new"' })] }));
    await commitOk(store, older);
    matches(
      only(await stepsOf(store, run), "steps"),
      { status: "completed", result: '"new"' },
      "the step",
    );
  }),

  stillTime("a newer claim overwrites steps whatever the part number", async (world) => {
    const { store } = world;
    const run = await leased(store);
    await commitOk(store, aPart(run, { partNumber: 9, steps: [aRunningStep(1)] }));
    const taken = await takeOver(world, run);
    await commitOk(store, aPart(taken, { steps: [aRunningStep(1, { attempts: 2 })] }));
    matches(
      only(await stepsOf(store, run), "steps"),
      { attempts: 2, claimNumber: 2, startedAt: run.now },
      "the step",
    );
  }),

  stillTime("a commit writes attempts beside their step", async ({ store, clock }) => {
    const run = await leased(store);
    clock.advance(10_000);
    const first = { ord: 1, n: 1, startedAt: clock.now() - 700, endedAt: clock.now() };
    const attempts = [anAttempt(1, 1, { tookMs: 700, error: '{"message":"first"}' })];
    await commitOk(store, aPart(run, { steps: [aRunningStep(1)], attempts }));
    clock.advance(1_000);
    await commitOk(
      store,
      aPart(run, {
        partNumber: 2,
        steps: [aStep(1, { attempts: 2 }), aStep(2)],
        attempts: [anAttempt(1, 2, { tookMs: 300, error: null })],
      }),
    );
    const second = { ord: 1, n: 2, startedAt: clock.now() - 300, endedAt: clock.now() };
    const entries = await entriesOf(store, run);
    equal(
      entries.map((entry) => (entry.kind === "step" ? entry.attempts : [])),
      [
        [
          { ...first, error: '{"message":"first"}' },
          { ...second, error: null },
        ],
        [],
      ],
      "the attempts of each step",
    );
  }),

  stillTime("a commit marks the events that it consumes", async ({ store, clock }) => {
    const run = await leased(store);
    for (const type of ["a", "b", "c"]) await send(store, run, anEvent(type));
    clock.advance(1_000);
    const consumed = [
      { number: 1, ord: 4 },
      { number: 3, ord: 5 },
    ];
    await commitOk(store, aPart(run, { seenEvents: 3, consumed }));
    equal(
      (await eventsOf(store, run)).map((event) => [event.consumedBy, event.deliveredAt]),
      [
        [4, clock.now()],
        [null, null],
        [5, clock.now()],
      ],
      "who consumed each event, and when",
    );
    equal(
      (await loadOne(store, run)).events.map(({ type }) => type),
      ["b"],
      "events left",
    );
  }),

  stillTime("a commit spawns instances", async ({ store, clock }) => {
    const run = await leased(store);
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
    "a spawn of a taken id leaves both the part and the owner of the id alone",
    async (world) => {
      const { store } = world;
      const taken = await create(store, { workflow: "child", params: '"first"' });
      const run = await leased(store);
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
      equal(await statusOf(store, spawns[1]!), "queued", "the other spawn");
      equal((await stepsOf(store, run)).length, 1, "steps");
    },
  ),

  stillTime("two parts of a batch may spawn the same id, and the first wins", async ({ store }) => {
    const runs = [await leased(store), await leased(store)];
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
        const run = await leased(store, { workflow: `parent-${round}-${i}` });
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
    const run = await leased(store);
    const delivery = aDelivery(parent.iid, { kind: "child", type: "child-done", payload: '"r"' });
    await commitOk(store, aPart(run, { deliveries: [delivery], next: complete() }));
    equal(await store.moveInbox(10), 1, "moved");
    matches(
      only(await eventsOf(store, parent), "events"),
      { number: 1, kind: "child", type: "child-done", payload: '"r"' },
      "the event",
    );
    equal(await dueIn(store, parent), 0, "due");
  }),

  stillTime("deliveries keep the order in which they were given", async ({ store }) => {
    const target = await create(store, { workflow: "target" });
    const run = await leased(store);
    const ids = ["m", "z", "a", "Z", "0"];
    const deliveries = ids.map((eventId) => aDelivery(target.iid, { eventId, payload: eventId }));
    await commitOk(store, aPart(run, { deliveries: deliveries.slice(0, 3) }));
    await commitOk(store, aPart(run, { partNumber: 2, deliveries: deliveries.slice(3) }));
    while ((await store.moveInbox(2)) > 0);
    equal(
      (await eventsOf(store, target)).map(({ payload }) => payload),
      ids,
      "events",
    );
  }),

  stillTime("one event id may be delivered to many runs", async ({ store }) => {
    const targets = [
      await create(store, { workflow: "a" }),
      await create(store, { workflow: "b" }),
    ];
    const run = await leased(store);
    const deliveries = targets.map(({ iid }) => aDelivery(iid, { eventId: "same" }));
    await commitOk(store, aPart(run, { deliveries }));
    while ((await store.moveInbox(10)) > 0);
    for (const target of targets) equal((await eventsOf(store, target)).length, 1, "events");
  }),

  stillTime("a delivery to a run that was replaced goes nowhere", async ({ store }) => {
    const parent = await waiting(store, { workflow: "parent" });
    const run = await leased(store);
    await store.restart(targetOf(parent), "restart");
    const deliveries = [aDelivery(parent.iid, { runNumber: 1 })];
    await commitOk(store, aPart(run, { deliveries }));
    await store.moveInbox(10);
    equal(await store.moveInbox(10), 0, "left in the inbox");
    equal(await eventsOf(store, parent, 2), [], "events of the new run");
  }),

  stillTime("one part can write everything at once", async ({ store, clock }) => {
    const other = await create(store, { workflow: "other" });
    const run = await leased(store);
    await send(store, run);
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
        outbox: [{ id: `outbox-${unique()}`, topic: "t", payload: '"p"' }],
        next: parkUntil({ inMs: 500 }),
      }),
    );
    equal(answer.state, "parked", "the state");
    await store.moveInbox(10);
    equal((await stepsOf(store, run)).length, 2, "steps");
    equal(only(await eventsOf(store, run), "events").consumedBy, 1, "consumed");
    equal(await statusOf(store, child), "queued", "the child");
    equal((await eventsOf(store, other)).length, 1, "delivered");
    equal(await dueIn(store, run), 500, "due");
  }),

  stillTime("a complete run has its output and its time", async ({ store, clock }) => {
    const run = await leased(store);
    clock.advance(2_500);
    const answer = await commitOk(store, aPart(run, { next: complete('{"out":1}') }));
    equal(answer.state, "finished", "the state");
    matches(
      (await store.get(targetOf(run)))!,
      { status: "complete", output: '{"out":1}', error: null, finishedAt: clock.now() },
      "the instance",
    );
  }),

  stillTime("a failed run has its error and its time", async ({ store, clock }) => {
    const run = await leased(store);
    clock.advance(2_500);
    const answer = await commitOk(store, aPart(run, { next: failWith('{"message":"x"}') }));
    equal(answer.state, "finished", "the state");
    matches(
      (await store.get(targetOf(run)))!,
      { status: "errored", output: null, error: '{"message":"x"}', finishedAt: clock.now() },
      "the instance",
    );
  }),

  stillTime("a park gives the ticket up until its wake", async ({ store, clock }) => {
    for (const [workflow, wake] of [
      ["by-offset", { inMs: 1_234 }],
      ["by-time", { at: clock.now() + 1_234 }],
    ] as const) {
      const run = await leased(store, { workflow });
      const answer = await commitOk(store, aPart(run, { next: parkUntil(wake) }));
      equal(answer.state, "parked", "the state");
      equal(await statusOf(store, run), "waiting", "the status");
      equal(await dueIn(store, run), 1_234, "due");
    }
  }),

  stillTime("a park without a time waits for events alone", async ({ store }) => {
    const run = await waiting(store, { types: ["paid"] });
    equal(await dueIn(store, run), null, "due");
    await send(store, run, anEvent("paid"));
    equal(await dueIn(store, run), 0, "due after the event");
  }),

  stillTime("a release gives the ticket back to the queue", async ({ store, clock }) => {
    const run = await leased(store);
    const answer = await commitOk(store, aPart(run, { next: release(800) }));
    equal(answer.state, "parked", "the state");
    equal(await statusOf(store, run), "queued", "the status");
    equal(await dueIn(store, run), 800, "due");
    clock.advance(800);
    equal((await claimOne(store)).iid, run.iid, "claimed");
  }),

  stillTime("a watch keeps the lease and shows its next wait", async ({ store, clock }) => {
    const run = await leased(store);
    const wakeAt = async () => {
      const answer = kindOf(await store.heartbeat(run.runner, leaseMs), "ok", "heartbeat");
      return only(answer.owned, "owned").wakeAt;
    };
    const answer = await commitOk(store, aPart(run, { next: watch(["paid"], { inMs: 900 }) }));
    equal(answer.state, "leased", "the state");
    equal(await wakeAt(), clock.now() + 900, "the wait");
    clock.advance(100);
    await commitOk(store, aPart(run, { partNumber: 2 }));
    equal(await wakeAt(), clock.now() + 800, "the wait after progress");
    await commitOk(store, aPart(run, { partNumber: 3, next: watch([]) }));
    equal(await wakeAt(), null, "no wait any more");
    equal(await statusOf(store, run), "running", "the status");
  }),

  stillTime("a commit hands over the events that the run has not seen", async ({ store }) => {
    const run = await leased(store);
    for (const type of ["a", "b", "c"]) await send(store, run, anEvent(type));
    const seen = async (seenEvents: number, partNumber: number) => {
      const answer = await commitOk(store, aPart(run, { seenEvents, partNumber }));
      return answer.events.map(({ number, type }) => `${number} ${type}`);
    };
    equal(await seen(0, 1), ["1 a", "2 b", "3 c"], "after none");
    equal(await seen(2, 2), ["3 c"], "after two");
    equal(await seen(3, 3), [], "after all");
  }),

  stillTime("a park is refused if an event came first, and its steps are kept", async (world) => {
    const { store } = world;
    const run = await leased(store);
    await send(store, run, anEvent("paid", { payload: '"p"' }));
    const part = aPart(run, { steps: [aStep(1)], next: parkFor(["paid"], { inMs: 500 }) });
    const answer = await commitOk(store, part);
    equal(answer.state, "leased", "the state");
    matches(
      only(answer.events, "events"),
      { number: 1, type: "paid", payload: '"p"', kind: "event" },
      "the event",
    );
    equal(await statusOf(store, run), "running", "the status");
    equal((await stepsOf(store, run)).length, 1, "steps");
    const again = aPart(run, { ...part, partNumber: 2, seenEvents: 1 });
    equal((await commitOk(store, again)).state, "parked", "the state once it was seen");
  }),

  stillTime("a park is refused for an event of any type", async ({ store }) => {
    const run = await leased(store);
    await send(store, run, anEvent("something else"));
    const answer = await commitOk(store, aPart(run, { next: parkFor(["paid"]) }));
    equal([answer.state, answer.events.length], ["leased", 1], "the answer");
  }),

  stillTime("a commit tells that a pause was asked for", async ({ store }) => {
    const run = await leased(store);
    await store.pause(targetOf(run));
    const answer = await commitOk(store, aPart(run, { steps: [aStep(1)] }));
    matches(answer, { state: "leased", pauseRequested: true }, "the answer");
    equal(await statusOf(store, run), "waitingForPause", "the status");
  }),

  stillTime("a park pauses instead if that was asked for", async ({ store, clock }) => {
    const run = await leased(store);
    await store.pause(targetOf(run));
    const next = parkUntil({ inMs: 10 });
    equal((await commitOk(store, aPart(run, { next }))).state, "paused", "the state");
    equal(await statusOf(store, run), "paused", "the status");
    clock.advance(1_000);
    equal(await dueIn(store, run), null, "due while paused");
  }),

  stillTime("a park with an event and a pause before it does not wait", async ({ store }) => {
    const run = await leased(store);
    await send(store, run);
    await store.pause(targetOf(run));
    const { state } = await commitOk(store, aPart(run, { next: parkFor(["paid"]) }));
    ok(state === "paused" || state === "leased", `paused, or going on with the event: ${state}`);
  }),

  stillTime("a release pauses instead if that was asked for", async ({ store }) => {
    const run = await leased(store);
    await store.pause(targetOf(run));
    equal((await commitOk(store, aPart(run, { next: release() }))).state, "paused", "the state");
    equal(await statusOf(store, run), "paused", "the status");
  }),

  stillTime("a finish beats a pause", async ({ store }) => {
    for (const [next, status] of [
      [complete(), "complete"],
      [failWith(), "errored"],
    ] as const) {
      const run = await leased(store);
      await store.pause(targetOf(run));
      equal((await commitOk(store, aPart(run, { next }))).state, "finished", "the state");
      equal(await statusOf(store, run), status, "the status");
    }
  }),

  stillTime("a finish is not held up by events", async ({ store }) => {
    const run = await leased(store);
    await send(store, run);
    equal((await commitOk(store, aPart(run, { next: complete() }))).state, "finished", "the state");
    equal(await statusOf(store, run), "complete", "the status");
  }),

  stillTime("a lease that ran out but was not taken may still commit", async ({ store, clock }) => {
    const run = await leased(store);
    clock.advance(leaseMs * 100);
    await commitOk(store, aPart(run, { steps: [aStep(1)] }));
    equal((await stepsOf(store, run)).length, 1, "steps");
  }),

  ...Object.entries(fences).map(([what, fence]) =>
    stillTime(`${what} fences the old turn off, and it writes nothing`, async (world) => {
      const { store } = world;
      const other = await create(store, { workflow: "other" });
      const run = await leased(store);
      await send(store, run);
      await fence(world, run);
      const status = await statusOf(store, run);
      const child = anInstance({ workflow: "child" });
      for (const next of [
        { kind: "continue" } as const,
        watch(["paid"]),
        parkFor(["paid"]),
        release(),
        complete(),
        failWith(),
      ]) {
        const part = aPart(run, {
          partNumber: 7,
          seenEvents: 1,
          steps: [aStep(1)],
          attempts: [anAttempt(1, 1)],
          consumed: [{ number: 1, ord: 1 }],
          spawns: [child],
          deliveries: [aDelivery(other.iid)],
          next,
        });
        equal(await commit(store, part), lost, `the answer to ${next.kind}`);
      }
      equal(await statusOf(store, run), status, "the status");
      equal(await stepsOf(store, run, 1), [], "steps");
      equal((await eventsOf(store, run, 1))[0]?.consumedBy, null, "consumed by");
      equal(await store.get(targetOf(child)), null, "the child");
      equal(await store.moveInbox(10), 0, "delivered");
    }),
  ),

  stillTime("a part after the end writes nothing", async ({ store }) => {
    const run = await leased(store);
    await commitOk(store, aPart(run, { next: complete('"out"') }));
    const before = await store.get(targetOf(run));
    for (const next of [{ kind: "continue" } as const, parkFor(["x"]), failWith()]) {
      await commit(store, aPart(run, { partNumber: 2, steps: [aStep(1)], next }));
    }
    equal(await store.get(targetOf(run)), before, "the instance");
    equal(await stepsOf(store, run), [], "steps");
    equal(await dueIn(store, run), null, "due");
  }),

  stillTime("a part for a run that does not exist is lost", async ({ store }) => {
    const run = await leased(store);
    const nowhere = aPart({ ...run, iid: anInstance().iid });
    equal(await commit(store, nowhere), lost, "an unknown iid");
    equal(await commit(store, aPart({ ...run, claimNumber: 2 })), lost, "a claim of the future");
  }),

  stillTime("each part of a batch answers for itself, in order", async ({ store }) => {
    const runs: Leased[] = [];
    for (let i = 0; i < 5; i++) runs.push(await leased(store));
    await store.terminate(targetOf(runs[2]!), "terminate");
    const nexts = [
      { kind: "continue" } as const,
      parkFor(["x"]),
      complete(),
      complete(),
      release(),
    ];
    const answers = await store.commit(
      runs.map((run, i) => aPart(run, { steps: [aStep(1)], next: nexts[i]! })),
    );
    equal(
      answers.map((answer) => (answer.kind === "ok" ? answer.state : answer.kind)),
      ["leased", "parked", "lost", "finished", "parked"],
      "the answers",
    );
    const steps = await Promise.all(runs.map(async (run) => (await stepsOf(store, run)).length));
    equal(steps, [1, 1, 0, 1, 1], "steps of each run");
  }),

  stillTime("an empty batch commits nothing", async ({ store }) => {
    equal(await store.commit([]), [], "the answers");
  }),

  stillTime("a batch of 200 parts is committed", async ({ store }) => {
    await store.create(someInstances(200));
    const runs = await claim(store, await aRunner(store), { limit: 200 });
    const answers = await store.commit(
      runs.map((run, i) =>
        aPart(run, {
          steps: [aStep(1, { result: `${i}` }), aStep(2)],
          spawns: i % 50 === 0 ? [anInstance({ workflow: "child" })] : [],
          next: i % 2 === 0 ? complete(`${i}`) : { kind: "continue" },
        }),
      ),
    );
    equal(answers.filter(({ kind }) => kind === "ok").length, 200, "parts applied");
    const loaded = await store.load(runs.filter((_, i) => i % 2 === 1));
    equal(
      loaded.map(({ steps }) => steps.length),
      Array(100).fill(2),
      "steps of each run that goes on",
    );
    equal((await store.get(targetOf(runs[198]!)))?.output, "198", "an output");
  }),

  stillTime("a part can have a thousand steps", async ({ store }) => {
    const run = await leased(store);
    const steps = Array.from({ length: 1_000 }, (_, i) => aStep(i + 1));
    await commitOk(store, aPart(run, { steps }));
    const loaded = await loadOne(store, run);
    equal(
      loaded.steps.map(({ ord }) => ord),
      steps.map(({ ord }) => ord),
      "the steps",
    );
  }),

  stillTime("two parts of one run in a batch are a mistake that writes nothing", async (world) => {
    const { store } = world;
    const run = await leased(store);
    const parts = [1, 2].map((n) => aPart(run, { partNumber: n, steps: [aStep(n)] }));
    await rejection(store.commit(parts), "commit");
    equal(await stepsOf(store, run), [], "steps");
  }),

  stillTime("texts of a run come back exactly as they went in", async ({ store }) => {
    const run = await leased(store);
    const steps = hostileTexts.map((text, i) =>
      aStep(i + 1, {
        name: `${i} ${text.trim()}`,
        attempts: 2,
        result: text,
        error: text,
        waitKey: text.trim(),
      }),
    );
    const attempts = hostileTexts.map((error, i) => anAttempt(i + 1, 1, { error }));
    const part = aPart(run, { steps, attempts, next: complete(hostileTexts[1]) });
    await commitOk(store, part);
    const entries = await entriesOf(store, run);
    for (const [i, entry] of entries.entries()) {
      if (entry.kind !== "step") continue;
      const { name, result, error, waitKey } = steps[i]!;
      matches(entry.step, { name, result, error, waitKey }, "the step");
      equal(entry.attempts[0]?.error, hostileTexts[i], "the attempt");
    }
    equal(entries.length, steps.length, "entries");
    equal((await store.get(targetOf(run)))?.output, hostileTexts[1], "the output");
  }),

  stillTime("a result and an output of 1 MiB come back exactly as they went in", async (world) => {
    const { store } = world;
    const run = await leased(store);
    await commitOk(store, aPart(run, { steps: [aStep(1, { result: mebibyteText })] }));
    const loaded = await loadOne(store, run);
    ok(loaded.steps[0]?.result === mebibyteText, "the result");
    await commitOk(store, aPart(run, { partNumber: 2, next: complete(mebibyteText) }));
    ok((await store.get(targetOf(run)))?.output === mebibyteText, "the output");
  }),

  stillTime("a batch of many large parts is committed", async ({ store }) => {
    await store.create(someInstances(12));
    const runs = await claim(store, await aRunner(store));
    const steps = [aStep(1, { result: mebibyteText })];
    const answers = await store.commit(runs.map((run) => aPart(run, { steps })));
    equal(
      answers.map(({ kind }) => kind),
      Array(12).fill("ok"),
      "the answers",
    );
    for (const run of runs) {
      ok((await loadOne(store, run)).steps[0]?.result === mebibyteText, "a result");
    }
  }),

  ...(
    [
      ["a raw NUL", { result: '"\0"' }],
      ["a raw lone surrogate", { result: '"\ud800"' }],
      ["a name of 10,000 characters", { name: "n".repeat(10_000) }],
    ] as const
  ).map(([what, given]) =>
    realTime(`${what} harms at most its own part`, async ({ store }) => {
      const runs: Leased[] = [];
      for (let i = 0; i < 5; i++) runs.push(await leased(store));
      const answers = await store.commit(
        runs.map((run, i) => aPart(run, { steps: [aStep(1, i === 2 ? given : {})] })),
      );
      const others = answers.filter((_, i) => i !== 2);
      equal(
        others.map(({ kind }) => kind),
        Array(4).fill("ok"),
        "the neighbours",
      );
      const steps = await Promise.all(runs.map(async (run) => (await stepsOf(store, run)).length));
      const kind = answers[2]?.kind;
      ok(kind === "bad" || kind === "ok", `the part is "bad" or "ok", not "${kind}"`);
      equal(steps, [1, 1, kind === "ok" ? 1 : 0, 1, 1], "steps of each run");
      await commitOk(store, aPart(runs[2]!, { partNumber: 2, steps: [aStep(1)] }));
    }),
  ),

  ...(
    [
      ["origin", { origin: "o".repeat(3_000) }],
      ["workflow", { workflow: "w".repeat(3_000) }],
      ["id", { id: "i".repeat(3_000) }],
      ["queue", { queue: "q".repeat(3_000) }],
    ] as const
  ).map(([what, given]) =>
    realTime(`a spawn's ${what} of 3,000 characters is kept or refused, not cut`, async (world) => {
      const { store } = world;
      const run = await leased(store);
      const child = anInstance({ workflow: "child", ...given });
      const answer = await commit(store, aPart(run, { spawns: [child] }));
      const stored = await store.get(targetOf(child));
      if (answer.kind === "bad") return equal(stored, null, "the child");
      equal(answer.kind, "ok", "the answer");
      const { workflow, id, origin = null } = child;
      matches(defined(stored, "the child"), { workflow, id, origin }, "the child");
      equal((await claimOne(store, child)).iid, child.iid, "claimed from its queue");
    }),
  ),

  ...(
    [
      ["wait key", { waitKey: "k".repeat(3_000) }],
      ["type", { type: "t".repeat(3_000) }],
    ] as const
  ).map(([what, given]) =>
    realTime(`a step's ${what} of 3,000 characters is kept or refused, not cut`, async (world) => {
      const { store } = world;
      const run = await leased(store);
      const answer = await commit(store, aPart(run, { steps: [aStep(1, given)] }));
      const steps = await stepsOf(store, run);
      if (answer.kind === "bad") return equal(steps, [], "steps");
      equal(answer.kind, "ok", "the answer");
      matches(only(steps, "steps"), given, "the step");
    }),
  ),

  realTime("commits of many connections are all there", async ({ db }) => {
    const stores = await storesOn(db, 4);
    const work = stores.map((store) => async () => {
      const runner = await aRunner(store);
      const created = someInstances(10, { workflow: `w-${unique()}` });
      await store.create(created, { lease: { runner } });
      const runs = await store.adopt(
        runner,
        created.map(({ iid }) => iid),
      );
      for (let n = 1; n <= 15; n++) {
        const answers = await store.commit(
          runs.map((run) => aPart(run, { partNumber: n, steps: [aStep(n)] })),
        );
        equal(
          answers.map(({ kind }) => kind),
          Array(10).fill("ok"),
          "the answers",
        );
      }
      return runs;
    });
    const runs = (await atOnce(work, "commits")).flat();
    const loaded = await db.store.load(runs);
    equal(
      loaded.map(({ steps }) => steps.length),
      Array(40).fill(15),
      "steps of each run",
    );
  }),
];

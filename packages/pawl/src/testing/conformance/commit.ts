import type { StepRecord } from "../../store/records.js";
import { equal, matches, only } from "./assert.js";
import {
  aPart,
  aRunner,
  aRunningStep,
  aStep,
  aWait,
  anAttempt,
  anEvent,
  commitOk,
  historyRows,
  recordedEvents,
  leasedRun,
  type Leased,
  loadOne,
  parkFor,
  sendTo,
  someInstances,
  currentStatus,
  recordedSteps,
  takeOver,
  targetOf,
  unique,
  pause,
  terminate,
} from "./build.js";
import { atOnce, storesOn } from "./concurrency.js";
import type { ConformanceCase } from "./fixture.js";
import { realTime, stillTime } from "./world.js";

/** Parts that write into their own run. */
export const commitCases: readonly ConformanceCase[] = [
  stillTime("a commit answers with the time and keeps the lease", async ({ store, clock }) => {
    const run = await leasedRun(store);
    clock.advance(123);
    equal(
      await store.commit([aPart(run, { steps: [aStep(1)] })]),
      [{ kind: "ok", now: clock.now(), state: "leased", pauseRequested: false, events: [] }],
      "the answer",
    );
    equal(await currentStatus(store, run), "running", "the status");
  }),

  stillTime("a commit stores the fields of steps as they are given", async ({ store, clock }) => {
    const run = await leasedRun(store);
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
      (await recordedSteps(store, run)).toSorted((a, b) => a.ord - b.ord),
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

  stillTime("a step keeps the start of its first write", async ({ store, clock }) => {
    const run = await leasedRun(store);
    const startedAt = clock.now();
    await commitOk(store, aPart(run, { steps: [aRunningStep(1)] }));
    clock.advance(4_000);
    await commitOk(store, aPart(run, { partNumber: 2, steps: [aStep(1, { tookMs: 10 })] }));
    matches(
      only(await recordedSteps(store, run), "steps"),
      { status: "completed", startedAt, endedAt: clock.now() },
      "the step",
    );
  }),

  stillTime("a newer part overwrites a step, and an older one never does", async ({ store }) => {
    const run = await leasedRun(store);
    const older = aPart(run, { steps: [aRunningStep(1)] });
    await commitOk(store, older);
    await commitOk(store, aPart(run, { partNumber: 2, steps: [aStep(1, { result: '"new"' })] }));
    await commitOk(store, older);
    matches(
      only(await recordedSteps(store, run), "steps"),
      { status: "completed", result: '"new"' },
      "the step",
    );
  }),

  stillTime("a newer claim overwrites steps whatever the part number", async (world) => {
    const { store } = world;
    const run = await leasedRun(store);
    await commitOk(store, aPart(run, { partNumber: 9, steps: [aRunningStep(1)] }));
    const taken = await takeOver(world, run);
    await commitOk(store, aPart(taken, { steps: [aRunningStep(1, { attempts: 2 })] }));
    matches(
      only(await recordedSteps(store, run), "steps"),
      { attempts: 2, claimNumber: 2, startedAt: run.now },
      "the step",
    );
  }),

  stillTime("a commit writes attempts beside their step", async ({ store, clock }) => {
    const run = await leasedRun(store);
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
    const entries = await historyRows(store, run);
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
    const run = await leasedRun(store);
    for (const type of ["a", "b", "c"]) await sendTo(store, run, anEvent(type));
    clock.advance(1_000);
    const consumed = [
      { number: 1, ord: 4 },
      { number: 3, ord: 5 },
    ];
    await commitOk(store, aPart(run, { seenEvents: 3, consumed }));
    equal(
      (await recordedEvents(store, run)).map((event) => [event.consumedBy, event.deliveredAt]),
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

  stillTime(
    "parts with and without events are each answered, also when sent again",
    async ({ store }) => {
      const runs: Leased[] = [];
      for (let n = 0; n < 5; n++) {
        const run = await leasedRun(store);
        await sendTo(store, run);
        runs.push(run);
      }
      const [plain, told, parked, gone, paused] = runs as [Leased, Leased, Leased, Leased, Leased];
      await sendTo(store, told, anEvent("later"));
      await commitOk(store, aPart(parked, { seenEvents: 1, next: parkFor(["other"]) }));
      await store.control(targetOf(gone), terminate("terminate"));
      await store.control(targetOf(paused), pause);
      const parts = runs.map((run) =>
        aPart(run, {
          partNumber: 2,
          seenEvents: 1,
          steps: [aStep(1, { isNew: true })],
          consumed: run === plain ? [] : [{ number: 1, ord: 1 }],
        }),
      );
      for (const time of ["first", "second"]) {
        const answers = await store.commit(parts);
        equal(
          answers.map((each) =>
            each.kind === "ok" ? [each.state, each.pauseRequested] : each.kind,
          ),
          [["leased", false], ["leased", false], ["parked", false], "lost", ["leased", true]],
          `the ${time} answers`,
        );
        equal(
          answers.map((each) => (each.kind === "ok" ? each.events.map(({ type }) => type) : [])),
          [[], ["later"], [], [], []],
          `events that were not seen, the ${time} time`,
        );
      }
      const written = async (run: Leased): Promise<unknown> => [
        (await recordedSteps(store, run)).length,
        (await recordedEvents(store, run)).map(({ consumedBy }) => consumedBy),
      ];
      equal(await written(plain), [1, [null]], "of results");
      equal(await written(told), [1, [1, null]], "of results and an event");
      equal(await written(parked), [0, [null]], "of a run that has parked");
      equal(await written(gone), [0, [null]], "of one that has ended");
      equal(await written(paused), [1, [1]], "of one that shall pause");
    },
  ),

  stillTime("a part can have a thousand steps", async ({ store }) => {
    const run = await leasedRun(store);
    const steps = Array.from({ length: 1_000 }, (_, i) => aStep(i + 1));
    await commitOk(store, aPart(run, { steps }));
    const loaded = await loadOne(store, run);
    equal(
      loaded.steps.map(({ ord }) => ord),
      steps.map(({ ord }) => ord),
      "the steps",
    );
  }),

  realTime("commits of many connections are all recorded", async ({ db }) => {
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

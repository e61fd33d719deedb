import { asLoaded } from "../../store/records.js";
import { equal, ok, only } from "./assert.js";
import {
  aPart,
  aRunner,
  aRunningStep,
  aStep,
  aWait,
  anEvent,
  claim,
  claimOne,
  commitOk,
  create,
  recordedEvents,
  laneOf,
  leasedRun,
  loadOne,
  parkUntil,
  sendTo,
  someInstances,
  recordedSteps,
  takeOver,
} from "./build.js";
import type { ConformanceCase } from "./fixture.js";
import { mebibyteText } from "./text.js";
import { stillTime } from "./world.js";

export const loadCases: readonly ConformanceCase[] = [
  stillTime("a load returns params, steps in order and unconsumed events", async (world) => {
    const { store } = world;
    const run = await leasedRun(store, { params: '"p"' });
    for (const type of ["a", "b", "c"]) await sendTo(store, run, anEvent(type));
    const part = aPart(run, { seenEvents: 3, consumed: [{ number: 2, ord: 1 }] });
    await commitOk(store, { ...part, steps: [aStep(3), aStep(1)] });
    const steps = [
      aStep(12),
      aStep(2, { count: 3, type: "sleep", result: null }),
      aStep(4, { status: "errored", result: null, error: '{"message":"e"}' }),
      aRunningStep(5, { attempts: 2 }),
      aWait(6, { inMs: 60_000 }, { type: "waitForEvent", waitKey: "paid" }),
    ];
    await commitOk(store, aPart(run, { seenEvents: 3, partNumber: 2, steps }));
    const loaded = await loadOne(store, run);
    const recorded = (await recordedSteps(store, run)).toSorted((a, b) => a.ord - b.ord);
    equal(loaded.params, '"p"', "params");
    equal(loaded.steps, recorded.map(asLoaded), "steps");
    equal(
      loaded.steps.map(({ ord }) => ord),
      [1, 2, 3, 4, 5, 6, 12],
      "the order of steps",
    );
    equal(
      loaded.events,
      (await recordedEvents(store, run)).filter(({ number }) => number !== 2),
      "events",
    );
  }),

  stillTime("a load answers for many runs at once", async ({ store }) => {
    await store.create(someInstances(50));
    const runs = await claim(store, await aRunner(store));
    await store.commit(
      runs.map((run, i) =>
        aPart(run, {
          steps: Array.from({ length: i % 4 }, (_, n) => aStep(n + 1, { result: `${i}` })),
        }),
      ),
    );
    const loaded = new Map((await store.load(runs)).map((run) => [run.iid, run]));
    equal(loaded.size, 50, "runs loaded");
    for (const [i, { iid }] of runs.entries()) {
      equal(
        loaded.get(iid)?.steps.map(({ ord, result }) => `${ord} ${result}`),
        Array.from({ length: i % 4 }, (_, n) => `${n + 1} ${i}`),
        "the steps of a run",
      );
    }
    equal(await store.load([]), [], "a load of none");
  }),

  stillTime("a history of many MiB loads completely", async ({ store, clock }) => {
    const run = await leasedRun(store);
    const count = 9;
    for (let n = 1; n <= count; n++) {
      const steps = [aStep(n, { result: mebibyteText })];
      await commitOk(store, aPart(run, { partNumber: n, steps }));
    }
    await sendTo(store, run, anEvent("big", { payload: mebibyteText }));
    const historyBytes = count * 1_048_576;
    const part = aPart(run, { partNumber: 10, seenEvents: 1 });
    await commitOk(store, { ...part, next: parkUntil({ inMs: 1 }, historyBytes) });
    clock.advance(1);
    const claimed = await claimOne(store);
    equal(claimed.historyBytes, historyBytes, "what the claim says");
    const loaded = await loadOne(store, claimed);
    equal(loaded.steps.length, count, "steps");
    ok(
      loaded.steps.every(({ result }) => result === mebibyteText),
      "every result",
    );
    ok(only(loaded.events, "events").payload === mebibyteText, "the payload");
  }),

  stillTime("a history of thousands of steps loads completely, in order", async ({ store }) => {
    const run = await leasedRun(store);
    for (let part = 0; part < 5; part++) {
      const steps = Array.from({ length: 1_000 }, (_, i) => aStep(part * 1_000 + i + 1));
      await commitOk(store, aPart(run, { partNumber: part + 1, steps }));
    }
    const { steps } = await loadOne(store, run);
    equal(steps.length, 5_000, "steps");
    ok(
      steps.every(({ ord }, i) => ord === i + 1),
      "their order",
    );
  }),

  stillTime("large and small histories load together", async ({ store }) => {
    const runner = await aRunner(store);
    await store.create(someInstances(6));
    const runs = await claim(store, runner);
    for (const [i, run] of runs.entries()) {
      for (let n = 1; n <= (i % 2 === 0 ? 3 : 1); n++) {
        const result = i % 2 === 0 ? mebibyteText : '"small"';
        await commitOk(store, aPart(run, { partNumber: n, steps: [aStep(n, { result })] }));
      }
    }
    // A takeover does not know how much its predecessor wrote.
    const requests = runs.map((run, i) => ({ ...run, takenOver: true, historyBytes: i }));
    const loaded = new Map((await store.load(requests)).map((run) => [run.iid, run.steps]));
    equal(
      runs.map(({ iid }) => loaded.get(iid)?.length),
      [3, 1, 3, 1, 3, 1],
      "steps",
    );
  }),

  stillTime("a load after a takeover has all that the dead owner committed", async (world) => {
    const { store } = world;
    const run = await leasedRun(store);
    await commitOk(store, aPart(run, { steps: [aStep(1), aStep(2)] }));
    await sendTo(store, run);
    const loaded = await loadOne(store, await takeOver(world, run));
    equal(
      loaded.steps.map(({ ord }) => ord),
      [1, 2],
      "steps",
    );
    equal(loaded.events.length, 1, "events");
  }),

  stillTime("a load reads one run and not its neighbours", async ({ store }) => {
    const runner = await aRunner(store);
    const [one, two] = [await create(store), await create(store)];
    const runs = await claim(store, runner, { lanes: [laneOf(one)] });
    await store.commit(
      runs.map((run) => aPart(run, { steps: [aStep(1, { result: `"${run.id}"` })] })),
    );
    await sendTo(store, two);
    const loaded = await loadOne(
      store,
      runs.find(({ iid }) => iid === one.iid)!,
    );
    equal(
      loaded.steps.map(({ result }) => result),
      [`"${one.id}"`],
      "steps",
    );
    equal(loaded.events, [], "events");
  }),
];

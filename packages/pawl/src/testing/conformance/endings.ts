import { equal, matches, ok, only } from "./assert.js";
import {
  aPart,
  aStep,
  anEvent,
  claimOne,
  commitOk,
  complete,
  dueIn,
  failWith,
  leasedRun,
  parkFor,
  parkUntil,
  release,
  sendTo,
  currentStatus,
  recordedSteps,
  targetOf,
  waiting,
  pause,
} from "./build.js";
import type { ConformanceCase } from "./fixture.js";
import { stillTime } from "./world.js";

/** Parts that decide what becomes of the ticket: parked, released, paused, finished, or kept. */
export const endingCases: readonly ConformanceCase[] = [
  stillTime("a completed run keeps its output and its end time", async ({ store, clock }) => {
    const run = await leasedRun(store);
    clock.advance(2_500);
    const answer = await commitOk(store, aPart(run, { next: complete('{"out":1}') }));
    equal(answer.state, "finished", "the state");
    matches(
      (await store.get(targetOf(run)))!,
      { status: "complete", output: '{"out":1}', error: null, finishedAt: clock.now() },
      "the instance",
    );
  }),

  stillTime("a failed run keeps its error and its end time", async ({ store, clock }) => {
    const run = await leasedRun(store);
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
      const run = await leasedRun(store, { workflow });
      const answer = await commitOk(store, aPart(run, { next: parkUntil(wake) }));
      equal(answer.state, "parked", "the state");
      equal(await currentStatus(store, run), "waiting", "the status");
      equal(await dueIn(store, run), 1_234, "due");
    }
  }),

  stillTime("a park without a time waits for events alone", async ({ store }) => {
    const run = await waiting(store, { types: ["paid"] });
    equal(await dueIn(store, run), null, "due");
    await sendTo(store, run, anEvent("paid"));
    equal(await dueIn(store, run), 0, "due after the event");
  }),

  stillTime("a release gives the ticket back to the queue", async ({ store, clock }) => {
    const run = await leasedRun(store);
    const answer = await commitOk(store, aPart(run, { next: release(800) }));
    equal(answer.state, "parked", "the state");
    equal(await currentStatus(store, run), "queued", "the status");
    equal(await dueIn(store, run), 800, "due");
    clock.advance(800);
    equal((await claimOne(store)).iid, run.iid, "claimed");
  }),

  stillTime("a commit hands over the events that the run has not seen", async ({ store }) => {
    const run = await leasedRun(store);
    for (const type of ["a", "b", "c"]) await sendTo(store, run, anEvent(type));
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
    const run = await leasedRun(store);
    await sendTo(store, run, anEvent("paid", { payload: '"p"' }));
    const part = aPart(run, { steps: [aStep(1)], next: parkFor(["paid"], { inMs: 500 }) });
    const answer = await commitOk(store, part);
    equal(answer.state, "leased", "the state");
    matches(
      only(answer.events, "events"),
      { number: 1, type: "paid", payload: '"p"', kind: "event" },
      "the event",
    );
    equal(await currentStatus(store, run), "running", "the status");
    equal((await recordedSteps(store, run)).length, 1, "steps");
    const again = aPart(run, { ...part, partNumber: 2, seenEvents: 1 });
    equal((await commitOk(store, again)).state, "parked", "the state once it was seen");
  }),

  stillTime("a park is refused for an event of any type", async ({ store }) => {
    const run = await leasedRun(store);
    await sendTo(store, run, anEvent("something else"));
    const answer = await commitOk(store, aPart(run, { next: parkFor(["paid"]) }));
    equal([answer.state, answer.events.length], ["leased", 1], "the answer");
  }),

  stillTime("a commit's answer tells that a pause was requested", async ({ store }) => {
    const run = await leasedRun(store);
    await store.control(targetOf(run), pause);
    const answer = await commitOk(store, aPart(run, { steps: [aStep(1)] }));
    matches(answer, { state: "leased", pauseRequested: true }, "the answer");
    equal(await currentStatus(store, run), "waitingForPause", "the status");
  }),

  stillTime("a park pauses the run if a pause was requested", async ({ store, clock }) => {
    const run = await leasedRun(store);
    await store.control(targetOf(run), pause);
    const next = parkUntil({ inMs: 10 });
    equal((await commitOk(store, aPart(run, { next }))).state, "paused", "the state");
    equal(await currentStatus(store, run), "paused", "the status");
    clock.advance(1_000);
    equal(await dueIn(store, run), null, "due while paused");
  }),

  stillTime("a park after both an event and a pause does not wait", async ({ store }) => {
    const run = await leasedRun(store);
    await sendTo(store, run);
    await store.control(targetOf(run), pause);
    const { state } = await commitOk(store, aPart(run, { next: parkFor(["paid"]) }));
    ok(state === "paused" || state === "leased", `paused, or going on with the event: ${state}`);
  }),

  stillTime("a release pauses the run if a pause was requested", async ({ store }) => {
    const run = await leasedRun(store);
    await store.control(targetOf(run), pause);
    equal((await commitOk(store, aPart(run, { next: release() }))).state, "paused", "the state");
    equal(await currentStatus(store, run), "paused", "the status");
  }),

  stillTime("a finish beats a pause", async ({ store }) => {
    for (const [next, status] of [
      [complete(), "complete"],
      [failWith(), "errored"],
    ] as const) {
      const run = await leasedRun(store);
      await store.control(targetOf(run), pause);
      equal((await commitOk(store, aPart(run, { next }))).state, "finished", "the state");
      equal(await currentStatus(store, run), status, "the status");
    }
  }),

  stillTime("a finish is not held up by events", async ({ store }) => {
    const run = await leasedRun(store);
    await sendTo(store, run);
    equal((await commitOk(store, aPart(run, { next: complete() }))).state, "finished", "the state");
    equal(await currentStatus(store, run), "complete", "the status");
  }),
];

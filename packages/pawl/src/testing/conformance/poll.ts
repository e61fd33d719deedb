import { equal, matches, ok, only } from "./assert.js";
import {
  aPart,
  anEvent,
  anInstance,
  commitOk,
  recordedEvents,
  leasedRun,
  pollOk,
  release,
  sendTo,
  takeOver,
  targetOf,
  waiting,
  pause,
  restart,
  terminate,
} from "./build.js";
import type { ConformanceCase } from "./fixture.js";
import { realTime, stillTime } from "./world.js";

export const pollCases: readonly ConformanceCase[] = [
  stillTime("a poll answers with the time, the pause flag and unseen events", async (world) => {
    const { store, clock } = world;
    const run = await leasedRun(store);
    clock.advance(33);
    equal(
      await pollOk(store, run),
      { kind: "ok", now: clock.now(), pauseRequested: false, events: [] },
      "the first answer",
    );
    for (const type of ["a", "b", "c"]) await sendTo(store, run, anEvent(type));
    await store.control(targetOf(run), pause);
    const answer = await pollOk(store, run, 1);
    matches(answer, { pauseRequested: true }, "the second answer");
    equal(answer.events, (await recordedEvents(store, run)).slice(1), "the events");
  }),

  stillTime(
    "an event after a poll is later than the poll even if the clock steps back",
    async (world) => {
      const { store, clock } = world;
      const run = await leasedRun(store);
      for (const step of [5_000, 0, -20_000, 1]) {
        clock.advance(step);
        const { now } = await pollOk(store, run);
        await sendTo(store, run);
        const { createdAt } = (await recordedEvents(store, run)).at(-1)!;
        ok(createdAt > now, `${createdAt} is after the poll at ${now}`);
      }
    },
  ),

  stillTime("a second poll at an earlier time keeps the first poll's time", async (world) => {
    const { store, clock } = world;
    const run = await leasedRun(store);
    clock.advance(5_000);
    const { now } = await pollOk(store, run);
    clock.advance(-5_000);
    await pollOk(store, run);
    await sendTo(store, run);
    const { createdAt } = only(await recordedEvents(store, run), "events");
    ok(createdAt > now, `${createdAt} is after the first poll at ${now}`);
  }),

  stillTime("a poll of a lost claim answers lost", async (world) => {
    const { store } = world;
    const ended = await leasedRun(store);
    await store.control(targetOf(ended), terminate("t"));
    const restarted = await leasedRun(store, { workflow: "restarted" });
    await store.control(targetOf(restarted), restart("r"));
    const released = await leasedRun(store, { workflow: "released" });
    await commitOk(store, aPart(released, { next: release() }));
    const parked = await waiting(store, { workflow: "parked" });
    const taken = await leasedRun(store, { workflow: "taken" });
    await takeOver(world, taken);
    const gone = [ended, restarted, released, parked, taken, { ...ended, iid: anInstance().iid }];
    const answers = await store.poll(
      gone.map(({ iid, runNumber, claimNumber }) => ({
        iid,
        runNumber,
        claimNumber,
        seenEvents: 0,
      })),
    );
    equal(
      answers,
      gone.map(() => ({ kind: "lost" })),
      "the answers",
    );
  }),

  stillTime("a poll of many runs answers for each, in order", async ({ store }) => {
    const runs = [];
    for (let i = 0; i < 20; i++) runs.push(await leasedRun(store));
    for (const run of runs.filter((_, i) => i % 3 === 0)) await sendTo(store, run);
    await store.control(targetOf(runs[7]!), terminate("t"));
    const answers = await store.poll(runs.map((run) => ({ ...run, seenEvents: 0 })));
    equal(
      answers.map((answer) => (answer.kind === "ok" ? answer.events.length : answer.kind)),
      runs.map((_, i) => (i === 7 ? "lost" : i % 3 === 0 ? 1 : 0)),
      "the answers",
    );
    equal(await store.poll([]), [], "a poll of none");
  }),

  realTime("an event after a poll is later than it by the database's clock", async ({ store }) => {
    const run = await leasedRun(store);
    for (let i = 0; i < 20; i++) {
      const { now } = await pollOk(store, run);
      await sendTo(store, run);
      const { createdAt } = (await recordedEvents(store, run)).at(-1)!;
      ok(createdAt > now, `${createdAt} is after the poll at ${now}`);
    }
  }),
];

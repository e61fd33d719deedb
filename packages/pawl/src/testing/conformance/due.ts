import { equal } from "./assert.js";
import {
  create,
  dueIn,
  finished,
  laneOf,
  leased,
  letRunnersDie,
  targetOf,
  waiting,
} from "./build.js";
import type { ConformanceCase } from "./fixture.js";
import { stillTime } from "./world.js";

export const dueCases: readonly ConformanceCase[] = [
  stillTime("nothing is due in an empty store", async ({ store }) => {
    equal(await store.nextDueInMs([laneOf({ workflow: "order" })]), null, "of one lane");
    equal(await store.nextDueInMs([]), null, "of no lane");
  }),

  stillTime("the next due time is exact to the millisecond", async ({ store, clock }) => {
    const run = await waiting(store, { wake: { inMs: 5_000 } });
    equal(await dueIn(store, run), 5_000, "at once");
    clock.advance(4_999);
    equal(await dueIn(store, run), 1, "one millisecond before");
    clock.advance(1);
    equal(await dueIn(store, run), 0, "at the time");
    clock.advance(60_000);
    equal(await dueIn(store, run), 0, "long after");
  }),

  stillTime("the next due time is that of the earliest ticket in the lanes", async ({ store }) => {
    for (const [workflow, inMs] of [
      ["a", 9_000],
      ["b", 3_000],
      ["c", 1_000],
    ] as const) {
      await waiting(store, { workflow, wake: { inMs } });
    }
    await waiting(store, { workflow: "a", queue: "other", wake: { inMs: 100 } });
    const lanes = ["a", "b"].map((workflow) => laneOf({ workflow }));
    equal(await store.nextDueInMs(lanes), 3_000, "of two lanes");
    equal(await store.nextDueInMs(lanes.slice(0, 1)), 9_000, "of one lane");
    equal(await store.nextDueInMs([laneOf({ workflow: "none" })]), null, "of an empty lane");
  }),

  stillTime("new runs are due at once, also beside parked ones", async ({ store }) => {
    const run = await waiting(store, { wake: { inMs: 5_000 } });
    await create(store);
    equal(await dueIn(store, run), 0, "due");
  }),

  stillTime("leased, paused and ended runs are never due", async ({ store, clock }) => {
    await leased(store);
    await finished(store);
    const paused = await waiting(store, { wake: { inMs: 100 } });
    await store.pause(targetOf(paused));
    const ended = await waiting(store, { wake: { inMs: 100 } });
    await store.terminate(targetOf(ended), "t");
    clock.advance(1_000);
    equal(await dueIn(store, paused), null, "due");
  }),

  stillTime("a dead runner's runs are due at once in their own lanes only", async (world) => {
    const run = await leased(world.store);
    await letRunnersDie(world);
    equal(await dueIn(world.store, run), 0, "in its lane");
    equal(await dueIn(world.store, { workflow: "other" }), null, "in another lane");
    equal(await world.store.nextDueInMs([]), null, "in no lane");
  }),

  stillTime("a wait of a year is due in a year", async ({ store }) => {
    const year = 365 * 24 * 3_600_000;
    const run = await waiting(store, { wake: { inMs: year } });
    equal(await dueIn(store, run), year, "due");
  }),
];

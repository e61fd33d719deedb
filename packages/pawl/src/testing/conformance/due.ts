import type { Lane, Store } from "../../store/store.js";
import { equal, ok } from "./assert.js";
import {
  anInstance,
  complete,
  create,
  dueIn,
  finished,
  laneOf,
  leasedRun,
  letRunnersDie,
  targetOf,
  waiting,
  pause,
  terminate,
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

  stillTime("new runs are due at once, even beside parked ones", async ({ store }) => {
    const run = await waiting(store, { wake: { inMs: 5_000 } });
    await create(store);
    equal(await dueIn(store, run), 0, "due");
  }),

  stillTime("leased, paused and ended runs are never due", async ({ store, clock }) => {
    await leasedRun(store);
    await finished(store);
    const paused = await waiting(store, { wake: { inMs: 100 } });
    await store.control(targetOf(paused), pause);
    const ended = await waiting(store, { wake: { inMs: 100 } });
    await store.control(targetOf(ended), terminate("t"));
    clock.advance(1_000);
    equal(await dueIn(store, paused), null, "due");
  }),

  stillTime("a dead runner's runs are due at once in their own lanes only", async (world) => {
    const run = await leasedRun(world.store);
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

  stillTime(
    "unknown lanes are the other lanes of the same queues in which runs are due",
    async (world) => {
      const { store, clock } = world;
      for (const workflow of ["a", "b", "b", "B", "ä", "order"]) await create(store, { workflow });
      await create(store, { workflow: "c", queue: "other" });
      await waiting(store, { workflow: "later", wake: { inMs: 5_000 } });
      const orders = laneOf({ workflow: "order" });
      equal(await unknownTo(store, [orders]), ["B", "a", "b", "ä"], "beside one");
      equal(
        await unknownTo(store, [orders, laneOf({ workflow: "b" }), laneOf({ workflow: "none" })]),
        ["B", "a", "ä"],
        "beside three",
      );
      equal(await unknownTo(store, [{ queue: "other", handler: "b" }]), ["c"], "on another queue");
      equal(await unknownTo(store, [{ queue: "other", handler: "c" }]), [], "on a queue all known");
      equal(await unknownTo(store, []), [], "on no queue");
      clock.advance(4_999);
      equal(await unknownTo(store, [orders]), ["B", "a", "b", "ä"], "a millisecond before");
      clock.advance(1);
      equal(await unknownTo(store, [orders]), ["B", "a", "b", "later", "ä"], "when it is due");
    },
  ),

  stillTime("an unknown lane is reported for every known queue it is on", async ({ store }) => {
    for (const queue of ["x", "y", "z"]) await create(store, { workflow: "a", queue });
    const lanes = await store.unknownLanes([
      { queue: "x", handler: "b" },
      { queue: "y", handler: "b" },
    ]);
    equal(
      lanes.map(({ queue, handler }) => `${queue} ${handler}`).toSorted(),
      ["x a", "y a"],
      "lanes",
    );
  }),

  stillTime("runs that nobody could claim do not make a lane unknown", async (world) => {
    const { store, clock } = world;
    await leasedRun(store, { workflow: "leased" });
    await finished(store, complete(), { workflow: "finished" });
    await waiting(store, { workflow: "waiting" });
    const paused = await create(store, { workflow: "paused" });
    await store.control(targetOf(paused), pause);
    clock.advance(1_000);
    equal(await unknownTo(store, [laneOf({ workflow: "order" })]), [], "while leased");
    await letRunnersDie(world);
    equal(await unknownTo(store, [laneOf({ workflow: "order" })]), ["leased"], "of a dead runner");
    equal(await unknownTo(store, [laneOf({ workflow: "leased" })]), [], "if known");
    equal(await unknownTo(store, [{ queue: "other", handler: "x" }]), [], "of another queue");
  }),

  stillTime("at most 100 unknown lanes are reported, however many are known", async ({ store }) => {
    const names = Array.from({ length: 230 }, (_, n) => `w${String(n).padStart(3, "0")}`);
    await store.create(names.map((workflow) => anInstance({ workflow })));
    const known = names.slice(0, 120).map((workflow) => laneOf({ workflow }));
    const unknown = await unknownTo(store, known);
    equal(unknown.length, 100, "how many");
    ok(
      unknown.every((workflow) => names.indexOf(workflow) >= 120),
      "none of them is known",
    );
  }),
];

/** Returns the handlers of the unknown lanes, sorted by name. */
async function unknownTo(store: Store, known: readonly Lane[]): Promise<string[]> {
  return (await store.unknownLanes(known)).map(({ handler }) => handler).toSorted();
}

import { hookNames } from "../../model/hooks.js";
import type { Target } from "../../model/target.js";
import type { Store } from "../../store/store.js";
import { equal, only } from "./assert.js";
import {
  aPart,
  aRunner,
  anEvent,
  anInstance,
  claim,
  claimOne,
  commitOk,
  complete,
  create,
  dueIn,
  recordedEvents,
  finished,
  leasedRun,
  pollOk,
  sendTo,
  currentStatus,
  targetOf,
  waiting,
} from "./build.js";
import { atOnce, inTransaction, storesOn } from "./concurrency.js";
import type { ConformanceCase } from "./fixture.js";
import { hostileTexts } from "./text.js";
import { stillTime } from "./world.js";

async function moveAll(store: Store): Promise<number> {
  let moved = 0;
  for (;;) {
    const some = await store.moveInbox(100);
    if (some === 0) return moved;
    moved += some;
  }
}

/**
 * Events that users send in their transactions lie in the inbox until a runner moves them into their runs.
 */
export const inboxCases: readonly ConformanceCase[] = [
  stillTime("an event in a transaction that rolls back never arrives", async ({ db, store }) => {
    const run = await create(store);
    await inTransaction(db, (tx) => store.sendEvent(targetOf(run), anEvent(), { tx }), "rollback");
    equal(await moveAll(store), 0, "moved");
    equal(await recordedEvents(store, run), [], "events");
  }),

  stillTime("an event in a transaction arrives when the inbox is moved", async (world) => {
    const { db, store, clock } = world;
    const run = await create(store);
    const event = anEvent("paid", { payload: hostileTexts[0]! });
    const answer = await inTransaction(db, (tx) => store.sendEvent(targetOf(run), event, { tx }));
    equal(answer.kind, "accepted", "the answer");
    equal(await recordedEvents(store, run), [], "before");
    clock.advance(700);
    equal(await store.moveInbox(10), 1, "moved");
    equal(
      await recordedEvents(store, run),
      [
        {
          number: 1,
          kind: "event",
          type: "paid",
          payload: hostileTexts[0]!,
          createdAt: clock.now(),
          deliveredAt: null,
          consumedBy: null,
        },
      ],
      "after",
    );
    equal(await store.moveInbox(10), 0, "moved again");
  }),

  stillTime("a transaction can create an instance and send it an event", async ({ db, store }) => {
    const instance = anInstance();
    await inTransaction(db, async (tx) => {
      await store.create([instance], { tx });
      const answer = await store.sendEvent(targetOf(instance), anEvent(), { tx });
      equal(answer.kind, "accepted", "the event");
    });
    await moveAll(store);
    equal((await recordedEvents(store, instance)).length, 1, "events");
  }),

  stillTime("events of transactions keep their order", async ({ db, store }) => {
    const [one, two] = [await create(store), await create(store)];
    await sendTo(store, one, anEvent("outside", { payload: "0" }));
    for (const from of [1, 4]) {
      await inTransaction(db, async (tx) => {
        for (let i = from; i < from + 3; i++) {
          const event = anEvent("inside", { payload: `${i}` });
          await store.sendEvent(targetOf(one), event, { tx });
          await store.sendEvent(targetOf(two), { ...event, eventId: `two-${i}` }, { tx });
        }
      });
    }
    await moveAll(store);
    const seen = async (run: Target) =>
      (await recordedEvents(store, run)).map(({ number, payload }) => [number, payload]);
    equal(
      await seen(one),
      [0, 1, 2, 3, 4, 5, 6].map((i) => [i + 1, `${i}`]),
      "of the one",
    );
    equal(
      await seen(two),
      [1, 2, 3, 4, 5, 6].map((i) => [i, `${i}`]),
      "of the other",
    );
  }),

  stillTime("events keep their order when several move the inbox", async ({ db, store }) => {
    const stores = await storesOn(db, 3);
    const runs = [await create(store), await create(store)];
    const payloads = Array.from({ length: 60 }, (_, i) => `${i}`);
    await inTransaction(db, async (tx) => {
      for (const payload of payloads) {
        for (const run of runs)
          await store.sendEvent(targetOf(run), anEvent("t", { payload }), { tx });
      }
    });
    const isEmpty = async () => (await recordedEvents(store, runs[1]!)).length === payloads.length;
    const jobs = stores.map((each) => async () => {
      while ((await each.moveInbox(5)) > 0 || !(await isEmpty()));
    });
    await atOnce(jobs, "three that move");
    await moveAll(store);
    for (const run of runs) {
      equal(
        (await recordedEvents(store, run)).map(({ payload }) => payload),
        payloads,
        "events",
      );
    }
  }),

  stillTime("a filled inbox is due at once for a caller that names lanes", async (world) => {
    const { db, store } = world;
    const run = await waiting(store);
    await inTransaction(db, (tx) => store.sendEvent(targetOf(run), anEvent(), { tx }));
    equal(await dueIn(store, run), 0, "in its lane");
    equal(await store.nextDueInMs([], hookNames), null, "without lanes");
    equal(await moveAll(store), 1, "moved");
  }),

  stillTime("moving the inbox takes no more than its limit", async ({ db, store }) => {
    const run = await create(store);
    await inTransaction(db, async (tx) => {
      for (let i = 0; i < 5; i++) {
        await store.sendEvent(targetOf(run), anEvent("t", { payload: `${i}` }), { tx });
      }
    });
    equal(await store.moveInbox(2), 2, "moved first");
    equal(
      (await recordedEvents(store, run)).map(({ payload }) => payload),
      ["0", "1"],
      "events",
    );
    equal(await store.moveInbox(100), 3, "moved then");
    equal((await recordedEvents(store, run)).length, 5, "all events");
  }),

  stillTime("an event sent inside and outside transactions arrives once", async ({ db, store }) => {
    const run = await create(store);
    const [early, late] = [anEvent("early"), anEvent("late")];
    await store.sendEvent(targetOf(run), early);
    for (let i = 0; i < 2; i++) {
      await inTransaction(db, async (tx) => {
        await store.sendEvent(targetOf(run), early, { tx });
        await store.sendEvent(targetOf(run), late, { tx });
        await store.sendEvent(targetOf(run), late, { tx });
      });
    }
    await moveAll(store);
    equal(await store.sendEvent(targetOf(run), late), { kind: "duplicate" }, "sent once more");
    equal(
      (await recordedEvents(store, run)).map(({ type }) => type),
      ["early", "late"],
      "events",
    );
  }),

  stillTime("a moved event wakes a run that waits for its type", async ({ db, store }) => {
    const run = await waiting(store, { types: ["paid"] });
    await inTransaction(db, async (tx) => {
      await store.sendEvent(targetOf(run), anEvent("paid"), { tx });
    });
    equal(await claim(store, await aRunner(store)), [], "claimed before");
    await moveAll(store);
    equal((await claimOne(store)).eventCount, 1, "events of the run claimed after");
  }),

  stillTime(
    "a moved event is later than the last poll of its run",
    async ({ db, store, clock }) => {
      const run = await leasedRun(store);
      await inTransaction(db, (tx) => store.sendEvent(targetOf(run), anEvent(), { tx }));
      clock.advance(1_000);
      const { now } = await pollOk(store, run);
      clock.advance(-500);
      await moveAll(store);
      const event = only(await recordedEvents(store, run), "events");
      equal(event.createdAt > now, true, "createdAt is after the poll");
    },
  ),

  stillTime("an event whose run has ended meanwhile does not stay in the inbox", async (world) => {
    const { db, store } = world;
    const run = await leasedRun(store);
    await inTransaction(db, (tx) => store.sendEvent(targetOf(run), anEvent(), { tx }));
    await commitOk(store, aPart(run, { next: complete() }));
    equal(await store.moveInbox(10), 1, "moved");
    equal(await store.moveInbox(10), 0, "left");
    equal(await currentStatus(store, run), "complete", "the status");
  }),

  stillTime(
    "a transaction's event is refused for unknown and ended runs",
    async ({ db, store }) => {
      const ended = await finished(store);
      await inTransaction(db, async (tx) => {
        const unknown = { workflow: "order", id: "unknown" };
        equal(await store.sendEvent(unknown, anEvent(), { tx }), { kind: "notFound" }, "unknown");
        equal(
          await store.sendEvent(targetOf(ended), anEvent(), { tx }),
          { kind: "terminal", status: "complete" },
          "ended",
        );
      });
      equal(await moveAll(store), 0, "moved");
    },
  ),
];

import type { Target } from "../../model/target.js";
import type { NewEvent, SendEventAnswer, Store } from "../../store/store.js";
import { equal, only } from "./assert.js";
import {
  aPart,
  aStep,
  anEvent,
  commitOk,
  complete,
  recordedEvents,
  failWith,
  type Leased,
  leasedRun,
  sendTo,
  targetOf,
  restart,
  terminate,
} from "./build.js";
import { atOnce, storesOn, untilNotBusy } from "./concurrency.js";
import type { ConformanceCase, TestDatabase } from "./fixture.js";
import { realTime, stillTime, withTransactions } from "./world.js";

type Send = (db: TestDatabase, to: Target, event: NewEvent) => Promise<SendEventAnswer>;

const sendAlone: Send = ({ store }, to, event) => store.sendEvent(targetOf(to), event);

const sendInTransaction: Send = async (db, to, event) => {
  const transaction = await db.begin();
  const { tx } = transaction;
  const answer = await db.store.sendEvent(targetOf(to), event, { tx });
  await transaction.commit();
  return answer;
};

const completes = (store: Store, run: Leased) =>
  commitOk(store, aPart(run, { partNumber: 2, next: complete() }));
const fails = (store: Store, run: Leased) =>
  commitOk(store, aPart(run, { partNumber: 2, next: failWith() }));
const isTerminated = (store: Store, run: Leased) =>
  store.control(targetOf(run), terminate(`terminate ${run.iid}`));

const ends = [
  ["complete", completes],
  ["errored", fails],
  ["terminated", isTerminated],
] as const;

const duplicate = { kind: "duplicate" } as const;

/**
 * An event that a run already has, sent again after that run has ended, succeeds as it did the first time.
 */
const afterTheEnd = (how: string, sendAgain: Send): readonly ConformanceCase[] => [
  ...ends.map(([status, end]) =>
    stillTime(
      `an event sent again${how} after its run is ${status} is a duplicate`,
      async ({ db, store }) => {
        const [run, other] = [await leasedRun(store), await leasedRun(store)];
        const [read, unread] = [anEvent("paid", { eventId: "Paid" }), anEvent("unread")];
        for (const event of [read, unread]) await sendTo(store, run, event);
        const consumed = [{ number: 1, ord: 1 }];
        await commitOk(store, aPart(run, { seenEvents: 2, steps: [aStep(1)], consumed }));
        for (const each of [run, other]) await end(store, each);
        const before = await recordedEvents(store, run);

        for (const again of [read, unread, { ...read, type: "other", payload: null }]) {
          equal(await sendAgain(db, run, again), duplicate, "the answer");
        }
        const refused = { kind: "terminal", status } as const;
        for (const eventId of ["Paid ", "paid", anEvent().eventId]) {
          const unknown = { ...read, eventId };
          equal(await sendAgain(db, run, unknown), refused, `the answer to "${eventId}"`);
        }
        equal(await sendAgain(db, other, read), refused, "the answer of another run");
        equal(await store.moveInbox(10), 0, "moved");
        equal(await recordedEvents(store, run), before, "the events");
      },
    ),
  ),

  stillTime(
    `an event sent again${how} after a restart goes to the new run`,
    async ({ db, store }) => {
      const run = await leasedRun(store);
      const [event, old] = [anEvent(), anEvent()];
      for (const each of [event, old]) await sendTo(store, run, each);
      await completes(store, run);
      await store.control(targetOf(run), restart("restart"));
      equal((await sendAgain(db, run, event)).kind, "accepted", "the answer of the new run");
      await store.moveInbox(10);
      equal((await recordedEvents(store, run)).length, 1, "events of the new run");
      equal((await recordedEvents(store, run, 1)).length, 2, "events of the old run");
      await isTerminated(store, run);
      equal(await sendAgain(db, run, event), duplicate, "the answer after its end");
      const refused = { kind: "terminal", status: "terminated" } as const;
      equal(await sendAgain(db, run, old), refused, "the answer to an event of the old run");
    },
  ),
];

export const resentEventCases: readonly ConformanceCase[] = [
  ...afterTheEnd("", sendAlone),
  ...withTransactions(afterTheEnd(" in a transaction", sendInTransaction)),

  ...withTransactions([
    stillTime(
      "an event left in the inbox of an ended run is a duplicate until it is dropped",
      async (world) => {
        const { db, store } = world;
        const [run, other] = [await leasedRun(store), await leasedRun(store)];
        const event = anEvent();
        equal((await sendInTransaction(db, run, event)).kind, "accepted", "the first answer");
        for (const each of [run, other]) await completes(store, each);
        const refused = { kind: "terminal", status: "complete" } as const;
        for (const sendAgain of [sendAlone, sendInTransaction]) {
          equal(await sendAgain(db, run, event), duplicate, "the answer");
          equal(await sendAgain(db, run, anEvent()), refused, "the answer to another id");
          equal(await sendAgain(db, other, event), refused, "the answer of another run");
        }
        equal(await store.moveInbox(10), 1, "moved");
        for (const sendAgain of [sendAlone, sendInTransaction]) {
          equal(await sendAgain(db, run, event), refused, "the answer once it is dropped");
        }
        equal(await recordedEvents(store, run), [], "the events");
      },
    ),
  ]),

  realTime("an event sent while its run ends is answered alike when resent", async ({ db }) => {
    const [one, two] = await storesOn(db, 2);
    for (let round = 0; round < 30; round++) {
      const run = await leasedRun(one, { workflow: `ends-${round}` });
      const event = anEvent();
      const part = aPart(run, { next: complete() });
      const jobs = [
        () => two!.sendEvent(targetOf(run), event),
        () => untilNotBusy(async () => only(await one.commit([part]), "commit")),
      ];
      const answers = await atOnce<{ readonly kind: string }>(
        round % 2 === 0 ? jobs : jobs.toReversed(),
        "an event and the end",
      );
      const isIn = answers.some(({ kind }) => kind === "accepted");
      const again = await one.sendEvent(targetOf(run), event);
      equal(again.kind, isIn ? "duplicate" : "terminal", "the second answer");
      equal((await recordedEvents(one, run)).length, isIn ? 1 : 0, "events");
    }
  }),
];

import type { Target } from "../../model/target.js";
import type { Store } from "../../store/store.js";
import { equal } from "./assert.js";
import {
  aPart,
  aRunner,
  aStep,
  anEvent,
  anInstance,
  claim,
  claimOne,
  commitOk,
  complete,
  create,
  recordedEvents,
  type Leased,
  leasedRun,
  parkFor,
  pollOk,
  sendTo,
  someInstances,
  currentStatus,
  recordedSteps,
  targetOf,
  unique,
  pause,
  restart,
  terminate,
} from "./build.js";
import { atOnce, inTime, inTransaction, whileOpen } from "./concurrency.js";
import type { ConformanceCase, TestDatabase, TestTransaction } from "./fixture.js";
import { realTime, stillTime } from "./world.js";

/** Opens a transaction that tries to create an id that is taken. */
async function openWithDuplicate(db: TestDatabase, taken: Target): Promise<TestTransaction> {
  const transaction = await db.begin();
  const [answer] = await db.store.create([anInstance(targetOf(taken))], { tx: transaction.tx });
  equal(answer?.kind, "duplicate", "the create in the transaction");
  return transaction;
}

/** Opens a transaction that sends an event. */
async function openWithEvent(db: TestDatabase, target: Target): Promise<TestTransaction> {
  const transaction = await db.begin();
  const { tx } = transaction;
  const answer = await db.store.sendEvent(targetOf(target), anEvent("paid"), { tx });
  equal(answer.kind, "accepted", "the event in the transaction");
  return transaction;
}

const whatARunDoes: Readonly<Record<string, (store: Store, run: Leased) => Promise<unknown>>> = {
  commit: (store, run) => commitOk(store, aPart(run, { steps: [aStep(1)] })),
  park: (store, run) => commitOk(store, aPart(run, { next: parkFor(["paid"]) })),
  finish: (store, run) => commitOk(store, aPart(run, { next: complete() })),
  "be polled": (store, run) => pollOk(store, run),
  "receive an event": (store, run) => sendTo(store, run),
  "be paused": (store, run) => store.control(targetOf(run), pause),
  "be terminated": (store, run) => store.control(targetOf(run), terminate("terminate")),
  "be restarted": (store, run) => store.control(targetOf(run), restart("restart")),
};

export const transactionCases: readonly ConformanceCase[] = [
  stillTime("a create in a transaction that rolls back leaves nothing", async ({ db, store }) => {
    const batch = someInstances(3);
    const answers = await inTransaction(db, (tx) => store.create(batch, { tx }), "rollback");
    equal(
      answers.map(({ kind }) => kind),
      ["created", "created", "created"],
      "the answers",
    );
    for (const item of batch) equal(await store.get(targetOf(item)), null, "the instance");
    equal(await claim(store, await aRunner(store)), [], "claimed");
    equal(
      (await store.create(batch)).map(({ kind }) => kind),
      Array(3).fill("created"),
      "again",
    );
  }),

  stillTime("a create in a transaction can be claimed after its commit", async (world) => {
    const { db, store, clock } = world;
    const instance = anInstance();
    const answers = await inTransaction(db, (tx) => store.create([instance], { tx }));
    equal(
      answers,
      [{ kind: "created", iid: instance.iid, createdAt: clock.now(), leased: false }],
      "the answer",
    );
    equal((await claimOne(store)).iid, instance.iid, "claimed");
  }),

  realTime("a claim never takes a run whose creation rolls back", async ({ db, store }) => {
    const runner = await aRunner(store);
    const transaction = await db.begin();
    await store.create([anInstance()], { tx: transaction.tx });
    const claimed = await whileOpen(db, transaction, "rollback", () => claim(store, runner));
    equal(claimed, [], "claimed");
  }),

  stillTime("a duplicate leaves the transaction usable", async ({ db, store }) => {
    const taken = await create(store, { origin: "o" });
    const [before, after] = [anInstance(), anInstance()];
    await inTransaction(db, async (tx) => {
      await store.create([before], { tx });
      const [answer] = await store.create([anInstance({ id: taken.id })], { tx });
      equal(
        answer,
        { kind: "duplicate", existing: { iid: taken.iid, origin: "o" } },
        "the duplicate",
      );
      equal((await store.create([after], { tx }))[0]?.kind, "created", "the create after it");
    });
    equal(await currentStatus(store, before), "queued", "created before");
    equal(await currentStatus(store, after), "queued", "created after");
  }),

  stillTime("a transaction sees its own creates", async ({ db, store }) => {
    const instance = anInstance();
    await inTransaction(db, async (tx) => {
      await store.create([instance], { tx });
      equal((await store.create([instance], { tx }))[0]?.kind, "created", "sent again");
      const [other] = await store.create([anInstance({ id: instance.id })], { tx });
      equal(other?.kind, "duplicate", "another with the same id");
    });
    equal((await claim(store, await aRunner(store))).length, 1, "tickets");
  }),

  stillTime("a batch in a transaction answers for each item", async ({ db, store }) => {
    const taken = await create(store);
    const [first, second] = [anInstance(), anInstance()];
    const batch = [first, anInstance({ id: taken.id }), second, anInstance({ id: first.id })];
    const answers = await inTransaction(db, (tx) => store.create(batch, { tx }));
    equal(
      answers.map(({ kind }) => kind),
      ["created", "duplicate", "created", "duplicate"],
      "the answers",
    );
    equal((await claim(store, await aRunner(store))).length, 3, "tickets");
  }),

  realTime(
    "other runs go on while a transaction with a duplicate is open",
    async ({ db, store }) => {
      const taken = await create(store, { workflow: "taken" });
      const [running, ending] = [await leasedRun(store), await leasedRun(store)];
      const queued = await create(store, { workflow: "queued" });
      const transaction = await openWithDuplicate(db, taken);
      await whileOpen(db, transaction, "commit", async () => {
        await claimOne(store, queued);
        await commitOk(store, aPart(running, { steps: [aStep(1)] }));
        await sendTo(store, running);
        await store.control(targetOf(ending), terminate("terminate"));
        await create(store);
      });
      equal(await currentStatus(store, ending), "terminated", "the terminated run");
      equal((await recordedSteps(store, running)).length, 1, "steps");
    },
  ),

  realTime("ids next to those of an open transaction can be created", async ({ db, store }) => {
    for (const id of ["b", "d", "f"]) await create(store, { id });
    for (const tried of ["d", "dd"]) {
      const transaction = await db.begin();
      await store.create([anInstance({ id: tried })], { tx: transaction.tx });
      const around = ["a", "c", "da", "de", "e", "g"].map((id) =>
        anInstance({ id: `${id}-${tried}` }),
      );
      const answers = await whileOpen(db, transaction, "rollback", () => store.create(around));
      equal(
        answers.map(({ kind }) => kind),
        Array(6).fill("created"),
        "the answers",
      );
    }
  }),

  ...(["commit", "rollback"] as const).map((end) =>
    realTime(`a create waits for a transaction with its id to ${end}`, async ({ db, store }) => {
      const [users, mine] = [anInstance({ id: "same" }), anInstance({ id: "same" })];
      const transaction = await db.begin();
      await store.create([users], { tx: transaction.tx });
      const creating = store.create([mine]);
      await transaction[end]();
      const [answer] = await inTime(creating, "the create");
      equal(answer?.kind, end === "commit" ? "duplicate" : "created", "the answer");
      const expected = end === "commit" ? users.iid : mine.iid;
      equal((await store.get(targetOf(mine)))?.iid, expected, "who has the id");
    }),
  ),

  realTime("creates beside one that waits for a transaction go on", async ({ db, store }) => {
    // On MySQL, a session that waits for an id locks the gap in which the id lies.
    for (const id of ["samd", "samf"]) await create(store, { id });
    const transaction = await db.begin();
    await store.create([anInstance({ id: "same" })], { tx: transaction.tx });
    const creating = store.create([anInstance({ id: "same" })]);
    const answers = await whileOpen(db, transaction, "rollback", () =>
      Promise.all(Array.from({ length: 10 }, () => store.create([anInstance()]))),
    );
    equal(
      answers.flat().map(({ kind }) => kind),
      Array(10).fill("created"),
      "the answers",
    );
    const [answer] = await inTime(creating, "the create that waits");
    equal(answer?.kind, "created", "its answer");
  }),

  realTime("a commit does not wait for an id that an open transaction has taken", async (world) => {
    const { db, store } = world;
    const [spawning, other] = [await leasedRun(store), await leasedRun(store)];
    const transaction = await db.begin();
    const child = anInstance({ workflow: "child" });
    await store.create([child], { tx: transaction.tx });
    const spawns = [anInstance(targetOf(child))];
    const parts = [
      aPart(spawning, { steps: [aStep(1)], spawns }),
      aPart(other, { steps: [aStep(1)] }),
    ];
    const answers = await whileOpen(db, transaction, "rollback", () => store.commit(parts));
    equal(answers[1]?.kind, "ok", "its neighbour");
    if (answers[0]?.kind === "busy") await commitOk(store, parts[0]!);
    equal((await recordedSteps(store, spawning)).length, 1, "steps");
    equal(await currentStatus(store, child), "queued", "the child");
  }),

  realTime("an id taken after a transaction began is a duplicate in it", async ({ db, store }) => {
    if (db.oneWriter) return; // nobody else can write while the transaction is open
    const [before, after] = [anInstance(), anInstance()];
    const transaction = await db.begin();
    await store.create([before], { tx: transaction.tx });
    const taken = await create(store);
    const [answer] = await store.create([anInstance(targetOf(taken))], { tx: transaction.tx });
    equal(answer?.kind, "duplicate", "the answer");
    equal((await store.create([after], { tx: transaction.tx }))[0]?.kind, "created", "after it");
    await transaction.commit();
    for (const run of [before, after])
      equal(await currentStatus(store, run), "queued", "the status");
  }),

  realTime("a run can be claimed while open transactions name it", async ({ db, store }) => {
    for (const open of [openWithDuplicate, openWithEvent]) {
      const run = await create(store, { workflow: `named-${unique()}` });
      const transaction = await open(db, run);
      await whileOpen(db, transaction, "rollback", () => claimOne(store, run));
    }
  }),

  ...Object.entries(whatARunDoes).map(([verb, act]) =>
    realTime(`a run can ${verb} while open transactions name it`, async ({ db, store }) => {
      for (const open of [openWithDuplicate, openWithEvent]) {
        const run = await leasedRun(store, { workflow: `named-${unique()}` });
        const transaction = await open(db, run);
        await whileOpen(db, transaction, "rollback", () => act(store, run));
      }
    }),
  ),

  realTime(
    "the engine's acknowledged commits and events survive a user's rollback",
    async ({ db, store }) => {
      const run = await leasedRun(store);
      const transaction = await db.begin();
      await store.create([anInstance({ workflow: "other" })], { tx: transaction.tx });
      await whileOpen(db, transaction, "rollback", async () => {
        await commitOk(store, aPart(run, { steps: [aStep(1)] }));
        await sendTo(store, run);
      });
      equal((await recordedSteps(store, run)).length, 1, "steps");
      equal((await recordedEvents(store, run)).length, 1, "events");
    },
  ),

  realTime("creates in transactions go on while the engine works", async ({ db, store }) => {
    const runner = await aRunner(store);
    const hot = await leasedRun(store, { workflow: "hot", runner });
    let parts = 0;
    const engine = async () => {
      for (let i = 0; i < 100; i++) {
        parts += 1;
        await commitOk(store, aPart(hot, { partNumber: parts, steps: [aStep(parts)] }));
        await sendTo(store, hot);
      }
    };
    const users = async () => {
      for (let i = 0; i < 15; i++) {
        await inTransaction(db, async (tx) => {
          const [duplicate] = await store.create([anInstance(targetOf(hot))], { tx });
          equal(duplicate?.kind, "duplicate", "the taken id");
          equal((await store.create([anInstance()], { tx }))[0]?.kind, "created", "a free id");
        });
      }
    };
    await atOnce([engine, users], "engine and users");
    equal((await claim(store, runner)).length, 15, "created in transactions");
    equal((await recordedSteps(store, hot)).length, parts, "committed by the engine");
  }),
];

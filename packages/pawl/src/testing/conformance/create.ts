import type { CreateAnswer } from "../../store/store.js";
import { equal, equalSets, kindOf, matches, only, rejection } from "./assert.js";
import {
  aPart,
  aRunner,
  anInstance,
  allPages,
  claim,
  claimOne,
  commitOk,
  complete,
  create,
  finished,
  laneOf,
  letRunnersDie,
  parkFor,
  someInstances,
  currentStatus,
  targetOf,
} from "./build.js";
import { atOnce, storesOn } from "./concurrency.js";
import type { ConformanceCase } from "./fixture.js";
import { hostileTexts, lookalikes, mebibyteText } from "./text.js";
import { realTime, stillTime, type World } from "./world.js";

const kinds = (answers: readonly CreateAnswer[]) => answers.map((answer) => answer.kind);

/** Returns the iid of the instance that has the id after this answer. */
function holder(answer: CreateAnswer): string | undefined {
  return answer.kind === "created" ? answer.iid : answer.existing?.iid;
}

export const createCases: readonly ConformanceCase[] = [
  stillTime("create writes an instance that can be read and claimed at once", async (world) => {
    const { store, clock } = world;
    const instance = anInstance({ params: '{"a":1}', origin: "run/3/2" });
    const createdAt = clock.now();
    equal(
      await store.create([instance]),
      [{ kind: "created", iid: instance.iid, createdAt, leased: false }],
      "the answer",
    );
    equal(
      await store.get(targetOf(instance)),
      {
        ...targetOf(instance),
        iid: instance.iid,
        runNumber: 1,
        status: "queued",
        params: '{"a":1}',
        output: null,
        error: null,
        createdAt,
        startedAt: null,
        finishedAt: null,
        origin: "run/3/2",
      },
      "the record",
    );
    equal((await claimOne(store)).iid, instance.iid, "the claimed ticket");
  }),

  stillTime("a create of a taken id answers duplicate and names its holder", async ({ store }) => {
    const first = await create(store, { origin: "parent/1/1" });
    const second = await create(store);
    equal(
      await store.create([
        anInstance({ id: first.id, origin: "other" }),
        anInstance({ id: second.id }),
      ]),
      [
        { kind: "duplicate", existing: { iid: first.iid, origin: "parent/1/1" } },
        { kind: "duplicate", existing: { iid: second.iid, origin: null } },
      ],
      "the answers",
    );
    equal(await tickets(store), 2, "tickets");
  }),

  stillTime("an id is free again in another workflow", async ({ store }) => {
    const first = await create(store, { workflow: "order" });
    const second = anInstance({ workflow: "invoice", id: first.id });
    equal(kinds(await store.create([second])), ["created"], "the same id elsewhere");
  }),

  stillTime("the same create sent again answers created and adds nothing", async (world) => {
    const { store, clock } = world;
    const batch = someInstances(3);
    const first = await store.create(batch);
    clock.advance(5_000);
    equal(await store.create(batch), first, "the second answer, with the first times");
    equal(await tickets(store), 3, "tickets");
  }),

  stillTime("a create sent again after its run has ended does not revive it", async ({ store }) => {
    const instance = anInstance();
    const first = await store.create([instance]);
    const run = await claimOne(store);
    await commitOk(store, aPart(run, { next: complete('"out"') }));
    equal(await store.create([instance]), first, "the answer");
    equal(await currentStatus(store, instance), "complete", "the status");
    equal(await tickets(store), 0, "tickets");
  }),

  stillTime("a duplicate of a finished instance is still a duplicate", async ({ store }) => {
    const run = await finished(store);
    const [answer] = await store.create([anInstance({ id: run.id })]);
    equal(answer, { kind: "duplicate", existing: { iid: run.iid, origin: null } }, "the answer");
  }),

  stillTime("all instances of a batch of 100 get the same time", async ({ store, clock }) => {
    const batch = someInstances(100);
    equal(
      await store.create(batch),
      batch.map(({ iid }) => ({ kind: "created", iid, createdAt: clock.now(), leased: false })),
      "the answers, in order",
    );
    equal(await tickets(store), 100, "tickets");
  }),

  stillTime("a batch of 1,000 is created", async ({ store }) => {
    const answers = await store.create(someInstances(1_000));
    equal(answers.filter(({ kind }) => kind === "created").length, 1_000, "created");
    equal(await tickets(store), 1_000, "tickets");
  }),

  stillTime("within a batch, the first instance with an id wins", async ({ store }) => {
    const [first, other] = [anInstance({ id: "a" }), anInstance({ id: "b" })];
    const answers = await store.create([first, other, anInstance({ id: "a" })]);
    equal(kinds(answers), ["created", "created", "duplicate"], "the answers");
    equal(holder(answers[2]!), first.iid, "who has the id");
    equal(await tickets(store), 2, "tickets");
  }),

  stillTime("a taken id in a batch does not affect the other items", async ({ store }) => {
    const taken = await create(store);
    const [before, after] = [anInstance(), anInstance()];
    const answers = await store.create([before, anInstance({ id: taken.id }), after]);
    equal(kinds(answers), ["created", "duplicate", "created"], "the answers");
    equal(await currentStatus(store, before), "queued", "the item before");
    equal(await currentStatus(store, after), "queued", "the item after");
  }),

  stillTime("an empty batch creates nothing", async ({ store }) => {
    equal(await store.create([]), [], "the answers");
  }),

  realTime("concurrent creates are each answered separately", async ({ store }) => {
    const taken = await create(store);
    const wanted = someInstances(30);
    const bad = anInstance({ params: "\u0000" });
    const requests = [
      ...wanted.map((instance) => [instance]),
      [anInstance({ id: taken.id }), anInstance()],
      [bad],
    ];
    const settled = await Promise.allSettled(requests.map((request) => store.create(request)));
    const answers = settled.map((outcome) =>
      outcome.status === "fulfilled" ? kinds(outcome.value) : "refused",
    );
    for (const n of wanted.keys()) equal(answers[n], ["created"], `answer ${n}`);
    equal(answers[30], ["duplicate", "created"], "the answers to the request with a taken id");
    // A database either accepts a raw NUL or refuses that request alone.
    const refused = answers[31] === "refused";
    equal((await store.get(targetOf(bad))) === null, refused, "the row with a NUL is missing");
    equal(await tickets(store), 32 + (refused ? 0 : 1), "tickets");
  }),

  realTime("a batch with data that the database refuses leaves no rows", async ({ store }) => {
    // The codec never lets a raw NUL get this far. A database either accepts it or refuses the whole batch.
    const batch = [anInstance(), anInstance({ params: '"raw \0 NUL"' }), anInstance()];
    const accepted = await store.create(batch).then(
      () => true,
      () => false,
    );
    for (const item of batch) {
      equal((await store.get(targetOf(item))) !== null, accepted, "an item of the batch is there");
    }
    equal(await tickets(store), accepted ? 3 : 0, "tickets");
  }),

  realTime("of 20 concurrent creates of one id exactly one wins", async ({ db }) => {
    const stores = await storesOn(db, 5);
    for (let round = 0; round < 5; round++) {
      const id = `contended-${round}`;
      const contenders = Array.from({ length: 20 }, () => anInstance({ id }));
      const answers = await atOnce(
        contenders.map((contender, i) => () => stores[i % 5]!.create([contender])),
        "20 creates",
      );
      const winner = only(
        answers.flat().filter((answer) => answer.kind === "created"),
        "winners",
      );
      equal([...new Set(answers.flat().map(holder))], [winner.iid], "the id that all answers name");
      equal((await db.store.get({ workflow: "order", id }))?.iid, winner.iid, "the one stored");
    }
    equal(await tickets(db.store), 5, "tickets");
  }),

  realTime("overlapping batches in opposite orders create each id once", async ({ db }) => {
    const stores = await storesOn(db, 4);
    for (let round = 0; round < 5; round++) {
      const ids = Array.from({ length: 30 }, (_, i) => `overlap-${round}-${i}`);
      const batches = [ids, ids.toReversed(), ids, ids.toReversed()].map((order) =>
        order.map((id) => anInstance({ id })),
      );
      const answers = await atOnce(
        batches.map((batch, i) => () => stores[i]!.create(batch)),
        "overlapping batches",
      );
      const created = answers.flat().filter((answer) => answer.kind === "created");
      equal(created.length, ids.length, "created in all batches together");
    }
    equal(await tickets(db.store), 150, "tickets");
  }),

  realTime("the same create sent over two connections at once applies once", async ({ db }) => {
    const [one, two] = await storesOn(db, 2);
    for (let round = 0; round < 10; round++) {
      const batch = someInstances(3);
      const answers = await atOnce([() => one.create(batch), () => two!.create(batch)], "resend");
      equal(kinds(answers.flat()), Array(6).fill("created"), "both answers");
    }
    equal(await tickets(db.store), 30, "tickets");
  }),

  stillTime("ids that look alike stay different", async ({ store }) => {
    const batch = lookalikes.map((id) => anInstance({ id }));
    equal(
      kinds(await store.create(batch)),
      batch.map(() => "created" as const),
      "the answers",
    );
    for (const item of batch) {
      equal(
        (await store.get(targetOf(item)))?.iid,
        item.iid,
        `the instance ${JSON.stringify(item.id)}`,
      );
    }
  }),

  stillTime("workflow names that look alike stay different", async ({ store }) => {
    const batch = lookalikes.map((workflow) => anInstance({ workflow, id: "same" }));
    equal(
      kinds(await store.create(batch)),
      batch.map(() => "created" as const),
      "the answers",
    );
    const runner = await aRunner(store);
    for (const item of batch) {
      const page = await store.list({ workflow: item.workflow, order: "oldest", pageSize: 10 });
      equal(
        page.items.map(({ iid }) => iid),
        [item.iid],
        `the list of ${item.workflow}`,
      );
      const claimed = await claim(store, runner, { lanes: [laneOf(item)] });
      equal(
        claimed.map(({ iid }) => iid),
        [item.iid],
        `the claim of ${item.workflow}`,
      );
    }
  }),

  stillTime("names of the maximum length are kept to their last character", async ({ store }) => {
    const ends = ["a", "b", "é", "😀"];
    const batch = ends.flatMap((end) => [
      anInstance({ workflow: `${"😀".repeat(63)}${end}`, id: "x", queue: "😀".repeat(64) }),
      anInstance({ id: `${"i".repeat(99)}${end}` }),
    ]);
    equal(
      kinds(await store.create(batch)),
      batch.map(() => "created" as const),
      "the answers",
    );
    const runner = await aRunner(store);
    for (const item of batch) {
      equal((await store.get(targetOf(item)))?.iid, item.iid, "read");
      const lanes = [laneOf(item)];
      if (item.id === "x") equal((await claim(store, runner, { lanes })).length, 1, "claimed");
    }
  }),

  stillTime("params come back exactly as they went in", async ({ store }) => {
    const batch = [...hostileTexts, null].map((params) => anInstance({ params }));
    await store.create(batch);
    const claimed = await claim(store, await aRunner(store));
    for (const item of batch) {
      equal((await store.get(targetOf(item)))?.params, item.params, "read");
      equal(claimed.find(({ iid }) => iid === item.iid)?.params, item.params, "claimed");
    }
  }),

  stillTime("params of 1 MiB come back exactly as they went in", async ({ store }) => {
    const item = await create(store, { params: mebibyteText });
    equal((await store.get(targetOf(item)))?.params === mebibyteText, true, "read");
    equal((await claimOne(store)).params === mebibyteText, true, "claimed");
  }),

  stillTime("an eagerly created run is leased to its runner at once", async ({ store, clock }) => {
    const runner = await aRunner(store);
    const instance = anInstance();
    const answers = await store.create([instance], { lease: { runner } });
    equal(
      answers,
      [{ kind: "created", iid: instance.iid, createdAt: clock.now(), leased: true }],
      "the answer",
    );
    equal(await currentStatus(store, instance), "running", "the status");
    equal((await store.get(targetOf(instance)))?.startedAt, clock.now(), "startedAt");
    equal(await tickets(store), 0, "tickets that others can claim");
    const heartbeat = kindOf(await store.heartbeat(runner, 1_000), "ok", "heartbeat");
    equal(
      heartbeat.owned,
      [
        {
          iid: instance.iid,
          runNumber: 1,
          claimNumber: 1,
          pauseRequested: false,
          eventCount: 0,
        },
      ],
      "what the runner owns",
    );
  }),

  stillTime("an eager run commits under claim number 1", async ({ store }) => {
    const runner = await aRunner(store);
    const instance = anInstance();
    await store.create([instance], { lease: { runner } });
    const [adopted] = await store.adopt(runner, [instance.iid]);
    const run = { ...adopted!, claimNumber: 1 };
    equal((await commitOk(store, aPart(run, { next: complete() }))).state, "finished", "the state");
  }),

  stillTime("an eager create for a dead runner is left in the queue", async (world) => {
    const { store } = world;
    const runner = await aRunner(store);
    await letRunnersDie(world);
    const instance = anInstance();
    const [answer] = await store.create([instance], { lease: { runner } });
    equal(kindOf(answer, "created", "create").leased, false, "leased");
    equal(await currentStatus(store, instance), "queued", "the status");
    matches(await claimOne(store), { iid: instance.iid, takenOver: false }, "claimed");
  }),

  stillTime("an eager create of a taken id leases nothing", async ({ store }) => {
    const runner = await aRunner(store);
    const taken = await create(store);
    const answers = await store.create([anInstance({ id: taken.id })], { lease: { runner } });
    equal(kinds(answers), ["duplicate"], "the answer");
    equal(await currentStatus(store, taken), "queued", "the instance that has the id");
    equal(kindOf(await store.heartbeat(runner, 1_000), "ok", "heartbeat").owned, [], "owned");
  }),

  stillTime("an eager create sent again does not take back a parked run", async ({ store }) => {
    const runner = await aRunner(store);
    const instance = anInstance();
    await store.create([instance], { lease: { runner } });
    const [run] = await store.adopt(runner, [instance.iid]);
    await commitOk(store, aPart(run!, { next: parkFor(["paid"]) }));
    equal(kinds(await store.create([instance], { lease: { runner } })), ["created"], "the answer");
    equal(await currentStatus(store, instance), "waiting", "the status");
  }),

  stillTime("create refuses a tx that is not a transaction", async ({ store }) => {
    const instance = anInstance();
    await rejection(store.create([instance], { tx: {} }), "create with a tx of {}");
    equal(await store.get(targetOf(instance)), null, "the instance");
  }),

  realTime("creates from many connections are all listed", async ({ db }) => {
    const stores = await storesOn(db, 4);
    const batches = stores.flatMap((store) =>
      Array.from({ length: 10 }, () => ({ store, batch: someInstances(10) })),
    );
    await atOnce(
      batches.map(
        ({ store, batch }) =>
          () =>
            store.create(batch),
      ),
      "40 batches",
    );
    const pages = await allPages((from) =>
      db.store.list({ workflow: "order", order: "oldest", pageSize: 100, ...from }),
    );
    equalSets(
      pages.flat().map(({ iid }) => iid),
      batches.flatMap(({ batch }) => batch.map(({ iid }) => iid)),
      "the listed instances",
    );
  }),
];

/** Claims all tickets of the workflow "order", and returns how many there were. */
async function tickets(store: World["store"]): Promise<number> {
  const claimed = await claim(store, await aRunner(store), { limit: 1_000 });
  equal(new Set(claimed.map(({ iid }) => iid)).size, claimed.length, "distinct tickets");
  return claimed.length;
}

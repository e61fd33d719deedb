import type { LeaseOnWake } from "../../store/store.js";
import { waitMaskOf } from "../../model/wait-mask.js";
import { defined, equal, kindOf, matches, ok, only } from "./assert.js";
import {
  aPart,
  aRunner,
  aStep,
  aWait,
  anEvent,
  anInstance,
  claimOne,
  commitOk,
  complete,
  create,
  dueIn,
  recordedEvents,
  inState,
  isDue,
  leasedRun,
  leaseMs,
  loadOne,
  parkFor,
  pollOk,
  sendTo,
  currentStatus,
  targetOf,
  waiting,
  pause,
  resume,
  restart,
} from "./build.js";
import { atOnce, storesOn } from "./concurrency.js";
import type { ConformanceCase } from "./fixture.js";
import { hostileTexts, lookalikes, mebibyteText } from "./text.js";
import { realTime, stillTime } from "./world.js";

/** A type whose bit differs from that of "paid". */
const unawaited = defined(
  ["refunded", "shipped", "cancelled"].find((type) => waitMaskOf([type]) !== waitMaskOf(["paid"])),
  "a type with a bit of its own",
);

/** A type whose bit is beyond what a 32-bit integer holds. */
const highType = defined(
  Array.from({ length: 1_000 }, (_, i) => `type-${i}`).find((type) => waitMaskOf([type]) > 2 ** 40),
  "a type with a high bit",
);

export const eventCases: readonly ConformanceCase[] = [
  stillTime("an event is stored with number, time and payload", async ({ store, clock }) => {
    const run = await create(store);
    clock.advance(77);
    equal(
      await store.sendEvent(targetOf(run), anEvent("paid", { payload: '{"a":1}' })),
      {
        kind: "accepted",
        woken: false,
        owner: null,
        place: { iid: run.iid, runNumber: 1, number: 1, createdAt: clock.now() },
        claimed: null,
      },
      "the answer",
    );
    equal(
      await recordedEvents(store, run),
      [
        {
          number: 1,
          kind: "event",
          type: "paid",
          payload: '{"a":1}',
          createdAt: clock.now(),
          deliveredAt: null,
          consumedBy: null,
        },
      ],
      "the event",
    );
  }),

  stillTime("events of the same time keep the order in which they were sent", async ({ store }) => {
    const run = await create(store);
    const types = Array.from({ length: 12 }, (_, i) => `type-${i % 3}`);
    for (const [i, type] of types.entries()) {
      await sendTo(store, run, anEvent(type, { payload: `${i}` }));
    }
    const events = await recordedEvents(store, run);
    equal(
      events.map(({ number, type, payload }) => [number, type, payload]),
      types.map((type, i) => [i + 1, type, `${i}`]),
      "the events",
    );
    const { events: loaded } = await loadOne(store, await claimOne(store));
    equal(loaded, events, "the loaded events");
  }),

  stillTime("each run numbers its own events", async ({ store }) => {
    const [one, two] = [await create(store), await create(store)];
    for (const run of [one, two, one]) await sendTo(store, run);
    equal(
      (await recordedEvents(store, one)).map(({ number }) => number),
      [1, 2],
      "of the one",
    );
    equal(
      (await recordedEvents(store, two)).map(({ number }) => number),
      [1],
      "of the other",
    );
  }),

  stillTime("the same event sent again changes nothing", async ({ store, clock }) => {
    const run = await waiting(store, { types: ["paid"] });
    const event = anEvent(unawaited);
    await sendTo(store, run, event);
    const before = await recordedEvents(store, run);
    clock.advance(1_000);
    equal(await store.sendEvent(targetOf(run), event), { kind: "duplicate" }, "the answer");
    equal(
      await store.sendEvent(targetOf(run), { ...event, type: "paid", payload: "2" }),
      { kind: "duplicate" },
      "the answer to another event of the same id",
    );
    equal(await recordedEvents(store, run), before, "the events");
    equal(await dueIn(store, run), null, "due");
  }),

  stillTime("one event id may be used for many runs", async ({ store }) => {
    const event = anEvent();
    for (const run of [await create(store), await create(store)]) {
      await sendTo(store, run, event);
      equal((await recordedEvents(store, run)).length, 1, "events");
    }
  }),

  stillTime("event ids that look alike are different events", async ({ store }) => {
    const run = await create(store);
    for (const eventId of lookalikes) await sendTo(store, run, anEvent("paid", { eventId }));
    equal((await recordedEvents(store, run)).length, lookalikes.length, "events");
  }),

  stillTime(
    "event ids of the maximum length are kept to their last character",
    async ({ store }) => {
      const run = await create(store);
      const ids = ["a", "b", "é", "😀"].map((end) => `${"😀".repeat(99)}${end}`);
      for (const eventId of ids) await sendTo(store, run, anEvent("t".repeat(100), { eventId }));
      equal((await recordedEvents(store, run)).length, 4, "events");
      const again = anEvent("t", { eventId: ids[3]! });
      equal(await store.sendEvent(targetOf(run), again), { kind: "duplicate" }, "sent again");
    },
  ),

  stillTime("event types come back exactly as they went in", async ({ store }) => {
    const run = await create(store);
    for (const type of lookalikes) await sendTo(store, run, anEvent(type));
    equal(
      (await recordedEvents(store, run)).map(({ type }) => type),
      [...lookalikes],
      "types",
    );
  }),

  stillTime("event payloads come back exactly as they went in", async ({ store }) => {
    const run = await leasedRun(store);
    const payloads = [...hostileTexts, mebibyteText, null];
    for (const payload of payloads) await sendTo(store, run, anEvent("paid", { payload }));
    const same = (events: readonly { readonly payload: string | null }[]) =>
      events.map(({ payload }, i) => payload === payloads[i]);
    const expected = payloads.map(() => true);
    equal(same(await recordedEvents(store, run)), expected, "read");
    equal(same((await loadOne(store, run)).events), expected, "loaded");
    equal(same((await pollOk(store, run)).events), expected, "polled");
    equal(same((await commitOk(store, aPart(run))).events), expected, "from a commit");
  }),

  ...(["queued", "running", "waiting", "waitingForPause", "paused"] as const).map((state) =>
    stillTime(`an event for a ${state} run is kept for it`, async ({ store }) => {
      const run = await inState(store, state);
      const { owner } = await sendTo(store, run, anEvent(unawaited));
      equal(owner, run.owner, "the owner in the answer");
      equal(only(await recordedEvents(store, run), "events").type, unawaited, "the event");
      equal(await currentStatus(store, run), state, "the status");
    }),
  ),

  ...(["complete", "errored", "terminated"] as const).map((state) =>
    stillTime(`an event for a run that is ${state} is refused`, async ({ store }) => {
      const run = await inState(store, state);
      equal(
        await store.sendEvent(targetOf(run), anEvent()),
        { kind: "terminal", status: state },
        "the answer",
      );
      equal(await recordedEvents(store, run), [], "events");
    }),
  ),

  stillTime("an event for an unknown instance is refused", async ({ store }) => {
    const run = await create(store);
    for (const target of [
      { workflow: "order", id: "unknown" },
      { workflow: "other", id: run.id },
    ]) {
      equal(await store.sendEvent(target, anEvent()), { kind: "notFound" }, "the answer");
    }
  }),

  stillTime("an awaited event makes a parked run due at once", async ({ store, clock }) => {
    const run = await waiting(store, { types: [unawaited, "paid"], wake: { inMs: 60_000 } });
    clock.advance(10);
    matches(await sendTo(store, run, anEvent("paid")), { woken: true, owner: null }, "the answer");
    equal(await dueIn(store, run), 0, "due");
    equal(await currentStatus(store, run), "waiting", "the status");
    matches(await claimOne(store), { iid: run.iid, eventCount: 1 }, "claimed");
  }),

  stillTime(
    "a run woken by an event is leased at once to the runner that has it in memory",
    async ({ store, clock }) => {
      const run = await waiting(store, { types: ["paid"], wake: { inMs: 60_000 } });
      const runner = await aRunner(store);
      const { claimNumber } = run;
      clock.advance(10);
      const answer = kindOf(
        await store.sendEvent(targetOf(run), anEvent("paid"), { lease: { runner, claimNumber } }),
        "accepted",
        "sendEvent",
      );
      matches(
        defined(answer.claimed ?? undefined, "a claim"),
        {
          iid: run.iid,
          workflow: run.workflow,
          id: run.id,
          runNumber: 1,
          claimNumber: claimNumber + 1,
          resuming: true,
          takenOver: false,
          takeovers: 0,
          eventCount: 1,
          createdAt: run.createdAt,
          params: null,
          now: clock.now(),
        },
        "the claim",
      );
      equal(await currentStatus(store, run), "running", "the status");
      const heartbeat = kindOf(await store.heartbeat(runner, leaseMs), "ok", "heartbeat");
      matches(
        only(heartbeat.owned, "owned"),
        { iid: run.iid, claimNumber: claimNumber + 1, eventCount: 1 },
        "what the runner owns",
      );
      equal(
        await store.sendEvent(targetOf(run), anEvent("paid", { eventId: "again" })),
        {
          kind: "accepted",
          woken: false,
          owner: runner,
          place: { iid: run.iid, runNumber: 1, number: 2, createdAt: clock.now() + 1 },
          claimed: null,
        },
        "the next event",
      );
      await commitOk(store, aPart({ ...run, claimNumber: claimNumber + 1 }, { next: complete() }));
      equal(await currentStatus(store, run), "complete", "in the end");
    },
  ),

  stillTime(
    "an event leases a run only to a live runner that names the run's last claim",
    async ({ store, clock }) => {
      const run = await waiting(store, { types: ["paid"], wake: { inMs: 60_000 } });
      const { claimNumber } = run;
      const runner = await aRunner(store);
      const sent = async (type: string, lease: LeaseOnWake) =>
        kindOf(await store.sendEvent(targetOf(run), anEvent(type), { lease }), "accepted", type);
      matches(
        await sent(unawaited, { runner, claimNumber }),
        { woken: false, claimed: null },
        "one that nobody awaits",
      );
      equal(await dueIn(store, run), 60_000, "due");
      matches(
        await sent("paid", { runner, claimNumber: claimNumber - 1 }),
        { woken: true, claimed: null },
        "an older claim",
      );
      equal(await dueIn(store, run), 0, "due");
      clock.advance(leaseMs + 1);
      await store.declareDead();
      matches(
        await sent("paid", { runner, claimNumber }),
        { woken: true, claimed: null },
        "a dead runner",
      );
      matches(await claimOne(store), { iid: run.iid, eventCount: 3, takeovers: 0 }, "claimed");
    },
  ),

  stillTime("an event that nobody awaits does not wake a run", async ({ store }) => {
    const run = await waiting(store, { types: ["paid"], wake: { inMs: 60_000 } });
    equal((await sendTo(store, run, anEvent(unawaited))).woken, false, "woken");
    equal(await dueIn(store, run), 60_000, "due");
  }),

  stillTime("a run that only sleeps is not woken by events", async ({ store }) => {
    const run = await waiting(store, { types: [], wake: { inMs: 60_000 } });
    equal((await sendTo(store, run, anEvent("paid"))).woken, false, "woken");
    equal(await dueIn(store, run), 60_000, "due");
  }),

  stillTime("a wait mask can use any of its bits", async ({ store }) => {
    const all = Array.from({ length: 300 }, (_, i) => `type-${i}`);
    for (const types of [[highType], [highType, "paid"], all]) {
      const run = await waiting(store, { workflow: `mask-${types.length}`, types });
      equal((await sendTo(store, run, anEvent(highType))).woken, true, "woken");
    }
    const run = await waiting(store, { workflow: "without", types: ["paid"] });
    const { woken } = await sendTo(store, run, anEvent(highType));
    equal(woken, waitMaskOf(["paid"]) === waitMaskOf([highType]), "woken without its bit");
  }),

  stillTime("an event for a leased run names the runner that holds it", async ({ store }) => {
    const run = await leasedRun(store);
    const steps = [aWait(1, { inMs: 60_000 }, { type: "waitForEvent", waitKey: "paid" })];
    await commitOk(store, aPart(run, { steps }));
    matches(
      await sendTo(store, run, anEvent("paid")),
      { woken: false, owner: run.runner },
      "the answer",
    );
    const heartbeat = kindOf(await store.heartbeat(run.runner, leaseMs), "ok", "heartbeat");
    equal(only(heartbeat.owned, "owned").eventCount, 1, "events in the heartbeat");
  }),

  stillTime("an event sent while the run is paused is there after resume", async ({ store }) => {
    const run = await waiting(store, { types: ["paid"] });
    await store.control(targetOf(run), pause);
    await sendTo(store, run, anEvent("paid"));
    equal(await isDue(store, run), false, "due while paused");
    await store.control(targetOf(run), resume);
    const claimed = await claimOne(store);
    equal(claimed.eventCount, 1, "events of the claim");
    equal((await loadOne(store, claimed)).events.length, 1, "loaded events");
  }),

  stillTime("an event before a late wake-up keeps its own time", async ({ store, clock }) => {
    const run = await waiting(store, { types: ["paid"], wake: { inMs: 1_000 } });
    clock.advance(1_000);
    const sentAt = clock.now();
    await sendTo(store, run, anEvent("paid"));
    clock.advance(60_000);
    const claimed = await claimOne(store);
    const event = only((await loadOne(store, claimed)).events, "events");
    equal(event.createdAt, sentAt, "createdAt, exactly at the deadline");
  }),

  stillTime(
    "an event after a claim is later than the claim even if the clock stands still",
    async (world) => {
      const { store } = world;
      const run = await leasedRun(store);
      await sendTo(store, run);
      await sendTo(store, run);
      for (const { createdAt } of await recordedEvents(store, run)) {
        ok(createdAt > run.now, `${createdAt} is after the claim at ${run.now}`);
      }
    },
  ),

  stillTime(
    "an event after a claim is later than the claim even if the clock steps back",
    async (world) => {
      const { store, clock } = world;
      const run = await leasedRun(store);
      clock.advance(-3_600_000);
      await sendTo(store, run);
      const { createdAt } = only(await recordedEvents(store, run), "events");
      ok(createdAt > run.now, `${createdAt} is after the claim at ${run.now}`);
    },
  ),

  stillTime("an event after a park is later than the claim before it", async ({ store, clock }) => {
    const run = await waiting(store, { types: ["paid"] });
    clock.advance(-1_000);
    await sendTo(store, run, anEvent("paid"));
    const { createdAt } = only(await recordedEvents(store, run), "events");
    ok(createdAt > run.now, `${createdAt} is after the claim at ${run.now}`);
    equal(await isDue(store, run), true, "due, whatever its time");
  }),

  stillTime("a second claim at an earlier time keeps the first claim's time", async (world) => {
    const { store, clock } = world;
    const first = await waiting(store, { wake: { at: 0 } });
    clock.advance(-1_000);
    const second = await claimOne(store);
    await sendTo(store, second);
    const { createdAt } = only(await recordedEvents(store, second), "events");
    ok(createdAt > first.now, `${createdAt} is after the first claim at ${first.now}`);
  }),

  stillTime("an event for an eager run is later than its start", async ({ store, clock }) => {
    const runner = await aRunner(store);
    const run = anInstance();
    await store.create([run], { lease: { runner } });
    await sendTo(store, run);
    const { createdAt } = only(await recordedEvents(store, run), "events");
    ok(createdAt > clock.now(), `${createdAt} is after the start at ${clock.now()}`);
  }),

  stillTime("a restarted run does not see the events of the run before it", async ({ store }) => {
    const run = await create(store);
    await sendTo(store, run, anEvent("old"));
    await store.control(targetOf(run), restart("restart"));
    equal(await recordedEvents(store, run), [], "events of the new run");
    await sendTo(store, run, anEvent("new"));
    const claimed = await claimOne(store);
    equal(claimed.eventCount, 1, "events of the claim");
    equal(
      (await loadOne(store, claimed)).events.map(({ number, type }) => [number, type]),
      [[1, "new"]],
      "loaded events",
    );
    equal(
      (await recordedEvents(store, run, 1)).map(({ type }) => type),
      ["old"],
      "events of the old run",
    );
  }),

  realTime("concurrent senders get a number each", async ({ db, store }) => {
    const stores = await storesOn(db, 4);
    const run = await create(store);
    const jobs = Array.from({ length: 60 }, (_, i) => () => sendTo(stores[i % 4]!, run));
    await atOnce(jobs, "60 events");
    equal(
      (await recordedEvents(store, run)).map(({ number }) => number),
      Array.from({ length: 60 }, (_, i) => i + 1),
      "numbers",
    );
    equal((await claimOne(store)).eventCount, 60, "events of the claim");
  }),

  realTime("the same event from many connections at once arrives once", async ({ db, store }) => {
    const stores = await storesOn(db, 4);
    for (let round = 0; round < 10; round++) {
      const run = await create(store);
      const event = anEvent();
      const answers = await atOnce(
        stores.map((each) => () => each.sendEvent(targetOf(run), event)),
        "the same event",
      );
      equal(answers.filter(({ kind }) => kind === "accepted").length, 1, "accepted");
      equal(answers.filter(({ kind }) => kind === "duplicate").length, 3, "duplicates");
      equal((await recordedEvents(store, run)).length, 1, "events");
    }
  }),

  realTime("no wake-up is lost between a park and an event", async ({ db }) => {
    const [one, two] = await storesOn(db, 2);
    const runner = (await leasedRun(one, { workflow: "warm-up" })).runner;
    const seen = { parkedFirst: 0, eventFirst: 0 };
    for (let round = 0; round < 120; round++) {
      const workflow = `race-${round}`;
      const run = await leasedRun(one, { workflow, runner });
      const part = aPart(run, { steps: [aStep(1)], next: parkFor(["paid"], { inMs: 600_000 }) });
      const [park, sent] = await atOnce<unknown>(
        round % 2 === 0
          ? [() => commitOk(one, part), () => sendTo(two!, run, anEvent("paid"))]
          : [() => sendTo(two!, run, anEvent("paid")), () => commitOk(one, part)],
        "park and event",
      ).then((answers) => (round % 2 === 0 ? answers : answers.toReversed()));
      const { state, events } = park as Awaited<ReturnType<typeof commitOk>>;
      const { woken } = sent as Awaited<ReturnType<typeof sendTo>>;
      if (state === "leased") {
        equal([woken, events.length], [false, 1], "the event was given to the run");
        seen.eventFirst += 1;
      } else {
        equal([state, woken], ["parked", true], "the event woke the run");
        equal(await isDue(one, run), true, "due");
        seen.parkedFirst += 1;
      }
    }
    equal(seen.parkedFirst + seen.eventFirst, 120, "rounds");
  }),
];

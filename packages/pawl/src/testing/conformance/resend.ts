import { hookNames } from "../../model/hooks.js";
import type { Next, Part, PartAnswer } from "../../store/part.js";
import { equal, kindOf, matches, ok, only } from "./assert.js";
import {
  aDelivery,
  aPart,
  aStep,
  aWait,
  anAttempt,
  anEvent,
  anInstance,
  claim,
  aRunner,
  claimOne,
  commit,
  commitOk,
  complete,
  create,
  dueIn,
  historyRows,
  recordedEvents,
  failWith,
  leasedRun,
  leaseMs,
  parkFor,
  parkUntil,
  release,
  sendTo,
  currentStatus,
  recordedSteps,
  targetOf,
  pause,
  resume,
  restart,
} from "./build.js";
import { atOnce, storesOn, untilNotBusy } from "./concurrency.js";
import type { ConformanceCase } from "./fixture.js";
import { realTime, stillTime } from "./world.js";

const nexts: readonly [string, Next, Extract<PartAnswer, { kind: "ok" }>["state"]][] = [
  ["continues", { kind: "continue" }, "leased"],
  ["parks", parkFor(["paid"], { inMs: 700 }), "parked"],
  ["releases", release(700), "parked"],
  ["completes", complete('"out"'), "finished"],
  ["fails", failWith('{"message":"m"}'), "finished"],
];

/**
 * After an unknown outcome the identical part is sent again. Whatever happened in between, the part must not
 * apply a second time, and must not undo what came after it.
 */
export const resendCases: readonly ConformanceCase[] = [
  ...nexts.map(([verb, next, state]) =>
    stillTime(`a part that ${verb} writes steps wrongly said to be new`, async ({ store }) => {
      const first = await leasedRun(store);
      const second = await leasedRun(store);
      await commitOk(
        store,
        aPart(first, { steps: [aStep(1, { isNew: true, status: "running" })] }),
      );
      const last = aPart(first, {
        partNumber: 2,
        steps: [aStep(1, { isNew: true, result: "2" }), aStep(2, { isNew: true })],
        next,
      });
      const beside = aPart(second, { steps: [aStep(1, { isNew: true })] });
      for (const time of ["sent", "sent again"]) {
        const answers = await store.commit([last, beside]);
        const states = answers.map((answer) => kindOf(answer, "ok", time).state);
        equal(states, [state, "leased"], time);
      }
      const written = (await recordedSteps(store, first)).map(({ status, result }) => [
        status,
        result,
      ]);
      equal(
        written,
        [
          ["completed", "2"],
          ["completed", aStep(2).result],
        ],
        "what is written",
      );
      equal((await recordedSteps(store, second)).length, 1, "beside it");
    }),
  ),

  ...nexts.map(([verb, next, state]) =>
    stillTime(`a part that ${verb}, sent again later, applies once`, async ({ store, clock }) => {
      const other = await create(store, { workflow: "other" });
      const run = await leasedRun(store);
      await sendTo(store, run);
      await store.registerHooks(hookNames);
      const child = anInstance({ workflow: "child" });
      const part: Part = aPart(run, {
        seenEvents: 1,
        steps: [aStep(1, { tookMs: 5 }), aWait(2, { inMs: 700 })],
        attempts: [anAttempt(1, 1, { tookMs: 3 })],
        consumed: [{ number: 1, ord: 1 }],
        spawns: [child],
        deliveries: [aDelivery(other.iid)],
        next,
      });
      const observe = async () => ({
        instance: await store.get(targetOf(run)),
        entries: await historyRows(store, run),
        child: await store.get(targetOf(child)),
        dueAt: await dueIn(store, run).then((inMs) => inMs && clock.now() + inMs),
        owned: await store.heartbeat(run.runner, leaseMs).then((answer) => ({ ...answer, now: 0 })),
      });
      equal((await commitOk(store, part)).state, state, "the first answer");
      const before = await observe();
      for (let i = 0; i < 3; i++) {
        clock.advance(100);
        equal((await commitOk(store, part)).state, state, "the answer to a resend");
      }
      equal(await observe(), before, "what can be seen");
      await store.moveInbox(100);
      equal((await recordedEvents(store, other)).length, 1, "delivered");
      const request = { hooks: hookNames, limit: 10, leaseMs, maxAttempts: 5 };
      const rows = (await store.claimHooks(request)).map(({ reason }) => reason);
      const ends = { complete: ["complete"], fail: ["errored"] } as Record<string, string[]>;
      equal(rows.toSorted(), ["create", ...(ends[next.kind] ?? [])].toSorted(), "rows for hooks");
      equal(
        (
          await claim(store, await aRunner(store), {
            lanes: [{ queue: "default", handler: "child" }],
          })
        ).length,
        1,
        "spawned",
      );
    }),
  ),

  stillTime("progress sent again applies once, even after more progress", async (world) => {
    const { store, clock } = world;
    const run = await leasedRun(store);
    const first = aPart(run, { steps: [aStep(1), aStep(2)] });
    const second = aPart(run, { partNumber: 2, steps: [aStep(3)] });
    const { now } = await commitOk(store, first);
    for (const part of [first, second, second, first]) {
      clock.advance(100);
      matches(await commitOk(store, part), { state: "leased", now: clock.now() }, "the answer");
    }
    const times = (await recordedSteps(store, run)).map(({ endedAt }) => endedAt && endedAt - now);
    equal(times, [0, 0, 200], "when the steps ended");
  }),

  stillTime(
    "a delivery sent again after it was moved is not delivered twice",
    async ({ store }) => {
      const other = await create(store, { workflow: "other" });
      const run = await leasedRun(store);
      const part = aPart(run, { deliveries: [aDelivery(other.iid)] });
      for (let i = 0; i < 2; i++) {
        await commitOk(store, part);
        await store.moveInbox(100);
      }
      equal((await recordedEvents(store, other)).length, 1, "events");
    },
  ),

  stillTime("a spawn sent again after its run has ended does not revive it", async ({ store }) => {
    const run = await leasedRun(store);
    const child = anInstance({ workflow: "child" });
    const part = aPart(run, { spawns: [child] });
    await commitOk(store, part);
    await commitOk(store, aPart(await claimOne(store, child), { next: complete() }));
    await commitOk(store, part);
    equal(await currentStatus(store, child), "complete", "the child");
    equal(await dueIn(store, child), null, "due");
  }),

  stillTime("a park sent again does not undo the wake of an event", async ({ store }) => {
    const run = await leasedRun(store);
    const part = aPart(run, { next: parkFor(["paid"], { inMs: 60_000 }) });
    await commitOk(store, part);
    equal((await sendTo(store, run, anEvent("paid"))).woken, true, "woken");
    const answer = await commit(store, part);
    const goesOn = answer.kind === "ok" && answer.state === "leased";
    ok(goesOn || (await dueIn(store, run)) === 0, "the run is due, or goes on where it was");
  }),

  stillTime("a park sent again does not shift a time that has passed", async ({ store, clock }) => {
    const run = await leasedRun(store);
    const part = aPart(run, { next: parkUntil({ inMs: 100 }) });
    await commitOk(store, part);
    clock.advance(5_000);
    await commitOk(store, part);
    equal(await dueIn(store, run), 0, "due");
  }),

  stillTime("a park that paused, sent again, does not undo a resume", async ({ store }) => {
    const run = await leasedRun(store);
    await store.control(targetOf(run), pause);
    const part = aPart(run, { next: parkFor(["paid"], { inMs: 60_000 }) });
    equal((await commitOk(store, part)).state, "paused", "the first answer");
    equal((await commitOk(store, part)).state, "paused", "the second answer");
    await store.control(targetOf(run), resume);
    await commit(store, part);
    equal(await currentStatus(store, run), "queued", "the status");
    equal(await dueIn(store, run), 0, "due");
  }),

  stillTime("a park sent again does not undo a pause", async ({ store }) => {
    const run = await leasedRun(store);
    const part = aPart(run, { next: parkUntil({ inMs: 10 }) });
    await commitOk(store, part);
    await store.control(targetOf(run), pause);
    await commit(store, part);
    equal(await currentStatus(store, run), "paused", "the status");
  }),

  stillTime(
    "a park that was refused, sent again, is refused with the same events",
    async ({ store }) => {
      const run = await leasedRun(store);
      await sendTo(store, run);
      const part = aPart(run, { steps: [aStep(1)], next: parkFor(["paid"]) });
      const first = await commitOk(store, part);
      equal(first.state, "leased", "the state");
      equal(await commitOk(store, part), first, "the second answer");
    },
  ),

  ...["part", "progress after a takeover", "park"].map((later) =>
    stillTime(
      `a refused park stays refused when sent late, after a pause and another ${later}`,
      async ({ store }) => {
        const run = await leasedRun(store);
        await sendTo(store, run);
        const refused = aPart(run, { steps: [aStep(1)], next: parkFor(["paid"], { inMs: 9_000 }) });
        await commitOk(store, refused);
        if (later === "park") await sendTo(store, run);
        const laterParts: Record<string, Partial<Part>> = {
          part: {},
          "progress after a takeover": { takeovers: 0 },
          park: { next: parkFor(["more"]) },
        };
        const second = { partNumber: 2, seenEvents: 1, steps: [aStep(2)], ...laterParts[later] };
        equal((await commitOk(store, aPart(run, second))).state, "leased", "the second part");
        await store.control(targetOf(run), pause);
        const observe = async () => [
          await store.get(targetOf(run)),
          await recordedSteps(store, run),
          await store.heartbeat(run.runner, leaseMs),
        ];
        const before = await observe();
        for (const part of [refused, aPart(run, second)]) {
          const answer = await commitOk(store, part);
          matches(answer, { state: "leased", pauseRequested: true }, "the late answer");
          equal(await observe(), before, "what can be seen");
        }
        const last = { partNumber: 3, seenEvents: 2, steps: [aStep(3)], next: parkFor(["paid"]) };
        equal((await commitOk(store, aPart(run, last))).state, "paused", "the next park");
        equal((await recordedSteps(store, run)).length, 3, "the steps");
      },
    ),
  ),

  stillTime("a park that was refused is refused again after a pause", async ({ store }) => {
    const run = await leasedRun(store);
    await sendTo(store, run);
    const part = aPart(run, { next: parkFor(["paid"]) });
    const { events } = await commitOk(store, part);
    await store.control(targetOf(run), pause);
    const again = { state: "leased", pauseRequested: true, events } as const;
    matches(await commitOk(store, part), again, "the second answer");
    equal(await currentStatus(store, run), "waitingForPause", "the status");
  }),

  stillTime("a park sent again after the next claim is lost", async ({ store }) => {
    const run = await leasedRun(store);
    const part = aPart(run, { next: parkUntil({ inMs: 0 }) });
    await commitOk(store, part);
    const next = await claimOne(store);
    equal(await commit(store, part), { kind: "lost" }, "the answer");
    equal((await commitOk(store, aPart(next))).state, "leased", "the new owner");
  }),

  stillTime("a finish sent again after a restart leaves the new run alone", async ({ store }) => {
    const run = await leasedRun(store);
    const part = aPart(run, { steps: [aStep(1)], next: complete('"old"') });
    await commitOk(store, part);
    await store.control(targetOf(run), restart("restart"));
    await commit(store, part);
    matches(
      (await store.get(targetOf(run)))!,
      { status: "queued", runNumber: 2, output: null, finishedAt: null },
      "the instance",
    );
  }),

  stillTime("a finish of another turn is not taken for a resend", async ({ store }) => {
    const run = await leasedRun(store);
    await commitOk(store, aPart(run, { next: release() }));
    const next = await claimOne(store);
    await commitOk(store, aPart(next, { next: complete('"right"') }));
    const wrong = aPart(run, { partNumber: 2, next: complete('"wrong"') });
    equal(await commit(store, wrong), { kind: "lost" }, "the answer");
    equal((await store.get(targetOf(run)))?.output, '"right"', "the output");
  }),

  stillTime("a resent batch may mix parts that were and were not applied", async ({ store }) => {
    const [one, two] = [await leasedRun(store), await leasedRun(store)];
    const parts = [one, two].map((run) => aPart(run, { steps: [aStep(1)], next: complete() }));
    await store.commit([parts[0]!]);
    const answers = await store.commit(parts);
    for (const answer of answers) equal(kindOf(answer, "ok", "commit").state, "finished", "state");
  }),

  realTime("a part sent over two connections at once applies once", async ({ db }) => {
    const [one, two] = await storesOn(db, 2);
    const other = await create(one, { workflow: "other" });
    for (let round = 0; round < 15; round++) {
      const workflow = `twice-${round}`;
      const run = await leasedRun(one, { workflow });
      const part = aPart(run, {
        steps: [aStep(1)],
        spawns: [anInstance({ workflow: "child" })],
        deliveries: [aDelivery(other.iid)],
        next: round % 2 === 0 ? complete() : parkUntil({ inMs: 60_000 }),
      });
      const answers = await atOnce(
        [one, two!].map(
          (store) => () => untilNotBusy(async () => only(await store.commit([part]), "commit")),
        ),
        "the same part twice",
      );
      equal(
        answers.map(({ kind }) => kind),
        ["ok", "ok"],
        "both answers",
      );
    }
    while ((await one.moveInbox(100)) > 0);
    equal((await recordedEvents(one, other)).length, 15, "delivered");
    const lanes = [{ queue: "default", handler: "child" }];
    equal((await claim(one, await aRunner(one), { lanes })).length, 15, "spawned");
  }),
];

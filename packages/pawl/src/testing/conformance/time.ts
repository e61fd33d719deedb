import type { Store } from "../../store/store.js";
import { equal, kindOf, ok, only } from "./assert.js";
import {
  aPart,
  aStep,
  aWait,
  anAttempt,
  claimOne,
  commitOk,
  complete,
  create,
  dueIn,
  historyRows,
  recordedEvents,
  leasedRun,
  leaseMs,
  parkUntil,
  pollOk,
  sendTo,
  recordedSteps,
  targetOf,
  waiting,
} from "./build.js";
import { storesOn } from "./concurrency.js";
import type { ConformanceCase } from "./fixture.js";
import { realTime, stillTime } from "./world.js";

/** Returns the answer of `work`, with the database's time before and after. */
async function timed<T>(store: Store, work: () => Promise<T>): Promise<[number, T, number]> {
  const before = await store.now();
  const result = await work();
  return [before, result, await store.now()];
}

function between(before: number, time: number | null | undefined, after: number, what: string) {
  ok(
    typeof time === "number" && before <= time && time <= after,
    `${what}: ${time} is not in ${before}..${after}`,
  );
}

export const timeCases: readonly ConformanceCase[] = [
  realTime("the database's time is in whole ms and never goes back", async ({ db, store }) => {
    const [, other] = await storesOn(db, 2);
    let last = 0;
    for (let i = 0; i < 20; i++) {
      const now = await (i % 2 === 0 ? store : other!).now();
      ok(Number.isInteger(now), `${now} is a whole number`);
      ok(now >= last, `${now} is not before ${last}`);
      last = now;
    }
    // The time is in milliseconds since 1970, not in seconds or microseconds, and not shifted by centuries.
    ok(last > 1_700_000_000_000 && last < 10_000_000_000_000, `${last} is a time of our age`);
  }),

  realTime("stored times lie between the times before and after the write", async ({ store }) => {
    const [a, run, b] = await timed(store, () => create(store));
    between(a, (await store.get(targetOf(run)))?.createdAt, b, "createdAt");
    const [c, claimed, d] = await timed(store, () => claimOne(store));
    between(c, claimed.now, d, "the claim");
    equal(claimed.createdAt, (await store.get(targetOf(run)))?.createdAt, "createdAt in the claim");
    const [e, , f] = await timed(store, () => sendTo(store, run));
    between(e, only(await recordedEvents(store, run), "events").createdAt, f + 1, "the event");
    const part = aPart(claimed, { seenEvents: 1, steps: [aStep(1)], next: complete() });
    const [g, answer, h] = await timed(store, () => commitOk(store, part));
    between(g, answer.now, h, "the commit");
    between(g, (await store.get(targetOf(run)))?.finishedAt, h, "finishedAt");
    between(g, only(await recordedSteps(store, run), "steps").endedAt, h, "the step");
  }),

  realTime("offsets are exact relative to the time of their write", async ({ store }) => {
    const run = await leasedRun(store);
    const { now } = await commitOk(
      store,
      aPart(run, {
        steps: [aStep(1, { tookMs: 1_234, attempts: 2 }), aWait(2, { inMs: 86_400_000 })],
        attempts: [anAttempt(1, 1, { tookMs: 777 })],
        next: parkUntil({ inMs: 86_400_000 }),
      }),
    );
    const [first, second] = (await recordedSteps(store, run)).toSorted((a, b) => a.ord - b.ord);
    equal([first?.startedAt, first?.endedAt], [now - 1_234, now], "the step");
    equal([second?.startedAt, second?.wakeAt], [now, now + 86_400_000], "the wait");
    const attempts = (await historyRows(store, run)).flatMap((entry) =>
      entry.kind === "step" ? entry.attempts : [],
    );
    equal(
      attempts.map(({ startedAt, endedAt }) => [startedAt, endedAt]),
      [[now - 777, now]],
      "the attempt",
    );
    const [before, inMs, after] = await timed(store, () => dueIn(store, run));
    between(now + 86_400_000 - after, inMs, now + 86_400_000 - before, "due");
  }),

  realTime("the time in a part's answer is not before its write", async ({ store }) => {
    const runs = [await leasedRun(store), await leasedRun(store), await leasedRun(store)];
    const parts = runs.map((run) => aPart(run, { steps: [aStep(1)] }));
    const [before, answers, after] = await timed(store, () => store.commit(parts));
    for (const [i, run] of runs.entries()) {
      const { now } = kindOf(answers[i], "ok", "commit");
      between(before, now, after, "the answer");
      between(before, only(await recordedSteps(store, run), "steps").endedAt, now, "the step");
    }
  }),

  realTime("an absolute time is kept as it is", async ({ store }) => {
    const run = await leasedRun(store);
    const when = (await store.now()) + 3_600_001;
    const part = aPart(run, { steps: [aWait(1, { at: when })], next: parkUntil({ at: when }) });
    await commitOk(store, part);
    equal(only(await recordedSteps(store, run), "steps").wakeAt, when, "the wait");
    const [before, inMs, after] = await timed(store, () => dueIn(store, run));
    between(when - after, inMs, when - before, "due");
  }),

  realTime("a run falls due in real time, and is then claimed", async ({ store }) => {
    const run = await waiting(store, { wake: { inMs: 30 } });
    const runner = (await leasedRun(store, { workflow: "another" })).runner;
    for (;;) {
      const lanes = [{ queue: "default", handler: "order" }];
      const answer = await store.claim({ runner, lanes, limit: 1, reservedForNew: 0 });
      const { now, claimed } = kindOf(answer, "ok", "claim");
      if (claimed.length === 0) continue;
      equal(only(claimed, "claimed").iid, run.iid, "claimed");
      ok(now >= run.now + 30, `claimed ${now - run.now} ms after the claim before`);
      break;
    }
  }),

  realTime("leases run out in real time", async ({ store }) => {
    const runner = "short-lived";
    const before = await store.now();
    await store.register(runner, 40);
    for (;;) {
      const dead = await store.declareDead();
      if (dead.length === 0) continue;
      equal(dead, [runner], "declared dead");
      ok((await store.now()) >= before + 40, "not before the lease's end");
      break;
    }
    equal(await store.heartbeat(runner, leaseMs), { kind: "dead" }, "a heartbeat");
  }),

  realTime("a poll's time and the store's time are the same clock", async ({ store }) => {
    const run = await leasedRun(store);
    const [before, { now }, after] = await timed(store, () => pollOk(store, run));
    between(before, now, after, "the poll");
    const [a, beat, b] = await timed(store, () => store.heartbeat(run.runner, leaseMs));
    between(a, kindOf(beat, "ok", "heartbeat").now, b, "the heartbeat");
  }),

  stillTime("a manual clock replaces the database's everywhere", async ({ db, store, clock }) => {
    const [, other] = await storesOn(db, 2);
    for (const ms of [0, 86_400_000, -200_000_000, 1]) {
      clock.advance(ms);
      equal(await store.now(), clock.now(), "now");
      equal(await other!.now(), clock.now(), "another store's now");
    }
  }),
];

import { defineWorkflow } from "pawl";
import { expect, onTestFinished, test } from "vitest";
import type { StreamMessage } from "../../src/http/tracker.js";
import { Watchers, type Watch } from "../../src/http/watchers.js";
import type { EndListener } from "../../src/instances/ports.js";
import { membersOf, type Signal } from "../../src/model/abort.js";
import type { AttemptWrite, Next, StepWrite } from "../../src/store/part.js";
import { pause, restart, resume, terminate } from "../../src/testing/conformance/build.js";
import { instancesWorld } from "../support/instances.js";
import { until } from "../support/until.js";

const target = { workflow: "a", id: "x" };
const goOn = { kind: "continue" } as const;

/** A world in which nothing happens by itself: a rest ends by a hint or never. */
async function watchedWorld() {
  const world = await instancesWorld({ A: defineWorkflow({ name: "a", run: async () => {} }) });
  onTestFinished(() => world.handle.close());
  const rests: number[] = [];
  let listeners = 0;
  const listenersAtReads: number[] = [];
  const listen = (): EndListener => {
    listeners += 1;
    return {
      heard: (ms: number, signal?: Signal): Promise<null> => {
        rests.push(ms);
        return new Promise((resolve) =>
          membersOf(signal!).addEventListener("abort", () => resolve(null)),
        );
      },
      close: () => void (listeners -= 1),
    };
  };
  const { codec, runtime } = world.context;
  let reads = 0;
  const counted = {
    ...world.store,
    history: (...given: Parameters<typeof world.store.history>) => {
      reads += 1;
      listenersAtReads.push(listeners);
      return world.store.history(...given);
    },
  };
  const { notices } = world;
  const ends = { listen, ask: () => false };
  const watchers = new Watchers({ codec, runtime, store: counted, ends, notices });
  onTestFinished(() => watchers.close());
  await world.workflows["A"]!.create({ id: "x" });
  const counts = { reads: () => reads, listeners: () => listeners };
  return { world, watchers, notices, rests, listenersAtReads, ...counts };
}

type World = Awaited<ReturnType<typeof watchedWorld>>;

/** As a runner does it: writes the part, and tells of it. */
async function turn(
  { world, notices }: World,
  next: Next,
  steps: StepWrite[] = [],
  attempts: AttemptWrite[] = [],
) {
  await world.turn(target, next, { steps, attempts });
  const { iid, runNumber } = (await world.store.get(target))!;
  const claim = { iid, runNumber, claimNumber: 0, partNumber: 1, seenEvents: 0 };
  const nothing = { consumed: [], spawns: [], deliveries: [] };
  notices.committed.tell([{ ...claim, ...nothing, steps, attempts, next }], undefined);
}

function step(ord: number, status: StepWrite["status"], attempts = 1): StepWrite {
  const isSettled = status === "completed" || status === "errored";
  return {
    ord,
    name: `step ${ord}`,
    count: 1,
    type: "do",
    status,
    seq: isSettled ? ord : null,
    calledAfter: 0,
    attempts,
    tookMs: 0,
    wake: null,
    waitKey: null,
    result: isSettled ? "1" : null,
    error: null,
  };
}

function follow(watch: Watch): string[] {
  const seen: string[] = [];
  const take = (): void => {
    seen.push(...watch.take().map(inShort));
  };
  watch.onArrival(take);
  return seen;
}

function inShort({ event, data }: StreamMessage): string {
  return "ord" in data
    ? `${event} ${data.ord} ${data.status} ${data.attempt}`
    : `${event} ${data.status}`;
}

test("listens for an end before it reads, and leaves no listener open", async () => {
  const world = await watchedWorld();
  const watch = await world.watchers.watch(target);
  await turn(world, { kind: "complete", output: "1" });
  await until(() => watch.isEnded, "the end is seen");
  await until(() => world.listeners() === 0, "all closed");
  expect(world.listenersAtReads.length).toBeGreaterThan(1);
  expect(new Set(world.listenersAtReads)).toEqual(new Set([1]));
});

test("a change that is written here is reported at once, and once", async () => {
  const w = await watchedWorld();
  const seen = follow(await w.watchers.watch(target));
  await turn(w, goOn, [step(1, "running", 0)]);
  await until(() => seen.includes("step 1 running 1"), "told");
  const failed = [{ ord: 1, n: 1, tookMs: 0, error: null }];
  await turn(w, goOn, [step(1, "running", 1)], failed);
  await until(() => seen.includes("step 1 running 2"), "told of the second attempt");
  // The second is called, and written, before the first has settled.
  await turn(w, goOn, [step(2, "completed")]);
  await until(() => seen.includes("step 2 completed 1"), "told");
  await turn(w, { kind: "complete", output: "5" }, [step(1, "completed", 2)]);
  await until(() => seen.includes("status complete"), "the end");
  expect(seen).toEqual([
    "status queued",
    "step 1 running 1",
    "status running",
    "step 1 running 2",
    "step 2 completed 1",
    "step 1 completed 2",
    "status complete",
  ]);
});

test("control through the same store is reported at once", async () => {
  const w = await watchedWorld();
  const seen = follow(await w.watchers.watch(target));
  for (const [request, status] of [
    [pause, "paused"],
    [resume, "queued"],
    [terminate("end"), "terminated"],
  ] as const) {
    await w.world.context.store.control(target, request);
    await until(() => seen.at(-1) === `status ${status}`, status);
  }
  const over = await w.watchers.watch(target);
  expect(over.isEnded).toBe(true);
  expect(over.take().map(inShort)).toEqual(["status terminated"]);
  await w.world.context.store.control(target, restart("again"));
  const again = follow(await w.watchers.watch(target));
  expect(again).toEqual(["status queued"]);
});

test("a long history is read once, and then only what may still change", async () => {
  const w = await watchedWorld();
  const settled = Array.from({ length: 420 }, (_, i) => step(i + 1, "completed"));
  await turn(w, goOn, settled);
  const watch = await w.watchers.watch(target);
  const seen = follow(watch);
  expect(seen).toHaveLength(421);
  await until(() => w.rests.length > 0, "resting");
  const before = w.reads();
  await turn(w, goOn, [step(421, "completed")]);
  await until(() => seen.includes("step 421 completed 1"), "told");
  expect(w.reads() - before).toBe(1);

  // This leaves a gap: the step before these is still to be written.
  const later = Array.from({ length: 100 }, (_, i) => step(423 + i, "completed"));
  await turn(w, goOn, later);
  await until(() => seen.includes("step 522 completed 1"), "told");
  await turn(w, goOn, [step(422, "completed")]);
  await until(
    () => seen.includes("step 422 completed 1"),
    "told, though a later one was told before",
  );
  expect(seen).toHaveLength(523);

  const late = follow(await w.watchers.watch(target));
  expect(new Set(late)).toEqual(new Set(seen));
});

test("a reader goes on from its cursor, in the same run only", async () => {
  const w = await watchedWorld();
  await turn(
    w,
    goOn,
    Array.from({ length: 120 }, (_, i) => step(i + 1, "completed")),
  );
  const first = await w.watchers.watch(target);
  const messages = first.take();
  const after = async (n: number) => {
    const watch = await w.watchers.watch(target, messages[n]!.id);
    return watch.take().map(inShort);
  };
  expect(await after(119)).toEqual(["status running"]);
  expect((await after(59))[0]).toBe("step 61 completed 1");
  expect(await after(120)).toEqual([]);
  await w.world.context.store.control(target, restart("again"));
  expect(await after(120)).toEqual(["status queued"]);
});

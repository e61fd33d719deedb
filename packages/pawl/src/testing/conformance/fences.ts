import type { PartAnswer } from "../../store/part.js";
import { equal } from "./assert.js";
import {
  aDelivery,
  aPart,
  aStep,
  anAttempt,
  anInstance,
  claimOne,
  commit,
  commitOk,
  complete,
  create,
  dueIn,
  recordedEvents,
  failWith,
  type Leased,
  leasedRun,
  leaseMs,
  parkFor,
  release,
  sendTo,
  currentStatus,
  recordedSteps,
  takeOver,
  targetOf,
  restart,
  terminate,
} from "./build.js";
import type { ConformanceCase } from "./fixture.js";
import { stillTime, type StillWorld } from "./world.js";

const lost: PartAnswer = { kind: "lost" };

/** Every way to lose a claim. */
const fences: Readonly<Record<string, (world: StillWorld, run: Leased) => Promise<unknown>>> = {
  "a takeover": takeOver,
  "a restart": ({ store }, run) => store.control(targetOf(run), restart("restart")),
  "a terminate": ({ store }, run) => store.control(targetOf(run), terminate("terminate")),
  "a release and another claim": async ({ store }, run) => {
    await commitOk(store, aPart(run, { next: release() }));
    await claimOne(store, run, run.runner);
  },
  "an end and a restart": async ({ store }, run) => {
    await commitOk(store, aPart(run, { next: complete() }));
    await store.control(targetOf(run), restart("restart"));
  },
  "a restart and another claim": async ({ store }, run) => {
    await store.control(targetOf(run), restart("restart"));
    await claimOne(store, run, run.runner);
  },
};

export const fenceCases: readonly ConformanceCase[] = [
  stillTime("a lease that ran out but was not taken may still commit", async ({ store, clock }) => {
    const run = await leasedRun(store);
    clock.advance(leaseMs * 100);
    await commitOk(store, aPart(run, { steps: [aStep(1)] }));
    equal((await recordedSteps(store, run)).length, 1, "steps");
  }),

  ...Object.entries(fences).map(([what, fence]) =>
    stillTime(`${what} fences the old turn off, and it writes nothing`, async (world) => {
      const { store } = world;
      const other = await create(store, { workflow: "other" });
      const run = await leasedRun(store);
      await sendTo(store, run);
      await fence(world, run);
      const status = await currentStatus(store, run);
      const child = anInstance({ workflow: "child" });
      for (const next of [
        { kind: "continue" } as const,
        parkFor(["paid"]),
        release(),
        complete(),
        failWith(),
      ]) {
        const consumed = [{ number: 1, ord: 1 }];
        const part = aPart(run, {
          partNumber: 7,
          seenEvents: 1,
          steps: [aStep(1)],
          consumed,
          next,
        });
        equal(await commit(store, part), lost, `the answer to ${next.kind}`);
        const more = {
          attempts: [anAttempt(1, 1)],
          spawns: [child],
          deliveries: [aDelivery(other.iid)],
        };
        equal(
          await commit(store, { ...part, ...more }),
          lost,
          `the answer to more and ${next.kind}`,
        );
      }
      equal(await currentStatus(store, run), status, "the status");
      equal(await recordedSteps(store, run, 1), [], "steps");
      equal((await recordedEvents(store, run, 1))[0]?.consumedBy, null, "consumed by");
      equal(await store.get(targetOf(child)), null, "the child");
      equal(await store.moveInbox(10), 0, "delivered");
    }),
  ),

  stillTime("a part after the end writes nothing", async ({ store }) => {
    const run = await leasedRun(store);
    await commitOk(store, aPart(run, { next: complete('"out"') }));
    const before = await store.get(targetOf(run));
    for (const next of [{ kind: "continue" } as const, parkFor(["x"]), failWith()]) {
      await commit(store, aPart(run, { partNumber: 2, steps: [aStep(1)], next }));
    }
    equal(await store.get(targetOf(run)), before, "the instance");
    equal(await recordedSteps(store, run), [], "steps");
    equal(await dueIn(store, run), null, "due");
  }),

  stillTime("a part for a run that does not exist is lost", async ({ store }) => {
    const run = await leasedRun(store);
    const nowhere = aPart({ ...run, iid: anInstance().iid });
    equal(await commit(store, nowhere), lost, "an unknown iid");
    equal(await commit(store, aPart({ ...run, claimNumber: 2 })), lost, "a claim of the future");
  }),
];

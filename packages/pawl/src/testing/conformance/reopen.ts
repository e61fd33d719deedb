import type { Claimed, ReopenRequest } from "../../store/store.js";
import { equal, matches, ok, only } from "./assert.js";
import {
  aPart,
  aRunner,
  aStep,
  anEvent,
  claim,
  claimOne,
  commit,
  commitOk,
  complete,
  create,
  dueIn,
  recordedEvents,
  laneOf,
  type Leased,
  leasedRun,
  leaseMs,
  letRunnersDie,
  parkFor,
  parkUntil,
  release,
  sendTo,
  currentStatus,
  targetOf,
  waiting,
  pause,
  resume,
  restart,
  terminate,
} from "./build.js";
import { atOnce, storesOn } from "./concurrency.js";
import type { ConformanceCase } from "./fixture.js";
import { realTime, stillTime, type World } from "./world.js";

function requestOf({ iid, runNumber, claimNumber }: Claimed): ReopenRequest {
  return { iid, runNumber, claimNumber };
}

type ReopenStore = World["store"];

function reopen(store: ReopenStore, ...runs: readonly Leased[]): Promise<Claimed[]> {
  return store.reopen(runs[0]!.runner, runs.map(requestOf));
}

async function reopened(store: ReopenStore, run: Leased): Promise<Leased> {
  return { ...only(await reopen(store, run), "reopened"), runner: run.runner };
}

async function ownedBy(store: ReopenStore, runner: string): Promise<string[]> {
  const answer = await store.heartbeat(runner, leaseMs);
  return answer.kind === "dead" ? [] : answer.owned.map(({ iid }) => iid);
}

/** Ways in which a run may move on while its code is in memory. */
const movedOn: Readonly<Record<string, (store: ReopenStore, run: Leased) => Promise<unknown>>> = {
  "was paused": (store, run) => store.control(targetOf(run), pause),
  "was terminated": (store, run) => store.control(targetOf(run), terminate("terminate")),
  "was restarted": (store, run) => store.control(targetOf(run), restart("restart")),
  "was terminated and restarted": async (store, run) => {
    await store.control(targetOf(run), terminate("terminate"));
    await store.control(targetOf(run), restart("restart"));
  },
  "is claimed": async (store, run) => {
    await sendTo(store, run);
    await claimOne(store, run);
  },
  "was claimed and parked again": async (store, run) => {
    await sendTo(store, run);
    const next = await claimOne(store, run);
    await commitOk(store, aPart(next, { next: parkFor(["paid"]) }));
  },
  "was claimed and finished": async (store, run) => {
    await sendTo(store, run);
    await commitOk(store, aPart(await claimOne(store, run), { next: complete() }));
  },
  "was reopened": (store, run) => reopen(store, run),
};

/** A parked run whose code is still in memory asks for its ticket back. */
export const reopenCases: readonly ConformanceCase[] = [
  stillTime("a parked run can be reopened before it is due", async ({ store, clock }) => {
    const run = await leasedRun(store);
    await commitOk(store, aPart(run, { next: parkUntil({ inMs: 60_000 }, 1_234) }));
    clock.advance(100);
    const answer = only(await reopen(store, run), "reopened");
    const { iid, workflow, id, createdAt } = run;
    matches(
      answer,
      {
        iid,
        workflow,
        id,
        createdAt,
        runNumber: 1,
        claimNumber: 2,
        resuming: true,
        takenOver: false,
        takeovers: 0,
        eventCount: 0,
        historyBytes: 1_234,
        now: clock.now(),
      },
      "the answer",
    );
    equal(await currentStatus(store, run), "running", "the status");
    equal(await ownedBy(store, run.runner), [iid], "owned");
    equal(await dueIn(store, run), null, "due");
    equal((await store.get(targetOf(run)))?.startedAt, run.now, "started at");
  }),

  stillTime("a run that waits only for an event can be reopened", async ({ store }) => {
    const run = await waiting(store);
    await reopened(store, run);
    equal((await sendTo(store, run)).owner, run.runner, "the owner");
  }),

  stillTime("a run that is already due can be reopened", async ({ store }) => {
    const run = await waiting(store, { wake: { inMs: 0 } });
    await reopened(store, run);
    equal(await claim(store, await aRunner(store)), [], "left to claim");
  }),

  stillTime("released runs and runs resumed after a pause can be reopened", async ({ store }) => {
    const given = await leasedRun(store);
    await commitOk(store, aPart(given, { next: release(500) }));
    await reopened(store, given);
    const resumed = await waiting(store);
    await store.control(targetOf(resumed), pause);
    await store.control(targetOf(resumed), resume);
    await reopened(store, resumed);
    equal(await currentStatus(store, resumed), "running", "the status");
  }),

  stillTime("a runner other than the one that parked it may reopen a run", async ({ store }) => {
    const run = await waiting(store);
    const other = await aRunner(store);
    equal((await store.reopen(other, [requestOf(run)])).length, 1, "reopened");
    equal(await ownedBy(store, other), [run.iid], "owned");
    equal(await ownedBy(store, run.runner), [], "owned by who parked it");
  }),

  stillTime("a reopened run goes on like a claimed one", async ({ store }) => {
    const run = await leasedRun(store);
    await commitOk(store, aPart(run, { steps: [aStep(1)] }));
    await commitOk(store, aPart(run, { partNumber: 2, next: parkFor(["paid"]) }));
    const again = await reopened(store, run);
    // The parts of a new claim are counted anew, although the ticket has seen a second part before.
    const park = aPart(again, { steps: [aStep(2)], next: parkUntil({ inMs: 5 }) });
    equal((await commitOk(store, park)).state, "parked", "the state");
    const third = await reopened(store, again);
    await commitOk(store, aPart(third, { next: complete() }));
    equal(await currentStatus(store, run), "complete", "the status");
  }),

  stillTime("a park sent again after a reopen is lost", async ({ store }) => {
    const run = await leasedRun(store);
    const park = aPart(run, { next: parkFor(["paid"]) });
    await commitOk(store, park);
    await reopened(store, run);
    equal(await commit(store, park), { kind: "lost" }, "the answer");
    equal(await currentStatus(store, run), "running", "the status");
  }),

  stillTime("reopening counts past events; new ones get later times", async ({ store, clock }) => {
    const run = await waiting(store, { types: ["other"] });
    await sendTo(store, run, anEvent("paid"));
    clock.advance(100);
    const again = await reopened(store, run);
    equal(again.eventCount, 1, "events before");
    clock.advance(-1_000);
    await sendTo(store, run, anEvent("paid"));
    const [, late] = await recordedEvents(store, run);
    ok(late !== undefined && late.createdAt > again.now, "an event later than the look");
  }),

  ...Object.entries(movedOn).map(([what, move]) =>
    stillTime(`a run that ${what} is not reopened and does not change`, async ({ store }) => {
      const [run, other] = [await waiting(store), await waiting(store, { workflow: "other" })];
      await move(store, run);
      const observe = async () => [
        await store.get(targetOf(run)),
        await dueIn(store, run),
        await ownedBy(store, run.runner),
      ];
      const before = await observe();
      equal(await reopen(store, run), [], "alone");
      const answer = await store.reopen(other.runner, [run, other].map(requestOf));
      equal(
        answer.map(({ iid }) => iid),
        [other.iid],
        "beside one that is parked",
      );
      equal(await observe(), before, "what can be seen");
    }),
  ),

  stillTime(
    "a run that is leased, unknown, never claimed or of another number is not reopened",
    async (world) => {
      const { store } = world;
      const run = await leasedRun(store);
      equal(await reopen(store, run), [], "leased");
      const parked = await waiting(store);
      equal(await reopen(store, { ...parked, runNumber: 2 }), [], "another run");
      equal(await reopen(store, { ...parked, iid: "nobody" }), [], "nobody's");
      equal(await store.reopen(run.runner, []), [], "none");
      const fresh = await create(store);
      equal(
        await store.reopen(run.runner, [{ iid: fresh.iid, runNumber: 1, claimNumber: 1 }]),
        [],
        "never claimed",
      );
    },
  ),

  stillTime("a runner that is dead, retired or unknown cannot reopen a run", async (world) => {
    const { store } = world;
    const run = await waiting(store, { wake: { inMs: 60_000 } });
    await letRunnersDie(world);
    const retired = await aRunner(store);
    await store.retire(retired);
    const due = await dueIn(store, run);
    for (const runner of [run.runner, retired, "nobody"]) {
      equal(await store.reopen(runner, [requestOf(run)]), [], runner);
    }
    equal(await currentStatus(store, run), "waiting", "the status");
    equal(await dueIn(store, run), due, "due");
  }),

  stillTime("many runs are reopened at once, and one named twice only once", async ({ store }) => {
    const runner = await aRunner(store);
    const runs: Leased[] = [];
    for (let n = 0; n < 20; n++) runs.push(await waiting(store, { runner }));
    const answer = await reopen(store, ...runs, ...runs);
    equal(
      answer.map(({ iid, claimNumber }) => `${iid} ${claimNumber}`).toSorted(),
      runs.map(({ iid }) => `${iid} 2`),
      "reopened",
    );
  }),

  stillTime("a reopen whose reply was lost can be adopted", async ({ store }) => {
    const run = await waiting(store);
    const first = await reopened(store, run);
    equal(await reopen(store, run), [], "sent again");
    const adopted = only(await store.adopt(run.runner, [run.iid]), "adopted");
    const { claimNumber, resuming, takenOver, takeovers, eventCount } = first;
    matches(adopted, { claimNumber, resuming, takenOver, takeovers, eventCount }, "adopted");
  }),

  stillTime("a reopened run is taken over if its runner dies", async (world) => {
    const { store } = world;
    const run = await waiting(store);
    await reopened(store, run);
    await letRunnersDie(world);
    matches(await claimOne(store, run), { claimNumber: 3, takenOver: true, takeovers: 1 }, "taken");
  }),

  realTime("a reopen and a claim at once: one of them gets the run", async ({ db }) => {
    const [one, two] = await storesOn(db, 2);
    const [mine, theirs] = [await aRunner(one), await aRunner(one)];
    for (let round = 0; round < 20; round++) {
      const workflow = `reopened-${round}`;
      const run = await waiting(one, { workflow, runner: mine, wake: { inMs: 0 } });
      const [taken, claimed] = await atOnce(
        [
          () => one.reopen(mine, [requestOf(run)]),
          () => claim(two!, theirs, { lanes: [laneOf(run)] }),
        ],
        "a reopen and a claim",
      );
      const both = [...taken!, ...claimed!];
      // Each may have found the row locked by the other.
      ok(both.length <= 1, "one owner");
      if (both.length === 0) both.push(...(await reopen(one, run)));
      equal(only(both, "the owner's").claimNumber, 2, "claim number");
      equal((await commitOk(one, aPart(both[0]!, { next: complete() }))).state, "finished", "end");
    }
  }),
];

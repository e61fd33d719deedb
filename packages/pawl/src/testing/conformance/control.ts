import type { InstanceState } from "../../model/status.js";
import { liveStates, terminalStates } from "../../model/status.js";
import {
  type Command,
  transition,
  type UserCommand,
  userCommands,
} from "../../model/transitions.js";
import type { Target } from "../../model/target.js";
import type { ControlAnswer, ControlRequest, SendEventAnswer, Store } from "../../store/store.js";
import type { Next } from "../../store/part.js";
import { defined, equal, kindOf, matches, only } from "./assert.js";
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
  historyRows,
  recordedEvents,
  failWith,
  finished,
  inState,
  type Leased,
  leasedRun,
  leaseMs,
  letRunnersDie,
  loadOne,
  parkFor,
  parkUntil,
  release,
  sendTo,
  currentStatus,
  recordedSteps,
  targetOf,
  unique,
  waiting,
  pause,
  resume,
  restart,
  terminate,
} from "./build.js";
import { atOnce, storesOn } from "./concurrency.js";
import type { ConformanceCase } from "./fixture.js";
import { stillTime } from "./world.js";

const states: readonly InstanceState[] = [...liveStates, ...terminalStates];

const ask: {
  readonly [C in UserCommand]: (
    store: Store,
    target: Target,
  ) => Promise<ControlAnswer | SendEventAnswer>;
} = {
  pause: (store, target) => store.control(target, pause),
  resume: (store, target) => store.control(target, resume),
  terminate: (store, target) => store.control(target, terminate(`terminate-${unique()}`)),
  restart: (store, target) => store.control(target, restart(`restart-${unique()}`)),
  sendEvent: (store, target) => store.sendEvent(target, anEvent("nobody awaits this")),
};

/** Returns the outcome of a command according to the table of transitions. */
function outcomeOf(state: InstanceState, command: Command): { after: InstanceState; ok: boolean } {
  const result = transition(state, command);
  return "state" in result ? { after: result.state, ok: true } : { after: state, ok: false };
}

/** Every state with every user command, as the table of transitions has it. */
const tableOfCommands = states.flatMap((state) =>
  userCommands.map((command) => {
    const expected = outcomeOf(state, command);
    const outcome = expected.ok ? `leads to ${expected.after}` : "is refused";
    return stillTime(`${command} of a ${state} instance ${outcome}`, async ({ store }) => {
      const run = await inState(store, state);
      const answer = await ask[command](store, targetOf(run));
      if (!expected.ok) equal(answer, { kind: "terminal", status: state }, "the answer");
      else if (command === "sendEvent") equal(answer.kind, "accepted", "the answer");
      else
        matches(
          kindOf(answer as ControlAnswer, "ok", command),
          { status: expected.after },
          "the answer",
        );
      equal(await currentStatus(store, run), expected.after, "the status");
    });
  }),
);

const ends: Readonly<Record<"park" | "release" | "complete" | "fail", Next>> = {
  park: parkFor(["paid"]),
  release: release(),
  complete: complete(),
  fail: failWith(),
};

/** Every end of a turn, as the table of transitions has it. */
const tableOfTurns = (["running", "waitingForPause"] as const).flatMap((state) =>
  (["park", "release", "complete", "fail"] as const).map((command) => {
    const { after } = outcomeOf(state, command);
    return stillTime(`${command} of a ${state} instance leads to ${after}`, async ({ store }) => {
      const run = await leasedRun(store);
      if (state === "waitingForPause") await store.control(targetOf(run), pause);
      await commitOk(store, aPart(run, { next: ends[command] }));
      equal(await currentStatus(store, run), after, "the status");
    });
  }),
);

/** Every claim, including those from a dead owner, as the table of transitions has it. */
const tableOfClaims = (["queued", "running", "waiting", "waitingForPause"] as const).map(
  (state) => {
    const { after } = outcomeOf(state, "claim");
    return stillTime(`claim of a ${state} instance leads to ${after}`, async (world) => {
      const { store } = world;
      const run = await inState(store, state);
      if (state === "waiting") await sendTo(store, run, anEvent("paid"));
      await letRunnersDie(world);
      const claimed = await claim(store, await aRunner(store));
      equal(claimed.length, after === "running" ? 1 : 0, "claimed");
      equal(await currentStatus(store, run), after, "the status");
    });
  },
);

export const controlCases: readonly ConformanceCase[] = [
  ...tableOfCommands,
  ...tableOfTurns,
  ...tableOfClaims,

  stillTime("every command for an unknown instance answers notFound", async ({ store }) => {
    const target = { workflow: "order", id: "unknown" };
    for (const command of userCommands) {
      equal(await ask[command](store, target), { kind: "notFound" }, command);
    }
  }),

  stillTime("pause and resume name the runner that holds the run", async ({ store }) => {
    const run = await leasedRun(store);
    equal(
      await store.control(targetOf(run), pause),
      { kind: "ok", status: "waitingForPause", owner: run.runner },
      "pause",
    );
    equal(
      await store.control(targetOf(run), resume),
      { kind: "ok", status: "running", owner: run.runner },
      "resume",
    );
    const queued = await create(store);
    equal(
      await store.control(targetOf(queued), pause),
      { kind: "ok", status: "paused", owner: null },
      "pause of a queued run",
    );
  }),

  stillTime("a resumed run is due at once, whatever it waits for", async ({ store, clock }) => {
    const run = await waiting(store, { types: ["paid"], wake: { inMs: 600_000 } });
    await store.control(targetOf(run), pause);
    equal(await dueIn(store, run), null, "due while paused");
    clock.advance(10);
    await store.control(targetOf(run), resume);
    equal(await dueIn(store, run), 0, "due");
    matches(await claimOne(store), { iid: run.iid, resuming: true }, "claimed");
  }),

  stillTime("resuming a run that is not paused does not change when it is due", async (world) => {
    const { store } = world;
    const run = await waiting(store, { wake: { inMs: 5_000 } });
    await store.control(targetOf(run), resume);
    equal(await dueIn(store, run), 5_000, "due");
  }),

  stillTime("a resume that cancels a pause lets the turn park", async ({ store }) => {
    const run = await leasedRun(store);
    await store.control(targetOf(run), pause);
    await store.control(targetOf(run), resume);
    const answer = await commitOk(store, aPart(run, { next: parkFor(["paid"]) }));
    matches(answer, { state: "parked", pauseRequested: false }, "the answer");
  }),

  stillTime("a pause is forgotten once the run has gone on", async ({ store }) => {
    const run = await leasedRun(store);
    await store.control(targetOf(run), pause);
    await commitOk(store, aPart(run, { next: parkUntil({ inMs: 0 }) }));
    await store.control(targetOf(run), resume);
    const next = await claimOne(store);
    const answer = await commitOk(store, aPart(next, { next: parkUntil({ inMs: 0 }) }));
    matches(answer, { state: "parked", pauseRequested: false }, "the next park");
  }),

  stillTime("a pause of a leased run shows in its owner's heartbeat", async ({ store }) => {
    const run = await leasedRun(store);
    const requested = async () => {
      const answer = kindOf(await store.heartbeat(run.runner, leaseMs), "ok", "heartbeat");
      return only(answer.owned, "owned").pauseRequested;
    };
    equal(await requested(), false, "before");
    await store.control(targetOf(run), pause);
    equal(await requested(), true, "after a pause");
    await store.control(targetOf(run), resume);
    equal(await requested(), false, "after a resume");
  }),

  stillTime("a terminated run ends at once and has no ticket", async ({ store, clock }) => {
    for (const state of liveStates) {
      const run = await inState(store, state, { workflow: state });
      clock.advance(100);
      equal(
        (await store.control(targetOf(run), terminate("t"))).kind,
        "ok",
        `terminate when ${state}`,
      );
      matches(
        defined(await store.get(targetOf(run)), "the instance"),
        { status: "terminated", finishedAt: clock.now(), output: null, error: null },
        "the instance",
      );
      equal(await dueIn(store, { workflow: state }), null, "due");
      if (run.owner === null) continue;
      equal(
        kindOf(await store.heartbeat(run.owner, leaseMs), "ok", "heartbeat").owned,
        [],
        "owned",
      );
    }
  }),

  stillTime("a resent terminate succeeds, and a new one is refused", async (world) => {
    const { store, clock } = world;
    const run = await leasedRun(store);
    const finishedAt = clock.now();
    const first = await store.control(targetOf(run), terminate("operation-1"));
    clock.advance(1_000);
    matches(
      kindOf(await store.control(targetOf(run), terminate("operation-1")), "ok", "sent again"),
      { status: "terminated" },
      "the second answer",
    );
    equal(first.kind, "ok", "the first answer");
    equal((await store.get(targetOf(run)))?.finishedAt, finishedAt, "finishedAt");
    equal(
      await store.control(targetOf(run), terminate("operation-2")),
      { kind: "terminal", status: "terminated" },
      "another terminate",
    );
  }),

  stillTime("a restart sent again applies once", async ({ store }) => {
    const run = await finished(store);
    for (let i = 0; i < 2; i++) {
      equal((await store.control(targetOf(run), restart("operation-1"))).kind, "ok", "the answer");
      equal((await store.get(targetOf(run)))?.runNumber, 2, "the run number");
    }
    const claimed = await claimOne(store);
    equal((await store.control(targetOf(run), restart("operation-1"))).kind, "ok", "after a claim");
    equal((await commitOk(store, aPart(claimed))).state, "leased", "the turn that goes on");
    equal(
      (await store.control(targetOf(run), restart("operation-2"))).kind,
      "ok",
      "another restart",
    );
    equal((await store.get(targetOf(run)))?.runNumber, 3, "the run number");
  }),

  stillTime("terminate and restart do not apply again after newer operations", async (world) => {
    const { store, clock } = world;
    const run = await leasedRun(store);
    const done: ControlRequest[] = [];
    const operations = [
      restart("operation-1"),
      restart("operation-2"),
      terminate("operation-3"),
      restart("operation-4"),
      terminate("operation-5"),
      restart("operation-6"),
    ];
    for (const operation of operations) {
      const nth = `operation ${done.length + 1}`;
      equal((await store.control(targetOf(run), operation)).kind, "ok", nth);
      done.push(operation);
      const before = defined(await store.get(targetOf(run)), "the instance");
      clock.advance(100);
      for (const [i, sent] of done.entries()) {
        const again = `operation ${i + 1} again`;
        matches(
          kindOf(await store.control(targetOf(run), sent), "ok", again),
          { status: before.status },
          again,
        );
        equal(await store.get(targetOf(run)), before, `the instance after ${again}`);
      }
    }
    equal((await claimOne(store)).runNumber, 5, "the run");
  }),

  stillTime("an operation id counts for its own instance only", async ({ store }) => {
    const [one, two] = [await create(store), await create(store)];
    for (const run of [one, two]) await store.control(targetOf(run), restart("operation-1"));
    equal((await store.get(targetOf(two)))?.runNumber, 2, "the run number");
  }),

  stillTime(
    "a restarted run is new: it is due now, with its params and without a past",
    async (world) => {
      const { store, clock } = world;
      const run = await leasedRun(store, { params: '{"p":1}' });
      const createdAt = clock.now();
      await sendTo(store, run);
      await commitOk(store, aPart(run, { seenEvents: 1, steps: [aStep(1)], next: failWith() }));
      clock.advance(1_000);
      equal(
        await store.control(targetOf(run), restart("restart")),
        { kind: "ok", status: "queued", owner: null },
        "the answer",
      );
      matches(
        defined(await store.get(targetOf(run)), "the instance"),
        {
          iid: run.iid,
          runNumber: 2,
          status: "queued",
          params: '{"p":1}',
          output: null,
          error: null,
          createdAt,
          startedAt: null,
          finishedAt: null,
        },
        "the instance",
      );
      equal(await dueIn(store, run), 0, "due");
      const claimed = await claimOne(store);
      matches(
        claimed,
        {
          runNumber: 2,
          resuming: false,
          takenOver: false,
          takeovers: 0,
          eventCount: 0,
          historyBytes: 0,
          params: '{"p":1}',
        },
        "claimed",
      );
      equal(
        await loadOne(store, claimed),
        { iid: run.iid, params: '{"p":1}', steps: [], events: [] },
        "loaded",
      );
    },
  ),

  stillTime("a restart forgets the run's events and a requested pause", async ({ store }) => {
    const run = await leasedRun(store);
    await sendTo(store, run);
    await store.control(targetOf(run), pause);
    await store.control(targetOf(run), restart("restart"));
    const claimed = await claimOne(store);
    const heartbeat = kindOf(await store.heartbeat(claimed.runner, leaseMs), "ok", "heartbeat");
    matches(only(heartbeat.owned, "owned"), { pauseRequested: false, eventCount: 0 }, "the ticket");
  }),

  stillTime("the claim number goes on growing after a restart", async ({ store }) => {
    for (const run of [await leasedRun(store), await finished(store)]) {
      await store.control(targetOf(run), restart("restart"));
      const claimed = await claimOne(store);
      equal(claimed.claimNumber > run.claimNumber, true, "greater than before");
      await commitOk(store, aPart(claimed, { next: complete() }));
    }
  }),

  stillTime("earlier runs stay readable with their outcome", async ({ store, clock }) => {
    const run = await leasedRun(store);
    const times: number[] = [clock.now()];
    const finish = async (claimed: Leased, next: Next, result: string) => {
      clock.advance(10);
      times.push(clock.now());
      await commitOk(store, aPart(claimed, { steps: [aStep(1, { result })], next }));
    };
    await finish(run, complete('"first"'), '"step of the first"');
    await store.control(targetOf(run), restart("restart-1"));
    await finish(await claimOne(store), failWith('"second"'), '"step of the second"');
    await store.control(targetOf(run), restart("restart-2"));
    const history = defined(
      await store.history(targetOf(run), { order: "oldest", pageSize: 10 }),
      "history",
    );
    equal(history.runNumber, 3, "the run that is shown");
    equal(history.items, [], "its entries");
    equal(
      history.runs,
      [
        {
          runNumber: 3,
          status: "queued",
          output: null,
          error: null,
          startedAt: null,
          finishedAt: null,
        },
        {
          runNumber: 2,
          status: "errored",
          output: null,
          error: '"second"',
          startedAt: times[1]!,
          finishedAt: times[2]!,
        },
        {
          runNumber: 1,
          status: "complete",
          output: '"first"',
          error: null,
          startedAt: times[0]!,
          finishedAt: times[1]!,
        },
      ],
      "the runs",
    );
    const results = async (runNumber: number) =>
      (await recordedSteps(store, run, runNumber)).map(({ result }) => result);
    equal(await results(1), ['"step of the first"'], "steps of the first");
    equal(await results(2), ['"step of the second"'], "steps of the second");
  }),

  stillTime("a live run that a restart replaced counts as terminated", async ({ store, clock }) => {
    const run = await leasedRun(store);
    clock.advance(500);
    await store.control(targetOf(run), restart("restart"));
    const history = await store.history(targetOf(run), { order: "oldest", pageSize: 1 });
    matches(
      defined(history?.runs[1], "the first run"),
      { runNumber: 1, status: "terminated", startedAt: run.now, finishedAt: clock.now() },
      "the first run",
    );
  }),

  stillTime("only the latest 100 runs are listed", async ({ store }) => {
    const run = await create(store);
    for (let i = 0; i < 104; i++) await store.control(targetOf(run), restart(`restart-${i}`));
    const history = await store.history(targetOf(run), { order: "oldest", pageSize: 1 });
    equal(
      history?.runs.map(({ runNumber }) => runNumber),
      Array.from({ length: 100 }, (_, i) => 105 - i),
      "run numbers",
    );
    equal(
      (await historyRows(store, run, { runNumber: 1 })).length,
      0,
      "the first is still readable",
    );
  }),

  stillTime(
    "a terminated run can be restarted, and its old turn stays fenced off",
    async ({ store }) => {
      const run = await leasedRun(store);
      await store.control(targetOf(run), terminate("terminate"));
      await store.control(targetOf(run), restart("restart"));
      const claimed = await claimOne(store);
      equal(
        await commit(store, aPart(run, { steps: [aStep(1)] })),
        { kind: "lost" },
        "the old turn",
      );
      equal(
        await commit(store, aPart({ ...run, runNumber: 2 }, { steps: [aStep(1)] })),
        { kind: "lost" },
        "the old turn's claim on the new run",
      );
      await commitOk(store, aPart(claimed, { steps: [aStep(1)] }));
      equal(await recordedSteps(store, run, 1), [], "steps of the old run");
    },
  ),

  stillTime("concurrent restarts of an ended run leave one run to claim", async ({ db, store }) => {
    const run = await finished(store, complete());
    const stores = await storesOn(db, 8);
    const answers = await atOnce(
      stores.map((each) => () => each.control(targetOf(run), restart(`restart-${unique()}`))),
      "restarts",
    );
    for (const answer of answers) kindOf(answer, "ok", "a restart");
    matches(
      only(await claim(store, await aRunner(store)), "claimed"),
      { iid: run.iid, runNumber: 1 + stores.length },
      "the run",
    );
  }),

  stillTime("events stay with their run after a restart", async ({ store }) => {
    const run = await leasedRun(store);
    await sendTo(store, run, anEvent("one"));
    await commitOk(store, aPart(run, { seenEvents: 1, consumed: [{ number: 1, ord: 3 }] }));
    await store.control(targetOf(run), restart("restart"));
    await sendTo(store, run, anEvent("two"));
    matches(
      only(await recordedEvents(store, run, 1), "events of the first run"),
      { type: "one", consumedBy: 3 },
      "the event",
    );
    equal(
      (await recordedEvents(store, run, 2)).map(({ type }) => type),
      ["two"],
      "of the second run",
    );
  }),
];

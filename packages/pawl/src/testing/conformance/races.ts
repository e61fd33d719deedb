import type { Store } from "../../store/store.js";
import { fail } from "./assert.js";
import {
  aPart,
  aStep,
  anInstance,
  claim,
  claimOne,
  commit,
  complete,
  create,
  dueIn,
  historyRows,
  laneOf,
  type Leased,
  parkFor,
  release,
  targetOf,
  unique,
  pause,
  resume,
  restart,
  terminate,
} from "./build.js";
import { atOnce, storesOn, untilNotBusy } from "./concurrency.js";
import type { ConformanceCase, TestDatabase } from "./fixture.js";
import { stillTime, type StillWorld } from "./world.js";

/*
 * Two concurrent sessions must look as if one had come after the other. Each pair of operations is first
 * played one after the other, in every order, and the answers and the stored state are noted. Then the pair
 * is raced, and its outcome must be one of those noted. No model is needed: the store is its own.
 */

/** A run that two sessions contend for, with names that no other round has. */
type Scene = {
  readonly run: Leased;
  readonly rival: string;
  /** Distinguishes this round's names. It is removed from what is compared. */
  readonly tag: string;
  readonly startedAt: number;
};

type RaceStep = {
  readonly act: (store: Store, scene: Scene) => Promise<unknown>;
  /** The engine skips rows that another session has locked. Such an answer means "try again later". */
  readonly mayHaveSkipped?: (answer: unknown) => boolean;
};

const nothing = (answer: unknown) => answer === 0 || (Array.isArray(answer) && answer.length === 0);

const claimIt: RaceStep = {
  act: (store, { run, rival }) => claim(store, rival, { lanes: [laneOf(run)] }),
  mayHaveSkipped: nothing,
};
const declareDead: RaceStep = {
  act: async (store, { tag }) => (await store.declareDead()).filter((id) => id.includes(tag)),
  mayHaveSkipped: nothing,
};
const moveInbox: RaceStep = { act: (store) => store.moveInbox(100), mayHaveSkipped: nothing };

const reopenIt: RaceStep = {
  act: (store, { run: { runner, iid, runNumber, claimNumber } }) =>
    store.reopen(runner, [{ iid, runNumber, claimNumber }]),
  mayHaveSkipped: nothing,
};

const one = (act: RaceStep["act"]): readonly RaceStep[] => [{ act }];

/** An operation is one write, or two writes between which others may come. */
const operations = {
  claim: [claimIt],
  takeover: [declareDead, claimIt],
  reopen: [reopenIt],
  heartbeat: one(async (store, { run }) => {
    const answer = await store.heartbeat(run.runner, 60_000);
    if (answer.kind === "dead") return answer;
    return answer.owned.filter(({ iid }) => iid === run.iid);
  }),
  poll: one((store, { run }) => {
    const { iid, runNumber, claimNumber } = run;
    const request = { iid, runNumber, claimNumber, seenEvents: 0 };
    return untilNotBusy(async () => (await store.poll([request]))[0] ?? fail("no answer"));
  }),
  progress: one((store, { run }) => commit(store, aPart(run, { steps: [aStep(1)] }))),
  park: one((store, { run }) =>
    commit(store, aPart(run, { steps: [aStep(1)], next: parkFor(["paid"], { inMs: 700 }) })),
  ),
  release: one((store, { run }) => commit(store, aPart(run, { next: release(300) }))),
  complete: one((store, { run, tag }) =>
    commit(
      store,
      aPart(run, {
        steps: [aStep(1)],
        spawns: [anInstance({ workflow: `child-${tag}`, id: "child" })],
        next: complete(),
      }),
    ),
  ),
  sendEvent: one((store, { run, tag }) =>
    store.sendEvent(targetOf(run), { eventId: `sent-${tag}`, type: "paid", payload: null }),
  ),
  moveInbox: [moveInbox],
  pause: one((store, { run }) => store.control(targetOf(run), pause)),
  resume: one((store, { run }) => store.control(targetOf(run), resume)),
  terminate: one((store, { run, tag }) =>
    store.control(targetOf(run), terminate(`terminate-${tag}`)),
  ),
  restart: one((store, { run, tag }) => store.control(targetOf(run), restart(`restart-${tag}`))),
} satisfies Readonly<Record<string, readonly RaceStep[]>>;

type RacerName = keyof typeof operations;
type Pair = { readonly a: readonly RaceStep[]; readonly b: readonly RaceStep[] };

/** The states in which both sessions begin. The owner's lease has run out, and an event lies in the inbox. */
const beginnings = {
  "a leased run": async () => {},
  "a run that waits": async (store, { run }) => {
    await commit(store, aPart(run, { next: parkFor(["paid"], { inMs: 700 }) }));
  },
  "a run that is due": async (store, { run }) => {
    await commit(store, aPart(run, { next: parkFor(["paid"], { inMs: 0 }) }));
  },
  "a run that is asked to pause": async (store, { run }) => {
    await store.control(targetOf(run), pause);
  },
  "a paused run": async (store, { run }) => {
    await commit(store, aPart(run, { next: parkFor(["paid"], { inMs: 700 }) }));
    await store.control(targetOf(run), pause);
  },
} satisfies Readonly<Record<string, (store: Store, scene: Scene) => Promise<void>>>;

type BeginningName = keyof typeof beginnings;

async function begin(world: StillWorld, beginning: BeginningName): Promise<Scene> {
  const { db, store, clock } = world;
  const tag = `#${unique()}#`;
  const workflow = `race-${tag}`;
  const [owner, rival] = [`owner-${tag}`, `rival-${tag}`];
  await Promise.all([
    create(store, { workflow, id: `run-${tag}` }),
    store.register(owner, 50),
    store.register(rival, 1_000_000_000),
  ]);
  const run = await claimOne(store, { workflow }, owner);
  const scene: Scene = { run, rival, tag, startedAt: clock.now() };
  await beginnings[beginning](store, scene);
  await putIntoInbox(db, scene);
  clock.advance(100);
  return scene;
}

async function putIntoInbox(db: TestDatabase, { run, tag }: Scene): Promise<void> {
  const transaction = await db.begin();
  const event = { eventId: `posted-${tag}`, type: "paid", payload: null };
  await db.store.sendEvent(targetOf(run), event, { tx: transaction.tx });
  await transaction.commit();
}

/** Returns all that can be seen of the run, without the names and times of the round. */
async function outcome(store: Store, scene: Scene, answers: unknown): Promise<string> {
  const { run, rival, tag, startedAt } = scene;
  const owned = async (runner: string) => {
    const answer = await store.heartbeat(runner, 1_000_000_000);
    return answer.kind === "dead" ? "dead" : answer.owned;
  };
  const seen = await Promise.all([
    store.get(targetOf(run)),
    historyRows(store, run, { runNumber: 1 }),
    historyRows(store, run),
    store.history(targetOf(run), { order: "newest", pageSize: 1 }).then((page) => page?.runs),
    store.list({ workflow: `child-${tag}`, order: "oldest", pageSize: 5 }),
    dueIn(store, run),
    owned(run.runner),
    owned(rival),
  ]);
  const inbox = await store.moveInbox(100);
  const all = { answers, seen, inbox, afterwards: await historyRows(store, run) };
  const uuid = /[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/g;
  return JSON.stringify(all, (_, value: unknown) =>
    typeof value === "number" && value > 1_000_000_000_000 ? `+${value - startedAt}` : value,
  )
    .replaceAll(tag, "")
    .replaceAll(uuid, "uuid");
}

/** Returns every way to merge two sequences without changing the order within either. */
function interleavings(a: readonly RaceStep[], b: readonly RaceStep[]): ("a" | "b")[][] {
  if (a.length === 0) return [b.map(() => "b" as const)];
  if (b.length === 0) return [a.map(() => "a" as const)];
  return [
    ...interleavings(a.slice(1), b).map((rest) => ["a" as const, ...rest]),
    ...interleavings(a, b.slice(1)).map((rest) => ["b" as const, ...rest]),
  ];
}

type Answers = { readonly a: unknown[]; readonly b: unknown[] };

/** Tries steps again that may have been skipped because of the other session, now that both are through. */
async function tryAgain(store: Store, scene: Scene, pair: Pair, answers: Answers): Promise<void> {
  for (const who of ["a", "b"] as const) {
    for (const [i, step] of pair[who].entries()) {
      if (step.mayHaveSkipped?.(answers[who][i])) answers[who][i] = await step.act(store, scene);
    }
  }
}

async function oneAfterTheOther(
  world: StillWorld,
  beginning: BeginningName,
  pair: Pair,
): Promise<string[]> {
  const allowed: string[] = [];
  for (const order of interleavings(pair.a, pair.b)) {
    const scene = await begin(world, beginning);
    const answers: Answers = { a: [], b: [] };
    for (const who of order) {
      const step = pair[who][answers[who].length];
      answers[who].push(await step?.act(world.store, scene));
    }
    await tryAgain(world.store, scene, pair, answers);
    allowed.push(await outcome(world.store, scene, answers));
  }
  return allowed;
}

async function raced(
  world: StillWorld,
  stores: readonly Store[],
  beginning: BeginningName,
  pair: Pair,
): Promise<string> {
  const scene = await begin(world, beginning);
  const answers: Answers = { a: [], b: [] };
  const play = (who: "a" | "b", store: Store) => async () => {
    for (const step of pair[who]) answers[who].push(await step.act(store, scene));
  };
  await atOnce([play("a", stores[0]!), play("b", stores[1]!)], "two operations");
  await tryAgain(world.store, scene, pair, answers);
  return outcome(world.store, scene, answers);
}

const roundsPerPair = 3;

async function raceAll(
  world: StillWorld,
  beginning: BeginningName,
  name: RacerName,
  rivals: readonly RacerName[],
): Promise<void> {
  const stores = await storesOn(world.db, 2);
  for (const rival of rivals) {
    const pair: Pair = { a: operations[name], b: operations[rival] };
    const allowed = await oneAfterTheOther(world, beginning, pair);
    for (let round = 0; round < roundsPerPair; round++) {
      const sides = round % 2 === 0 ? stores : stores.toReversed();
      const seen = await raced(world, sides, beginning, pair);
      if (allowed.includes(seen)) continue;
      fail(
        `${name} and ${rival} of ${beginning} at once:\n  ${seen}\n` +
          `is no outcome of one after the other:\n  ${allowed.join("\n  ")}`,
      );
    }
  }
}

const names = Object.keys(operations) as RacerName[];

/** The operations that can race in each beginning. */
const programme: Readonly<Record<BeginningName, readonly RacerName[]>> = {
  "a leased run": names,
  "a run that waits": [
    "claim",
    "takeover",
    "reopen",
    "park",
    "sendEvent",
    "moveInbox",
    "pause",
    "terminate",
    "restart",
  ],
  "a run that is due": [
    "claim",
    "takeover",
    "reopen",
    "park",
    "sendEvent",
    "pause",
    "terminate",
    "restart",
  ],
  "a run that is asked to pause": [
    "takeover",
    "progress",
    "park",
    "release",
    "complete",
    "resume",
    "restart",
  ],
  "a paused run": [
    "claim",
    "reopen",
    "sendEvent",
    "moveInbox",
    "pause",
    "resume",
    "terminate",
    "restart",
  ],
};

/** Two-session interleavings of every operation with every other. */
export const raceCases: readonly ConformanceCase[] = (
  Object.entries(programme) as [BeginningName, readonly RacerName[]][]
).flatMap(([beginning, participants]) =>
  participants.map((name, i) =>
    stillTime(
      `${name} of ${beginning} races safely with ${participants.slice(i).join(", ")}`,
      (world) => raceAll(world, beginning, name, participants.slice(i)),
    ),
  ),
);

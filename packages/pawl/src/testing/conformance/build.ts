import type { InstanceState } from "../../model/status.js";
import type { EventRecord, StepRecord } from "../../store/records.js";
import type { Target } from "../../model/target.js";
import type {
  Claimed,
  ClaimRequest,
  ControlRequest,
  HistoryRow,
  HistoryQuery,
  Lane,
  LoadedRun,
  NewEvent,
  NewInstance,
  Page,
  PollAnswer,
  SendEventAnswer,
  Store,
} from "../../store/store.js";
import type { Wake } from "../../model/wake.js";
import type {
  AttemptWrite,
  RunMessage,
  Next,
  Part,
  PartAnswer,
  StepWrite,
} from "../../store/part.js";
import { waitMaskOf } from "../../model/wait-mask.js";
import { defined, equal, fail, kindOf, only } from "./assert.js";
import { untilNotBusy } from "./concurrency.js";
import type { StillWorld } from "./world.js";

export const leaseMs = 30_000;

let made = 0;

/** Returns a number that is unique in this process and grows. */
export function unique(): number {
  made += 1;
  return made;
}

/** A UUIDv7 greater than all before it, so that the order of ids is the order of creation. */
function newIid(): string {
  return `01900000-0000-7000-8000-${unique().toString(16).padStart(12, "0")}`;
}

export function anInstance(given: Partial<NewInstance> = {}): NewInstance {
  const iid = given.iid ?? newIid();
  return { workflow: "order", id: `id-${iid}`, queue: "default", params: '{"n":1}', ...given, iid };
}

export function someInstances(count: number, given: Partial<NewInstance> = {}): NewInstance[] {
  return Array.from({ length: count }, () => anInstance(given));
}

export const pause: ControlRequest = { command: "pause" };
export const resume: ControlRequest = { command: "resume" };

export function terminate(operationId: string): ControlRequest {
  return { command: "terminate", operationId };
}

export function restart(operationId: string): ControlRequest {
  return { command: "restart", operationId };
}

/** A completed `do` step. */
export function aStep(ord: number, given: Partial<StepWrite> = {}): StepWrite {
  return {
    ord,
    name: `step ${ord}`,
    count: 1,
    type: "do",
    status: "completed",
    seq: ord,
    calledAfter: ord - 1,
    attempts: 1,
    tookMs: 0,
    wake: null,
    waitKey: null,
    result: `"result ${ord}"`,
    error: null,
    ...given,
  };
}

export function aRunningStep(ord: number, given: Partial<StepWrite> = {}): StepWrite {
  return aStep(ord, { status: "running", seq: null, result: null, ...given });
}

export function aWait(ord: number, wake: Wake | null, given: Partial<StepWrite> = {}): StepWrite {
  return aStep(ord, {
    type: "sleep",
    status: "waiting",
    seq: null,
    attempts: 0,
    result: null,
    wake,
    ...given,
  });
}

export function anAttempt(ord: number, n: number, given: Partial<AttemptWrite> = {}): AttemptWrite {
  return { ord, n, tookMs: 0, error: '{"message":"no"}', ...given };
}

export function anEvent(type = "paid", given: Partial<NewEvent> = {}): NewEvent {
  return { eventId: `event-${unique()}`, type, payload: '{"amount":1}', ...given };
}

export function aDelivery(iid: string, given: Partial<RunMessage> = {}): RunMessage {
  return { ...anEvent("child"), kind: "child", iid, runNumber: 1, ...given };
}

/** The first part of a claim, which writes nothing. */
export function aPart(claimed: Claimed, given: Partial<Part> = {}): Part {
  return {
    iid: claimed.iid,
    runNumber: claimed.runNumber,
    claimNumber: claimed.claimNumber,
    partNumber: 1,
    seenEvents: claimed.eventCount,
    steps: [],
    attempts: [],
    consumed: [],
    spawns: [],
    deliveries: [],
    next: { kind: "continue" },
    ...given,
  };
}

export const complete = (output: string | null = '"done"'): Next => ({ kind: "complete", output });
export const failWith = (error = '{"message":"failed"}'): Next => ({ kind: "fail", error });

/** Parks the run until an event of one of these types. */
export function parkFor(types: readonly string[], wake: Wake | null = null): Next {
  return { kind: "park", waitMask: waitMaskOf(types), wake, historyBytes: 100 };
}

/** Parks the run until a time. */
export function parkUntil(wake: Wake, historyBytes = 100): Next {
  return { kind: "park", waitMask: 0, wake, historyBytes };
}

export function release(inMs = 0): Next {
  return { kind: "release", inMs, historyBytes: 100 };
}

export function laneOf(run: { readonly workflow: string; readonly queue?: string }): Lane {
  return { queue: run.queue ?? "default", handler: run.workflow };
}

const orders: Lane = { queue: "default", handler: "order" };

// Asking the store ------------------------------------------------------------------------------------------------

export async function aRunner(store: Store, ownLeaseMs = leaseMs): Promise<string> {
  const runner = `runner-${unique()}`;
  await store.register(runner, ownLeaseMs);
  return runner;
}

export async function create(store: Store, given: Partial<NewInstance> = {}): Promise<NewInstance> {
  const instance = anInstance(given);
  kindOf(only(await store.create([instance]), "create"), "created", "create");
  return instance;
}

export async function claim(
  store: Store,
  runner: string,
  request: Partial<ClaimRequest> = {},
): Promise<Claimed[]> {
  const answer = await store.claim({
    runner,
    lanes: [orders],
    limit: 100,
    reservedForNew: 0,
    ...request,
  });
  return kindOf(answer, "ok", "claim").claimed;
}

/** A run with the runner that holds it. */
export type Leased = Claimed & { readonly runner: string };

export async function claimOne(
  store: Store,
  run: { readonly workflow: string; readonly queue?: string } = { workflow: "order" },
  runner?: string,
): Promise<Leased> {
  const owner = runner ?? (await aRunner(store));
  const claimed = await claim(store, owner, { lanes: [laneOf(run)], limit: 1 });
  return { ...only(claimed, "claimed"), runner: owner };
}

export async function commit(
  store: Store,
  part: Part,
): Promise<Exclude<PartAnswer, { kind: "busy" }>> {
  return untilNotBusy(async () => only(await store.commit([part]), "commit"));
}

type Ok<A> = Extract<A, { readonly kind: "ok" }>;

export async function commitOk(store: Store, part: Part): Promise<Ok<PartAnswer>> {
  return kindOf(await commit(store, part), "ok", "commit");
}

export async function pollOk(store: Store, run: Claimed, seenEvents = 0): Promise<Ok<PollAnswer>> {
  const { iid, runNumber, claimNumber } = run;
  const answer = await untilNotBusy(async () =>
    only(await store.poll([{ iid, runNumber, claimNumber, seenEvents }]), "poll"),
  );
  return kindOf(answer, "ok", "poll");
}

export async function sendTo(
  store: Store,
  target: Target,
  event: NewEvent = anEvent(),
): Promise<Extract<SendEventAnswer, { kind: "accepted" }>> {
  return kindOf(await store.sendEvent(targetOf(target), event), "accepted", "sendEvent");
}

/** Returns only what a caller would know of an instance. */
export function targetOf({ workflow, id }: Target): Target {
  return { workflow, id };
}

export async function currentStatus(store: Store, target: Target): Promise<string> {
  return defined(await store.get(targetOf(target)), `instance ${target.id}`).status;
}

export async function loadOne(store: Store, run: Claimed): Promise<LoadedRun> {
  const { iid, runNumber, historyBytes, takenOver } = run;
  return only(await store.load([{ iid, runNumber, historyBytes, takenOver }]), "load");
}

export async function historyRows(
  store: Store,
  target: Target,
  query: Partial<HistoryQuery> = {},
): Promise<HistoryRow[]> {
  const page = await store.history(targetOf(target), {
    order: "oldest",
    pageSize: 1_000,
    ...query,
  });
  return defined(page, `history of ${target.id}`).items;
}

export async function recordedSteps(
  store: Store,
  target: Target,
  runNumber?: number,
): Promise<StepRecord[]> {
  const entries = await historyRows(store, target, runNumber === undefined ? {} : { runNumber });
  return entries.flatMap((entry) => (entry.kind === "step" ? [entry.step] : []));
}

export async function recordedEvents(
  store: Store,
  target: Target,
  runNumber?: number,
): Promise<EventRecord[]> {
  const entries = await historyRows(store, target, runNumber === undefined ? {} : { runNumber });
  return entries
    .flatMap((entry) => (entry.kind === "event" ? [entry.event] : []))
    .toSorted((a, b) => a.number - b.number);
}

export async function dueIn(
  store: Store,
  run: { readonly workflow: string; readonly queue?: string },
): Promise<number | null> {
  return store.nextDueInMs([laneOf(run)]);
}

export async function isDue(
  store: Store,
  run: { readonly workflow: string; readonly queue?: string },
): Promise<boolean> {
  const inMs = await dueIn(store, run);
  return inMs !== null && inMs <= 0;
}

// Reaching a state ------------------------------------------------------------------------------------------------

export async function leasedRun(
  store: Store,
  given: Partial<NewInstance> & { readonly runner?: string } = {},
): Promise<Leased> {
  const { runner, ...instance } = given;
  const created = await create(store, instance);
  const run = await claimOne(store, created, runner);
  equal(run.iid, created.iid, "the claimed run");
  return run;
}

/** Creates a parked run that waits for an event of these types, or for the wake. */
export async function waiting(
  store: Store,
  given: Partial<NewInstance> & {
    readonly runner?: string;
    readonly types?: readonly string[];
    readonly wake?: Wake;
  } = {},
): Promise<Leased> {
  const { types = ["paid"], wake = null, ...rest } = given;
  const run = await leasedRun(store, rest);
  const answer = await commitOk(store, aPart(run, { next: parkFor(types, wake) }));
  equal(answer.state, "parked", "the state after a park");
  return run;
}

export async function finished(
  store: Store,
  next: Next = complete(),
  given: Partial<NewInstance> = {},
): Promise<Leased> {
  const run = await leasedRun(store, given);
  equal((await commitOk(store, aPart(run, { next }))).state, "finished", "the state after the end");
  return run;
}

type Reached = Target & { readonly iid: string; readonly runner?: string };

const reach: {
  readonly [S in InstanceState]: (store: Store, given: Partial<NewInstance>) => Promise<Reached>;
} = {
  queued: create,
  running: leasedRun,
  waiting,
  waitingForPause: async (store, given) => {
    const run = await leasedRun(store, given);
    await store.control(targetOf(run), pause);
    return run;
  },
  paused: async (store, given) => {
    const run = await create(store, given);
    await store.control(targetOf(run), pause);
    return run;
  },
  complete: (store, given) => finished(store, complete(), given),
  errored: (store, given) => finished(store, failWith(), given),
  terminated: async (store, given) => {
    const run = await create(store, given);
    await store.control(targetOf(run), terminate(`terminate-${unique()}`));
    return run;
  },
};

/** Brings an instance into the state by the shortest way. `owner` is the runner that holds it. */
export async function inState(
  store: Store,
  state: InstanceState,
  given: Partial<NewInstance> = {},
): Promise<Target & { readonly iid: string; readonly owner: string | null }> {
  const run = await reach[state](store, given);
  const isLeased = state === "running" || state === "waitingForPause";
  return {
    ...targetOf(run),
    iid: run.iid,
    owner: isLeased ? defined(run.runner, "the owner") : null,
  };
}

/** Lets every lease run out and declares the runners dead. */
export async function letRunnersDie({ store, clock }: StillWorld): Promise<string[]> {
  clock.advance(leaseMs);
  return store.declareDead();
}

/** Lets the run's owner die, and returns the run as another runner's. */
export async function takeOver(world: StillWorld, run: Leased): Promise<Leased> {
  await letRunnersDie(world);
  const taken = await claimOne(world.store, run);
  equal(taken.iid, run.iid, "the run taken over");
  return taken;
}

/** Walks a paged answer to its end. */
export async function allPages<T>(
  read: (from: { readonly cursor?: string }) => Promise<Page<T>>,
  between: () => Promise<void> = async () => {},
): Promise<T[][]> {
  const pages: T[][] = [];
  let from: { readonly cursor?: string } = {};
  while (pages.length < 1_000) {
    const page = await read(from);
    pages.push(page.items);
    if (!page.hasNextPage) return pages;
    from = { cursor: defined(page.cursor, "a page with a next one has a cursor") };
    await between();
  }
  return fail("paging does not come to an end");
}

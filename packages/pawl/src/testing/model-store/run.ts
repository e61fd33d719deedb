import { type InstanceState } from "../../model/status.js";
import { transition, type Command } from "../../model/transitions.js";
import type { AttemptRecord, DbTime, EventRecord, StepRecord } from "../../store/records.js";
import type { NewInstance } from "../../store/store.js";
import type { RunMessage } from "../../store/part.js";
import { waitMaskOf } from "../../model/wait-mask.js";

/**
 * One generation of an instance. The fields from `owner` on are the ticket: how a live run is queued or held.
 */
export type ModelRun = {
  readonly runNumber: number;
  status: InstanceState;
  output: string | null;
  error: string | null;
  startedAt: DbTime | null;
  finishedAt: DbTime | null;
  /** Each step with the number of the part that wrote it last. */
  readonly steps: { record: StepRecord; partNumber: number }[];
  readonly attempts: AttemptRecord[];
  /** Event number n stands at index n - 1. */
  readonly events: { record: EventRecord; readonly eventId: string }[];

  owner: string | null;
  /** Whether its code ran before. Such a run is claimed ahead of new ones. */
  resuming: boolean;
  /**
   * When a runner should look next. It is null without a timer, and while the run is leased, paused or ended.
   */
  dueAt: DbTime | null;
  waitMask: number;
  /** The latest time that a claim or a poll told the owner. It never goes back. */
  seenAt: DbTime;
  /** The last part of this claim that concerned the ticket. */
  partNumber: number;
  takeovers: number;
  historyBytes: number;
};

export type ModelInstance = {
  readonly iid: string;
  readonly workflow: string;
  readonly id: string;
  readonly queue: string;
  readonly params: string | null;
  readonly origin: string | null;
  readonly createdAt: DbTime;
  /** The number of the last claim. It fences off older claims. */
  claimNumber: number;
  /** Every terminate and restart that was carried out. */
  readonly operations: Set<string>;
  run: ModelRun;
  /** The runs that restarts replaced, newest first. */
  readonly pastRuns: ModelRun[];
};

/** Returns an instance that is queued and due now. */
export function newInstance(
  { iid, workflow, id, queue, params, origin }: NewInstance,
  createdAt: DbTime,
): ModelInstance {
  return {
    iid,
    workflow,
    id,
    queue,
    params,
    origin: origin ?? null,
    createdAt,
    claimNumber: 0,
    operations: new Set(),
    run: newRun(1, createdAt),
    pastRuns: [],
  };
}

export function newRun(runNumber: number, dueAt: DbTime): ModelRun {
  return {
    runNumber,
    status: "queued",
    output: null,
    error: null,
    startedAt: null,
    finishedAt: null,
    steps: [],
    attempts: [],
    events: [],
    owner: null,
    resuming: false,
    dueAt,
    waitMask: 0,
    seenAt: 0,
    partNumber: 0,
    takeovers: 0,
    historyBytes: 0,
  };
}

export function after(run: ModelRun, command: Command): InstanceState {
  const outcome = transition(run.status, command);
  if ("refused" in outcome) throw new Error(`${command} of a ${run.status} run`);
  return outcome.state;
}

export function leaseTo(instance: ModelInstance, owner: string, now: DbTime): void {
  const { run } = instance;
  instance.claimNumber += 1;
  run.status = after(run, "claim");
  run.owner = owner;
  run.resuming = true;
  run.dueAt = null;
  run.partNumber = 0;
  run.seenAt = Math.max(run.seenAt, now);
  run.startedAt ??= now;
}

/** Gives up the ticket. A requested pause wins: the run then waits for its resume alone. */
export function giveUp(
  run: ModelRun,
  command: "park" | "release",
  dueAt: DbTime | null,
  waitMask: number,
  historyBytes: number,
): void {
  run.status = after(run, command);
  run.dueAt = run.status === "paused" ? null : dueAt;
  run.owner = null;
  run.waitMask = waitMask;
  run.takeovers = 0;
  run.historyBytes = historyBytes;
}

export function end(run: ModelRun, status: InstanceState, now: DbTime): void {
  run.status = status;
  run.finishedAt = now;
  run.owner = null;
  run.dueAt = null;
}

/**
 * Records an event, numbered in the order of arrival. Its time is later than all that the owner has seen,
 * whatever the clock says.
 */
export function receive(
  run: ModelRun,
  { eventId, kind, type, payload }: Omit<RunMessage, "iid">,
  now: DbTime,
): { readonly woken: boolean; readonly number: number; readonly createdAt: DbTime } {
  const number = run.events.length + 1;
  const createdAt = Math.max(now, run.seenAt + 1);
  const delivery = { deliveredAt: null, consumedBy: null };
  run.events.push({ eventId, record: { number, kind, type, payload, createdAt, ...delivery } });
  const woken = run.status === "waiting" && masksMeet(run.waitMask, waitMaskOf([type]));
  if (woken) run.dueAt = Math.min(run.dueAt ?? now, now);
  return { woken, number, createdAt };
}

export function isLeased(run: ModelRun): boolean {
  return run.owner !== null;
}

export function pauseRequested(run: ModelRun): boolean {
  return run.status === "waitingForPause";
}

export function hasEvent(run: ModelRun, eventId: string): boolean {
  return run.events.some((event) => event.eventId === eventId);
}
function masksMeet(a: number, b: number): boolean {
  return (BigInt(a) & BigInt(b)) !== 0n;
}

export function runOf(instance: ModelInstance, runNumber: number): ModelRun | undefined {
  return [instance.run, ...instance.pastRuns].find((run) => run.runNumber === runNumber);
}

export function stepsOfRun(run: ModelRun | undefined): StepRecord[] {
  return (run?.steps ?? []).map(({ record }) => record).toSorted((a, b) => a.ord - b.ord);
}

export function eventsOfRun(run: ModelRun | undefined): EventRecord[] {
  return (run?.events ?? []).map(({ record }) => record);
}

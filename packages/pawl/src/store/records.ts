import type { InstanceStatusName } from "../model/status.js";

/** Milliseconds since the epoch, read from the database's clock. */
export type DbTime = number;

/** How callers name an instance. */
export type Target = { readonly workflow: string; readonly id: string };

/** Neither of them has a control character. */
export function targetKey({ workflow, id }: Target): string {
  return `${workflow}\n${id}`;
}

/** What the world sees of an instance: its current run. */
export type InstanceRecord = {
  readonly iid: string;
  readonly workflow: string;
  readonly id: string;
  readonly runNumber: number;
  readonly status: InstanceStatusName;
  readonly params: string | null;
  readonly output: string | null;
  readonly error: string | null;
  readonly createdAt: DbTime;
  readonly startedAt: DbTime | null;
  readonly finishedAt: DbTime | null;
  readonly origin: string | null;
};

/** What is in the database about how a run ended. */
export type Ended = Pick<InstanceRecord, "status" | "output" | "error">;

/** A run as history lists it: the current one, or one that a restart replaced. */
export type RunRecord = {
  readonly runNumber: number;
  readonly status: InstanceStatusName;
  readonly output: string | null;
  readonly error: string | null;
  readonly startedAt: DbTime | null;
  readonly finishedAt: DbTime | null;
};

export type StepStatus = "running" | "waiting" | "completed" | "errored";

/** A step with its result, or its final error. */
export function isSettled(status: string | undefined): boolean {
  return status === "completed" || status === "errored";
}

export type StepRecord = {
  /** The order in which the run's code first called its steps, from 1. Part of the key. */
  readonly ord: number;
  readonly name: string;
  /** 1-based count of calls with this name; always 1 unless repeated names are counted. */
  readonly count: number;
  /** "do", "sleep", "waitForEvent"; open, so that later kinds need no migration. */
  readonly type: string;
  readonly status: StepStatus;
  /** The settlement's number; null while unsettled. Replay delivers strictly by it. */
  readonly seq: number | null;
  /** How many settlements had been delivered when the step was called. */
  readonly calledAfter: number;
  readonly attempts: number;
  readonly startedAt: DbTime;
  readonly endedAt: DbTime | null;
  readonly wakeAt: DbTime | null;
  /** What the wait is for besides time: the event type. */
  readonly waitKey: string | null;
  readonly result: string | null;
  readonly error: string | null;
  /** The claim under which the row was last written. */
  readonly claimNumber: number;
};

/** What the next owner of a run needs of a step. */
export type LoadedStep = Pick<
  StepRecord,
  "ord" | "name" | "count" | "type" | "status" | "seq" | "calledAfter" | "result" | "error"
> & {
  /** How it stands; null if it is settled. */
  readonly open: Pick<StepRecord, "attempts" | "startedAt" | "wakeAt" | "waitKey"> | null;
};

export function asLoaded(step: StepRecord): LoadedStep {
  const { ord, name, count, type, status, seq, calledAfter, result } = step;
  const error = status === "completed" ? null : step.error;
  const { attempts, startedAt, wakeAt, waitKey } = step;
  const open = isSettled(status) ? null : { attempts, startedAt, wakeAt, waitKey };
  return { ord, name, count, type, status, seq, calledAfter, result, error, open };
}

/** Written only for steps that needed more than one attempt. */
export type AttemptRecord = {
  readonly ord: number;
  readonly n: number;
  readonly startedAt: DbTime;
  readonly endedAt: DbTime;
  readonly error: string | null;
};

export type EventRecord = {
  /** Position in the run's event order, from 1; FIFO goes by it, never by time. */
  readonly number: number;
  readonly kind: string;
  readonly type: string;
  readonly payload: string | null;
  readonly createdAt: DbTime;
  readonly deliveredAt: DbTime | null;
  /** `ord` of the step that consumed it. */
  readonly consumedBy: number | null;
};

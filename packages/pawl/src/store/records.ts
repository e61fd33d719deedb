import { isSettled, type StepStatus } from "../model/step-types.js";
import type { InstanceStatusName } from "../model/status.js";

/** Milliseconds since the epoch, read from the database's clock. */
export type DbTime = number;

/** An instance as callers see it, with its current run. */
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

/** How a run ended, as the database has it. */
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

export type StepRecord = {
  /** The order in which the run's code first called its steps, from 1. Part of the key. */
  readonly ord: number;
  readonly name: string;
  /** 1-based count of calls with this name; always 1 unless repeated names are counted. */
  readonly count: number;
  /** A `StepType`. The column is open, so that later kinds need no migration. */
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
  /** The event type for which the step waits, besides the time. */
  readonly waitKey: string | null;
  readonly result: string | null;
  readonly error: string | null;
  /** The claim under which the row was last written. */
  readonly claimNumber: number;
};

/** The part of a step that the next owner of its run needs. */
export type LoadedStep = Pick<
  StepRecord,
  "ord" | "name" | "count" | "type" | "status" | "seq" | "calledAfter" | "result" | "error"
> & {
  /** How an unsettled step stands; null for a settled one. */
  readonly open: Pick<StepRecord, "attempts" | "startedAt" | "wakeAt" | "waitKey"> | null;
};

export function asLoaded(step: StepRecord): LoadedStep {
  const { ord, name, count, type, status, seq, calledAfter, result } = step;
  const error = status === "completed" ? null : step.error;
  const { attempts, startedAt, wakeAt, waitKey } = step;
  const open = isSettled(status) ? null : { attempts, startedAt, wakeAt, waitKey };
  return { ord, name, count, type, status, seq, calledAfter, result, error, open };
}

/** An attempt of a step. Attempts are written only for steps that needed more than one. */
export type AttemptRecord = {
  readonly ord: number;
  readonly n: number;
  readonly startedAt: DbTime;
  readonly endedAt: DbTime;
  readonly error: string | null;
};

export type EventRecord = {
  /** The position in the run's order of events, from 1. Events are taken in this order, never by time. */
  readonly number: number;
  readonly kind: string;
  readonly type: string;
  readonly payload: string | null;
  readonly createdAt: DbTime;
  readonly deliveredAt: DbTime | null;
  /** The `ord` of the step that consumed the event. */
  readonly consumedBy: number | null;
};

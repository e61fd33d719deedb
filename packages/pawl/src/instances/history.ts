import type { InstanceStatus } from "../authoring/bindings.js";
import type { Codec } from "../model/codec.js";
import { describeError, type ErrorDescription } from "../model/error-codec.js";
import { requestedOptions, type Known } from "../model/known-options.js";
import { validInstanceId } from "../model/names.js";
import { quote } from "../model/quote.js";
import { stepTraits } from "../model/step-types.js";
import type { AttemptRecord, DbTime, EventRecord, StepRecord } from "../store/records.js";
import type { StepStatus } from "../model/step-types.js";
import type { HistoryRow as StoredEntry } from "../store/store.js";
import { dateOrNull, knownWorkflow } from "./list.js";
import type { InstancesContext } from "./ports.js";
import { instanceNotFound, invalidRequest, validCursor, validPageSize } from "./requests.js";
import { instanceStatusOf } from "./status.js";
import { decodeStored } from "./values.js";

export type HistoryOptions = {
  /** Which run to read; the current one by default. */
  readonly runNumber?: number | undefined;
  readonly pageSize?: number | undefined;
  readonly cursor?: string | undefined;
};

/** The steps and events of one run, in the order things happened. */
export type History = {
  readonly runNumber: number;
  /** The latest 100 runs, newest first. */
  readonly runs: HistoryRun[];
  readonly entries: HistoryEntry[];
  readonly cursor?: string;
  readonly hasNextPage: boolean;
};

export type HistoryRun = InstanceStatus & {
  readonly runNumber: number;
  readonly startedAt: Date | null;
  readonly finishedAt: Date | null;
};

export type HistoryEntry = HistoryStep | HistoryEvent;

export type HistoryStep = {
  readonly kind: "step";
  /** The order in which the code called its steps, from 1. */
  readonly ord: number;
  readonly name: string;
  /** Which call of this step name it was. It is 1 unless repeated step names are counted. */
  readonly count: number;
  /** A `StepType`; newer code may have written others. */
  readonly type: string;
  readonly status: StepStatus;
  readonly startedAt: Date;
  readonly endedAt: Date | null;
  readonly result?: unknown;
  readonly error?: ErrorDescription;
  /** Why the step waits. Absent when it does not. */
  readonly wait?: HistoryWait;
  /** The latest 100 attempts that ended, and the one that runs, whose `endedAt` is null. */
  readonly attempts: HistoryAttempt[];
};

export type HistoryWait = {
  /** "retry", "sleep" or "event". */
  readonly reason: string;
  readonly until: Date | null;
  readonly eventType?: string;
};

export type HistoryAttempt = {
  readonly n: number;
  readonly startedAt: Date;
  readonly endedAt: Date | null;
  readonly error?: ErrorDescription;
};

export type HistoryEvent = {
  readonly kind: "event";
  readonly type: string;
  readonly payload?: unknown;
  readonly createdAt: Date;
  readonly deliveredAt: Date | null;
  /** The `ord` of the step that took the event. */
  readonly consumedByStep: number | null;
};

const historyOptions: Known<HistoryOptions> = { runNumber: true, pageSize: true, cursor: true };
const MAX_RUN_NUMBER = 2 ** 31 - 1;

export async function history<Tx>(
  context: InstancesContext<Tx>,
  workflow: string,
  id: string,
  options: HistoryOptions = {},
): Promise<History> {
  const { store, codec, limits } = context;
  const target = { workflow, id };
  const { runNumber } = requestedOptions("options of history", options, historyOptions);
  knownWorkflow(context, workflow);
  validInstanceId(id, limits);
  if (runNumber !== undefined && !(Number.isInteger(runNumber) && runNumber >= 1)) {
    throw invalidRequest(`runNumber must be a whole number from 1, got ${quote(runNumber)}`);
  }
  const page = await store.history(target, {
    order: "oldest",
    pageSize: validPageSize(options.pageSize, limits),
    // A number that is too large for the column is as unknown as the largest one that fits.
    ...(runNumber === undefined ? {} : { runNumber: Math.min(runNumber, MAX_RUN_NUMBER) }),
    ...validCursor(options.cursor),
  });
  if (page === null) throw instanceNotFound(target);
  const { items, runs, ...rest } = page;
  const current = runs[0]?.runNumber ?? 0;
  if (page.runNumber > current) {
    throw invalidRequest(`runNumber must be at most ${current}, the current run`);
  }
  return {
    ...rest,
    runs: runs.map((run) => ({
      runNumber: run.runNumber,
      ...instanceStatusOf(run, codec),
      startedAt: dateOrNull(run.startedAt),
      finishedAt: dateOrNull(run.finishedAt),
    })),
    entries: inTime(items).map((item) => entryOf(item, codec)),
  };
}

/**
 * Corrects the order of times. A step begins once everything that its code had been given before is stored. Its start
 * is counted back from its end by the clock of the process, and may come out a millisecond too early.
 */
function inTime(items: readonly StoredEntry[]): StoredEntry[] {
  const endedAt = new Map<number, DbTime>();
  for (const item of items) {
    if (item.kind !== "step" || item.step.seq === null || item.step.endedAt === null) continue;
    endedAt.set(item.step.seq, item.step.endedAt);
  }
  return items.map((item) => {
    if (item.kind === "event") return item;
    const { startedAt, calledAfter } = item.step;
    const notBefore = endedAt.get(calledAfter) ?? startedAt;
    return { ...item, step: { ...item.step, startedAt: Math.max(startedAt, notBefore) } };
  });
}

function entryOf(stored: StoredEntry, codec: Codec): HistoryEntry {
  return stored.kind === "step"
    ? stepOf(stored.step, stored.attempts, codec)
    : eventOf(stored.event, codec);
}

function stepOf(step: StepRecord, attempts: readonly AttemptRecord[], codec: Codec): HistoryStep {
  return {
    kind: "step",
    ord: step.ord,
    name: step.name,
    count: step.count,
    type: step.type,
    status: step.status,
    startedAt: new Date(step.startedAt),
    endedAt: dateOrNull(step.endedAt),
    ...(step.result === null ? {} : { result: decodeStored(codec, step.result) }),
    ...errorOf(step),
    ...(step.status === "waiting" ? { wait: waitOf(step) } : {}),
    attempts: attemptsOf(step, attempts),
  };
}

export function waitOf({ type, wakeAt, waitKey }: StepRecord): HistoryWait {
  return {
    reason: stepTraits(type).waitReason,
    until: dateOrNull(wakeAt),
    ...(waitKey === null ? {} : { eventType: waitKey }),
  };
}

function attemptsOf(step: StepRecord, recorded: readonly AttemptRecord[]): HistoryAttempt[] {
  const ended = recorded.length > 0 ? recorded.map(attemptOf) : onlyAttemptOf(step);
  if (!stepTraits(step.type).hasAttempts || step.status !== "running") return ended;
  // The attempt began when the wait before it was over: at the latest of the known times before it.
  const times = [step.startedAt, step.wakeAt ?? 0, recorded.at(-1)?.endedAt ?? 0];
  const startedAt = new Date(Math.max(...times));
  return [...ended, { n: attemptNumber(step, recorded), startedAt, endedAt: null }];
}

/** Returns the number of the attempt that runs, or else of the last one that ended. */
export function attemptNumber(step: StepRecord, recorded: readonly AttemptRecord[]): number {
  if (!stepTraits(step.type).hasAttempts || step.status !== "running") return step.attempts;
  // The attempt of a step that has only one is counted when it begins. Any other is counted when it has ended, and then
  // has a record.
  const isCounted = step.attempts > 0 && recorded.at(-1)?.n !== step.attempts;
  return isCounted ? step.attempts : step.attempts + 1;
}

function attemptOf(attempt: AttemptRecord): HistoryAttempt {
  return {
    n: attempt.n,
    startedAt: new Date(attempt.startedAt),
    endedAt: new Date(attempt.endedAt),
    ...errorOf(attempt),
  };
}

/**
 * Makes up the one attempt of a step that needed no second. The store keeps no attempt row for it, since the step's own
 * row says everything.
 */
function onlyAttemptOf(step: StepRecord): HistoryAttempt[] {
  if (!stepTraits(step.type).hasAttempts || step.attempts !== 1 || step.status === "running")
    return [];
  return [
    {
      n: 1,
      startedAt: new Date(step.startedAt),
      endedAt: dateOrNull(step.endedAt),
      ...errorOf(step),
    },
  ];
}

export function errorOf({ error }: { readonly error: string | null }): {
  error?: ErrorDescription;
} {
  return error === null ? {} : { error: describeError(error) };
}

function eventOf(event: EventRecord, codec: Codec): HistoryEvent {
  return {
    kind: "event",
    type: event.type,
    ...(event.payload === null ? {} : { payload: decodeStored(codec, event.payload) }),
    createdAt: new Date(event.createdAt),
    deliveredAt: dateOrNull(event.deliveredAt),
    consumedByStep: event.consumedBy,
  };
}

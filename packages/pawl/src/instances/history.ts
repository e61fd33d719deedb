import type { InstanceStatus } from "../authoring/bindings.js";
import type { Codec } from "../model/codec.js";
import { describeError, type ErrorDescription } from "../model/error-codec.js";
import { validInstanceId } from "../model/names.js";
import { quote } from "../model/quote.js";
import type { AttemptRecord, EventRecord, StepRecord, StepStatus } from "../store/records.js";
import type { HistoryEntry as StoredEntry } from "../store/store.js";
import { dateOrNull, knownWorkflow } from "./list.js";
import type { InstancesContext } from "./ports.js";
import { instanceNotFound, invalidRequest, validCursor, validPageSize } from "./requests.js";
import { statusOf } from "./status.js";
import { decodeStored } from "./values.js";

export type HistoryOptions = {
  /** Default: the current run. */
  readonly runNumber?: number | undefined;
  readonly pageSize?: number | undefined;
  readonly cursor?: string | undefined;
};

/** The steps and events of one run, in the order things happened. */
export type History = {
  readonly runNumber: number;
  /** Newest first, the latest 100. */
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
  /** 1 unless repeated step names are counted. */
  readonly count: number;
  /** "do", "sleep" or "waitForEvent". */
  readonly type: string;
  readonly status: StepStatus;
  readonly startedAt: Date;
  readonly endedAt: Date | null;
  readonly result?: unknown;
  readonly error?: ErrorDescription;
  /** Why it waits, while it does. */
  readonly wait?: HistoryWait;
  /** The latest 100. */
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
  /** `ord` of the step that took it. */
  readonly consumedByStep: number | null;
};

const MAX_RUN_NUMBER = 2 ** 31 - 1;

export async function history<Tx>(
  context: InstancesContext<Tx>,
  workflow: string,
  id: string,
  options: HistoryOptions = {},
): Promise<History> {
  const { store, codec, limits } = context;
  const target = { workflow, id };
  const { runNumber } = options;
  knownWorkflow(context, workflow);
  validInstanceId(id, limits);
  if (runNumber !== undefined && !(Number.isInteger(runNumber) && runNumber >= 1)) {
    throw invalidRequest(`runNumber must be a whole number from 1, got ${quote(runNumber)}`);
  }
  const page = await store.history(target, {
    order: "oldest",
    pageSize: validPageSize(options.pageSize, limits),
    // Of a larger one than the column holds, nothing is known either.
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
      ...statusOf(run, codec),
      startedAt: dateOrNull(run.startedAt),
      finishedAt: dateOrNull(run.finishedAt),
    })),
    entries: items.map((item) => entryOf(item, codec)),
  };
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
    attempts: attempts.length > 0 ? attempts.map(attemptOf) : onlyAttemptOf(step),
  };
}

const waitReasons: ReadonlyMap<string, string> = new Map([
  ["do", "retry"],
  ["sleep", "sleep"],
  ["waitForEvent", "event"],
]);

export function waitOf({ type, wakeAt, waitKey }: StepRecord): HistoryWait {
  return {
    reason: waitReasons.get(type) ?? type,
    until: dateOrNull(wakeAt),
    ...(waitKey === null ? {} : { eventType: waitKey }),
  };
}

function attemptOf(attempt: AttemptRecord): HistoryAttempt {
  return {
    n: attempt.n,
    startedAt: new Date(attempt.startedAt),
    endedAt: new Date(attempt.endedAt),
    ...errorOf(attempt),
  };
}

/** The store keeps no row for a step that needed one attempt: its own row says it all. */
function onlyAttemptOf(step: StepRecord): HistoryAttempt[] {
  if (step.type !== "do" || step.attempts !== 1) return [];
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

import { decodeCursor, encodeCursor } from "../../store/cursor.js";
import type {
  AttemptRecord,
  DbTime,
  EventRecord,
  InstanceRecord,
  RunRecord,
  StepRecord,
} from "../../store/records.js";
import type { HistoryRow, HistoryPage, HistoryQuery, ListQuery, Page } from "../../store/store.js";
import { eventsOfRun, runOf, stepsOfRun, type ModelInstance, type ModelRun } from "./run.js";

const RUNS_LISTED = 100;

export function listed(
  instances: readonly ModelInstance[],
  { workflow, status, order, pageSize, cursor }: ListQuery,
): Page<InstanceRecord> {
  const about = JSON.stringify(["list", workflow, status ?? null, order]);
  const oldest = instances
    .filter((instance) => instance.workflow === workflow)
    .map(toRecord)
    .toSorted(byCreation);
  const all = order === "oldest" ? oldest : oldest.toReversed();
  let rest = all.filter((record) => status === undefined || record.status === status);
  if (cursor !== undefined) {
    const [createdAt, iid] = decodeCursor(cursor, about, ["integer", "string"]);
    const sign = order === "oldest" ? 1 : -1;
    const last = { createdAt: createdAt as number, iid: iid as string };
    rest = rest.filter((record) => sign * byCreation(record, last) > 0);
  }
  return pageOf(rest, pageSize, (last) => encodeCursor(about, [last.createdAt, last.iid]));
}

export function historyOf(instance: ModelInstance, query: HistoryQuery): HistoryPage {
  const { runNumber = instance.run.runNumber, order, pageSize, cursor } = query;
  const runs = [instance.run, ...instance.pastRuns].slice(0, RUNS_LISTED).map(toRunRecord);
  const run = runOf(instance, runNumber);

  const about = JSON.stringify(["history", instance.workflow, instance.id, runNumber, order]);
  const from = cursor === undefined ? [] : decodeCursor(cursor, about, ["integer", "integer"]);
  const [step = null, event = null] = from as number[];
  const isBeyond = (position: number, last: number | null): boolean =>
    last === null || (order === "oldest" ? position > last : position < last);
  const steps = stepsOfRun(run).filter(({ ord }) => isBeyond(ord, step));
  const events = eventsOfRun(run).filter(({ number }) => isBeyond(number, event));
  if (order === "newest") for (const entries of [steps, events]) entries.reverse();

  const entries = merged(steps, events, order, run?.attempts ?? []);
  const page = pageOf(entries, pageSize, () => {
    const shown = entries.slice(0, pageSize);
    const lastStep = shown.findLast((entry) => entry.kind === "step")?.step.ord;
    const lastEvent = shown.findLast((entry) => entry.kind === "event")?.event.number;
    const start = order === "oldest" ? 0 : Number.MAX_SAFE_INTEGER;
    return encodeCursor(about, [lastStep ?? step ?? start, lastEvent ?? event ?? start]);
  });
  return { ...page, runNumber, runs };
}

function toRunRecord(run: ModelRun): RunRecord {
  const { runNumber, status, output, error, startedAt, finishedAt } = run;
  return { runNumber, status, output, error, startedAt, finishedAt };
}

export function toRecord({
  iid,
  workflow,
  id,
  params,
  origin,
  createdAt,
  run,
}: ModelInstance): InstanceRecord {
  return { iid, workflow, id, params, origin, createdAt, ...toRunRecord(run) };
}

type Created = { readonly createdAt: DbTime; readonly iid: string };

function byCreation(a: Created, b: Created): number {
  if (a.createdAt !== b.createdAt) return a.createdAt - b.createdAt;
  return a.iid === b.iid ? 0 : a.iid < b.iid ? -1 : 1;
}

/** Steps in call order and events in arrival order, merged by time; at equal times the step came first. */
function merged(
  steps: readonly StepRecord[],
  events: readonly EventRecord[],
  order: HistoryQuery["order"],
  attempts: readonly AttemptRecord[],
): HistoryRow[] {
  const entries: HistoryRow[] = [];
  const [restOfSteps, restOfEvents] = [[...steps], [...events]];
  for (;;) {
    const [step] = restOfSteps;
    const [event] = restOfEvents;
    if (step === undefined && event === undefined) return entries;
    const stepIsEarlier = step && event && step.startedAt <= event.createdAt;
    const takeStep = step && (event === undefined || stepIsEarlier === (order === "oldest"));
    if (takeStep) {
      const own = attempts.filter(({ ord }) => ord === step.ord).toSorted((a, b) => a.n - b.n);
      entries.push({ kind: "step", step, attempts: own });
      restOfSteps.shift();
    } else if (event !== undefined) {
      entries.push({ kind: "event", event });
      restOfEvents.shift();
    }
  }
}

function pageOf<T>(rest: readonly T[], pageSize: number, cursorAt: (last: T) => string): Page<T> {
  const items = rest.slice(0, pageSize);
  const last = items.at(-1);
  return last !== undefined && rest.length > pageSize
    ? { items, cursor: cursorAt(last), hasNextPage: true }
    : { items, hasNextPage: false };
}

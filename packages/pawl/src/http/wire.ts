import type { History, HistoryEntry, HistoryRun, HistoryWait } from "../instances/history.js";
import type { InstanceList, ListedInstance } from "../instances/list.js";
import { wireOutcome } from "../instances/wire-forms.js";
import { toTagged } from "../model/codec.js";
import type { historyAnswer, listAnswer } from "./answer-schemas.js";
import type { TypeOf } from "../model/schema.js";

// Turns answers into what the contract describes: times become text, and users' values are tagged where JSON cannot
// hold them.

export function wireList({ instances, ...page }: InstanceList): TypeOf<typeof listAnswer> {
  return { instances: instances.map(listed), ...page };
}

function listed({ details, ...of }: ListedInstance) {
  const { status, outputTruncated, ...rest } = details;
  return {
    id: of.id,
    runNumber: of.runNumber,
    createdAt: of.createdAt.toISOString(),
    startedAt: iso(of.startedAt),
    finishedAt: iso(of.finishedAt),
    details: {
      status,
      ...wireOutcome(rest),
      ...(outputTruncated === undefined ? {} : { outputTruncated }),
    },
  };
}

export function wireHistory({ runs, entries, ...page }: History): TypeOf<typeof historyAnswer> {
  return { ...page, runs: runs.map(runOf), entries: entries.map(entryOf) };
}

function runOf({ runNumber, status, startedAt, finishedAt, ...rest }: HistoryRun) {
  return {
    runNumber,
    status,
    ...wireOutcome(rest),
    startedAt: iso(startedAt),
    finishedAt: iso(finishedAt),
  };
}

function entryOf(entry: HistoryEntry) {
  if (entry.kind === "event") {
    const { payload: _, ...event } = entry;
    return {
      ...event,
      ...("payload" in entry ? { payload: toTagged(entry.payload, "payload") } : {}),
      createdAt: entry.createdAt.toISOString(),
      deliveredAt: iso(entry.deliveredAt),
    };
  }
  const { result: _, wait, attempts, ...step } = entry;
  return {
    ...step,
    startedAt: step.startedAt.toISOString(),
    endedAt: iso(step.endedAt),
    ...("result" in entry ? { result: toTagged(entry.result, "result") } : {}),
    ...(wait === undefined ? {} : { wait: wireWait(wait) }),
    attempts: attempts.map((attempt) => ({
      ...attempt,
      startedAt: attempt.startedAt.toISOString(),
      endedAt: iso(attempt.endedAt),
    })),
  };
}

export function wireWait({ until, ...wait }: HistoryWait) {
  return { ...wait, until: iso(until) };
}

export function iso(date: Date | null): string | null {
  return date === null ? null : date.toISOString();
}

import type { historyAnswer, listAnswer } from "../http/answer-schemas.js";
import type { TypeOf } from "../model/schema.js";
import type { History, HistoryEntry } from "../instances/history.js";
import type { InstanceList } from "../instances/list.js";
import { outcomeFrom } from "../instances/wire-forms.js";
import { fromTagged } from "../model/codec.js";

// Turns answers into what the in-process engine gives: times become dates, and users' values what they were.

type WireEntry = TypeOf<typeof historyAnswer>["entries"][number];

export function listFrom({ instances, ...page }: TypeOf<typeof listAnswer>): InstanceList {
  return {
    ...page,
    instances: instances.map(({ details: { status, outputTruncated, ...rest }, ...of }) => ({
      ...of,
      createdAt: new Date(of.createdAt),
      startedAt: dateOrNull(of.startedAt),
      finishedAt: dateOrNull(of.finishedAt),
      details: {
        status,
        ...outcomeFrom(rest),
        ...(outputTruncated === undefined ? {} : { outputTruncated }),
      },
    })),
  };
}

export function historyFrom(answer: TypeOf<typeof historyAnswer>): History {
  return {
    ...answer,
    runs: answer.runs.map(({ runNumber, status, startedAt, finishedAt, ...rest }) => ({
      runNumber,
      status,
      ...outcomeFrom(rest),
      startedAt: dateOrNull(startedAt),
      finishedAt: dateOrNull(finishedAt),
    })),
    entries: answer.entries.map(entryFrom),
  };
}

function entryFrom(entry: WireEntry): HistoryEntry {
  if (entry.kind === "event") {
    const { payload, ...event } = entry;
    return {
      ...event,
      createdAt: new Date(event.createdAt),
      deliveredAt: dateOrNull(event.deliveredAt),
      ...("payload" in entry ? { payload: fromTagged(payload) } : {}),
    };
  }
  const { result, wait, attempts, ...step } = entry;
  return {
    ...step,
    startedAt: new Date(step.startedAt),
    endedAt: dateOrNull(step.endedAt),
    ...("result" in entry ? { result: fromTagged(result) } : {}),
    ...(wait === undefined ? {} : { wait: { ...wait, until: dateOrNull(wait.until) } }),
    attempts: attempts.map((attempt) => ({
      ...attempt,
      startedAt: new Date(attempt.startedAt),
      endedAt: dateOrNull(attempt.endedAt),
    })),
  };
}

function dateOrNull(text: string | null): Date | null {
  return text === null ? null : new Date(text);
}

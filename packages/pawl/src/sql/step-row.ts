import { type StepRecord } from "../store/records.js";
import { isSettled } from "../model/step-types.js";
import type { Part } from "../store/part.js";
import { wakeTime } from "../model/wake.js";
import type { ColumnDefinition, ColumnType } from "./dialect.js";
import { int, intOrNull, text, textOrNull } from "./sql.js";
import type { Value } from "./statement.js";

/**
 * The columns of a step's row, in the order in which a commit writes them. Everything else that names them all is
 * derived from this list or checked against it by the compiler. A column of a later migration must not reach the first
 * one: the golden files of the schema would change.
 */
const list = [
  ["iid", { type: "key", bytes: 64 }],
  ["run_no", { type: "int" }],
  ["ord", { type: "int" }],
  ["seq", { type: "int", nullable: true }],
  ["called_after", { type: "int" }],
  ["claim_no", { type: "big" }],
  ["part_no", { type: "int" }],
  ["name", { type: "key", bytes: 1024 }],
  ["count", { type: "int" }],
  ["type", { type: "word" }],
  ["status", { type: "word" }],
  ["attempts", { type: "int" }],
  ["started_at", { type: "big" }],
  ["ended_at", { type: "big", nullable: true }],
  ["wake_at", { type: "big", nullable: true }],
  ["wait_key", { type: "key", bytes: 400, nullable: true }],
  ["result", { type: "body", nullable: true }],
  ["error", { type: "body", nullable: true }],
] as const satisfies ColumnList;

type ColumnList = readonly (readonly [name: string, definition: ColumnDefinition])[];
export type StepColumn = (typeof list)[number][0];

/** For the schema. */
export const stepDefinitions = Object.fromEntries(list) as Record<StepColumn, ColumnDefinition>;
export const stepColumnNames: readonly StepColumn[] = list.map(([name]) => name);

export const stepKey = ["iid", "run_no", "ord"] as const satisfies readonly StepColumn[];
/** The columns that a row keeps from its first write: its identity, and its start. */
const kept: readonly StepColumn[] = [
  ...stepKey,
  "called_after",
  "name",
  "count",
  "type",
  "started_at",
];
/** The columns that a later write of the same step changes. */
export const stepChanges = stepColumnNames.filter((name) => !kept.includes(name));

/**
 * The columns that hold a time. Only the database knows the time of the write, so a step sends what it needs beside
 * that time (`sent`), and the statement computes the column (`value`).
 */
const timed = {
  started_at: { sent: ["took"], value: (now: string) => `${now} - s.took` },
  ended_at: {
    sent: [],
    value: (now: string) => `CASE WHEN s.status IN ('completed', 'errored') THEN ${now} END`,
  },
  wake_at: {
    sent: ["wake_at", "wake_in"],
    value: (now: string) => `COALESCE(s.wake_at, ${now} + s.wake_in)`,
  },
} as const;
type Timed = keyof typeof timed;
type SentColumn = Exclude<StepColumn, Timed> | (typeof timed)[Timed]["sent"][number];

const isTimed = (name: StepColumn): name is Timed => name in timed;

/** The columns of `:steps`, the row set in which steps travel into a statement. */
export const sentSteps = Object.fromEntries(
  list.flatMap(([name, { type }]): [string, ColumnType][] =>
    isTimed(name) ? timed[name].sent.map((sent) => [sent, "big"]) : [[name, type]],
  ),
) as Record<SentColumn, ColumnType>;

/** After SELECT: a row of the row set `s` as the values of a step's row, written at `now`. */
export function stepValues(now: string): string {
  return stepColumnNames
    .map((name) => (isTimed(name) ? timed[name].value(now) : `s.${name}`))
    .join(", ");
}

/** The rows of `:steps`. There is no loop over the columns and no spread, since this runs for every step. */
export function stepRows(parts: readonly Part[]): Record<SentColumn, Value>[] {
  return parts.flatMap((part) =>
    part.steps.map((step) => {
      const { wake } = step;
      return {
        iid: part.iid,
        run_no: part.runNumber,
        ord: step.ord,
        seq: step.seq,
        called_after: step.calledAfter,
        claim_no: part.claimNumber,
        part_no: part.partNumber,
        name: step.name,
        count: step.count,
        type: step.type,
        status: step.status,
        attempts: step.attempts,
        took: step.tookMs,
        wake_at: wake !== null && "at" in wake ? wake.at : null,
        wake_in: wake !== null && "inMs" in wake ? wake.inMs : null,
        wait_key: step.waitKey,
        result: step.result,
        error: step.error,
      };
    }),
  );
}

type Cell<Definition extends ColumnDefinition> =
  | (Definition["type"] extends "int" | "big" ? number : string)
  | (Definition extends { nullable: true } ? null : never);

type Tuple<Listed extends ColumnList> = { readonly [At in keyof Listed]: Cell<Listed[At][1]> };

/** A value for each column, in the order of the list. */
type StepTuple = Tuple<typeof list>;

/** New steps as the values of their rows, for a store that binds each row by itself. */
export function stepTuples(parts: readonly Part[], at: number): StepTuple[] {
  return parts.flatMap((part) =>
    part.steps.map((step): StepTuple => [
      part.iid,
      part.runNumber,
      step.ord,
      step.seq,
      step.calledAfter,
      part.claimNumber,
      part.partNumber,
      step.name,
      step.count,
      step.type,
      step.status,
      step.attempts,
      at - step.tookMs,
      isSettled(step.status) ? at : null,
      step.wake === null ? null : wakeTime(step.wake, at),
      step.waitKey,
      step.result,
      step.error,
    ]),
  );
}

/**
 * Whether no step has a row yet, as far as its run knows. A step has one all the same if an earlier part was written
 * and its answer got lost.
 */
export function areNew(parts: readonly Part[]): boolean {
  return parts.every(({ steps }) => steps.every(({ isNew }) => isNew === true));
}

/** The column that each field of a record is read from. */
export const stepFields = {
  ord: "ord",
  name: "name",
  count: "count",
  type: "type",
  status: "status",
  seq: "seq",
  calledAfter: "called_after",
  attempts: "attempts",
  startedAt: "started_at",
  endedAt: "ended_at",
  wakeAt: "wake_at",
  waitKey: "wait_key",
  result: "result",
  error: "error",
  claimNumber: "claim_no",
} as const satisfies Record<keyof StepRecord, StepColumn>;

type ReadColumn = (typeof stepFields)[keyof StepRecord];

/** After SELECT: the columns that `toStep` reads, of a step called `s`. */
export const stepSelection = Object.values(stepFields)
  .map((column) => `s.${column}`)
  .join(", ");

/** After SELECT, in a UNION with steps: other values in the columns that `toStep` reads, and NULL in the rest. */
export function inStepColumns(values: Partial<Record<ReadColumn, string>>): string {
  return Object.values(stepFields)
    .map((column) => values[column] ?? "NULL")
    .join(", ");
}

export function toStep(row: Readonly<Record<ReadColumn, unknown>>): StepRecord {
  return {
    ord: int(row, "ord"),
    name: text(row, "name"),
    count: int(row, "count"),
    type: text(row, "type"),
    status: text(row, "status") as StepRecord["status"],
    seq: intOrNull(row, "seq"),
    calledAfter: int(row, "called_after"),
    attempts: int(row, "attempts"),
    startedAt: int(row, "started_at"),
    endedAt: intOrNull(row, "ended_at"),
    wakeAt: intOrNull(row, "wake_at"),
    waitKey: textOrNull(row, "wait_key"),
    result: textOrNull(row, "result"),
    error: textOrNull(row, "error"),
    claimNumber: int(row, "claim_no"),
  };
}

import { describe, expect, test } from "vitest";
import type { Part, StepWrite } from "../store/part.js";
import { mysqlDialect, mysqlLiteral } from "./dialects/mysql.js";
import { Sql } from "./sql.js";
import {
  sentSteps,
  stepColumnNames,
  stepDefinitions,
  stepRows,
  stepTuples,
  toStep,
} from "./step-row.js";
import { bulkSteps } from "./verbs/commit/bulk.js";

const AT = 1_000;

/** No two fields have the same value, so that one in another's place shows. */
const step: StepWrite = {
  ord: 3,
  name: "name",
  count: 4,
  type: "type",
  status: "errored",
  seq: 5,
  calledAfter: 6,
  attempts: 7,
  tookMs: 8,
  wake: { inMs: 9 },
  waitKey: "key",
  result: "result",
  error: "error",
  isNew: true,
};
const part: Part = {
  iid: "iid",
  runNumber: 10,
  claimNumber: 11,
  partNumber: 12,
  seenEvents: 0,
  steps: [step],
  attempts: [],
  consumed: [],
  spawns: [],
  deliveries: [],
  next: { kind: "continue" },
};
const row = {
  iid: "iid",
  run_no: 10,
  ord: 3,
  seq: 5,
  called_after: 6,
  claim_no: 11,
  part_no: 12,
  name: "name",
  count: 4,
  type: "type",
  status: "errored",
  attempts: 7,
  started_at: AT - 8,
  ended_at: AT,
  wake_at: AT + 9,
  wait_key: "key",
  result: "result",
  error: "error",
};

describe("the row of a step", () => {
  test("has a definition for each of its columns", () => {
    expect(Object.keys(stepDefinitions)).toEqual(stepColumnNames);
    expect(stepColumnNames).toEqual(Object.keys(row));
  });

  test("is bound with each value under its column", () => {
    const [tuple = []] = stepTuples([part], AT);
    expect(Object.fromEntries(stepColumnNames.map((name, n) => [name, tuple[n]]))).toEqual(row);
  });

  test("is written as text with each value under its column", () => {
    const sql = new Sql(mysqlDialect("pawl_"), undefined);
    const { value } = bulkSteps(sql, mysqlLiteral, "")([part]).write(AT).next();
    if (value === undefined) throw new Error("nothing was written");
    const names = /\((.*)\) VALUES/.exec(value.statement.text)?.[1]?.split(", ") ?? [];
    const values = value.list?.slice(1, -1).split(",") ?? [];
    const written = Object.entries(row).map(([name, cell]) => [name, mysqlLiteral(cell)]);
    expect(names.toSorted()).toEqual(stepColumnNames.toSorted());
    expect(Object.fromEntries(names.map((name, n) => [name, values[n]]))).toEqual(
      Object.fromEntries(written),
    );
  });

  test("travels in a row set with each value under its column", () => {
    const { started_at: _started, ended_at: _ended, ...untimed } = row;
    const [sent = {}] = stepRows([part]);
    expect(Object.keys(sentSteps)).toEqual(Object.keys(sent));
    expect(sent).toEqual({ ...untimed, took: 8, wake_at: null, wake_in: 9 });
  });

  test("is read back into the fields it was written from", () => {
    const { tookMs: _took, wake: _wake, isNew: _isNew, ...fields } = step;
    const times = { startedAt: AT - 8, endedAt: AT, wakeAt: AT + 9 };
    expect(toStep(row)).toEqual({ ...fields, ...times, claimNumber: 11 });
  });
});

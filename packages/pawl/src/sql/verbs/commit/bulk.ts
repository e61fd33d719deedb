import { isSettled } from "../../../model/step-types.js";
import type { Part, StepWrite } from "../../../store/part.js";
import { wakeTime } from "../../../model/wake.js";
import type { Sql } from "../../sql.js";
import type { Row, Script, Statement, Value } from "../../statement.js";
import type { StepColumn } from "../../step-row.js";

/*
 * MySQL's way to write many rows is text. For 200 steps, JSON_TABLE needs 1.2 µs for each of 3,600 cells, which is more
 * than the insert of the cell. As parameters of a prepared statement, the cells cost the driver 10 ms on MySQL.
 */

type Literal = (value: Value) => string;

/** The length of one statement in UTF-16 units of up to four bytes, well below MariaDB's default packet of 16 MiB. */
const CHUNK_LENGTH = 2 * 1024 * 1024;

/** Runs a statement whose text has an `IN (?)`, and calls `meanwhile` while it is on its way. */
export function byKeys(
  sql: Sql,
  literal: Literal,
  name: string,
  text: string,
): (keys: readonly string[], meanwhile: () => void) => Script<Row[]> {
  const statement = sql.bulk(name, text);
  return function* (keys, meanwhile) {
    return yield { ...statement.with(), list: keys.map(literal).join(","), meanwhile };
  };
}

export interface StepInsert {
  /** Does what can be done before the time is known, which on MariaDB is a twentieth of a commit. */
  readonly prepare: () => void;
  write(at: number): Script<void>;
}

/** Inserts steps with VALUES. Columns that are null in all rows are left out, for plain steps a tenth of the insert. */
export function bulkSteps(
  sql: Sql,
  literal: Literal,
  onConflict: string,
): (parts: readonly Part[]) => StepInsert {
  const byColumns = new Map<string, Statement>();
  const statementFor = (columns: string): Statement => {
    const known = byColumns.get(columns);
    if (known !== undefined) return known;
    const text = `${sql.dialect.insertInto("step")} (${columns}) VALUES ? ${onConflict}`;
    const statement = sql.bulk("commit.steps", text);
    byColumns.set(columns, statement);
    return statement;
  };
  return (parts) => {
    let draft: Draft | null = null;
    const prepare = (): Draft => (draft ??= draftOf(parts, literal));
    return {
      prepare,
      *write(at) {
        const { columns, rows, hasEnds, hasWakes } = prepare();
        const statement = statementFor(columns);
        let list = "";
        for (const { head, step } of rows) {
          if (list !== "" && list.length + head.length > CHUNK_LENGTH) {
            yield { ...statement.with(), list };
            list = "";
          }
          list += `${list === "" ? "" : ","}(${head},${at - step.tookMs}`;
          if (hasEnds) list += isSettled(step.status) ? `,${at}` : ",NULL";
          if (hasWakes) list += `,${literal(step.wake && wakeTime(step.wake, at))}`;
          list += ")";
        }
        if (list !== "") yield { ...statement.with(), list };
      },
    };
  };
}

/** The rows, as far as they do not depend on the time. */
type Draft = {
  readonly columns: string;
  readonly rows: readonly { readonly head: string; readonly step: StepWrite }[];
  readonly hasEnds: boolean;
  readonly hasWakes: boolean;
};

/** Columns that are left out where no step fills them, and the field that does. */
const nullable = { seq: "seq", wait_key: "waitKey", result: "result", error: "error" } as const;

/** Where each column stands in the text of a row, in that order. */
const places = {
  iid: "head",
  run_no: "head",
  claim_no: "head",
  part_no: "head",
  ord: "head",
  called_after: "head",
  name: "head",
  count: "head",
  type: "head",
  status: "head",
  attempts: "head",
  ...nullable,
  started_at: "time",
  ended_at: "time",
  wake_at: "time",
} as const satisfies Record<StepColumn, "head" | "time" | keyof StepWrite>;

const headColumns = Object.entries(places).flatMap(([column, at]) => (at === "head" ? column : []));

function draftOf(parts: readonly Part[], literal: Literal): Draft {
  const has = (test: (step: StepWrite) => boolean): boolean =>
    parts.some(({ steps }) => steps.some(test));
  const hasEnds = has(({ status }) => isSettled(status));
  const hasWakes = has(({ wake }) => wake !== null);
  const filled = Object.entries(nullable).filter(([, key]) => has((step) => step[key] !== null));
  const rows = parts.flatMap((part) => {
    const run = `${literal(part.iid)},${part.runNumber},${part.claimNumber},${part.partNumber}`;
    return part.steps.map((step) => {
      let head = `${run},${step.ord},${step.calledAfter},${literal(step.name)},${step.count},${literal(step.type)},${literal(step.status)},${step.attempts}`;
      for (const [, key] of filled) head += `,${literal(step[key])}`;
      return { head, step };
    });
  });
  const columns = [
    ...headColumns,
    ...filled.map(([column]) => column),
    "started_at",
    ...(hasEnds ? ["ended_at"] : []),
    ...(hasWakes ? ["wake_at"] : []),
  ].join(", ");
  return { columns, rows, hasEnds, hasWakes };
}

import type { InstanceStatusName } from "../../model/status.js";
import { decodeCursor, encodeCursor } from "../../store/cursor.js";
import type { AttemptRecord, RunRecord, StepRecord } from "../../store/records.js";
import type { Target } from "../../model/target.js";
import type { HistoryRow, HistoryPage, HistoryQuery } from "../../store/store.js";
import { int, intOrNull, text, textOrNull, type Sql, type Verb } from "../sql.js";
import type { Row, Script } from "../statement.js";
import { stepSelection, toStep } from "../step-row.js";
import { toEvent } from "./events/reading.js";
import { statusOfRow } from "./status.js";

const RUNS_LISTED = 100;
const ATTEMPTS_LISTED = 100;

type HistoryVerb = Verb<[target: Target, query: HistoryQuery], HistoryPage | null>;
type Order = HistoryQuery["order"];
/** Where a page starts in each of the two sequences. */
type HistoryPosition = { readonly step: number; readonly event: number };

/**
 * Reads a page of a run's history. Steps come in the order of their calls and events in the order of their arrival,
 * each straight from its primary key; the page merges the two by time. The cursor holds a position in both.
 */
export function historyVerb(sql: Sql): HistoryVerb {
  const { instance, pastRuns, read } = pageStatements(sql);
  const attemptsOf = attemptReader(sql);
  return {
    transaction: false,
    *script(target, query): Script<HistoryPage | null> {
      const [row] = yield instance.with({ workflow: target.workflow, id: target.id });
      if (row === undefined) return null;
      const iid = text(row, "iid");
      const past = yield pastRuns.with({ iid, limit: RUNS_LISTED - 1 });
      const runs = [
        toRun(row, statusOfRow(row)),
        ...past.map((run) => toRun(run, text(run, "status") as InstanceStatusName)),
      ];
      const runNumber = query.runNumber ?? int(row, "run_no");

      const about = JSON.stringify(["history", target.workflow, target.id, runNumber, query.order]);
      const from = startOf(query, about);
      const limit = query.pageSize + 1;
      const of = { iid, run_no: runNumber, limit };
      const stepRows = yield read[query.order].steps.with({ ...of, after: from.step });
      const eventRows = yield read[query.order].events.with({ ...of, after: from.event });
      const merged = merge(stepRows, eventRows, query.order);
      const page = merged.slice(0, query.pageSize);

      const called = page.filter(({ kind }) => kind === "step").map((entry) => toStep(entry.row));
      const log = yield* attemptsOf(iid, runNumber, called);
      const items = page.map(({ kind, row: entry }): HistoryRow => {
        if (kind === "event") return { kind, event: toEvent(entry) };
        const step = toStep(entry);
        return { kind, step, attempts: log.get(step.ord) ?? [] };
      });
      const end = endOf(page, from);
      return merged.length > page.length
        ? {
            runNumber,
            runs,
            items,
            hasNextPage: true,
            cursor: encodeCursor(about, [end.step, end.event]),
          }
        : { runNumber, runs, items, hasNextPage: false };
    },
  };
}

function pageStatements(sql: Sql) {
  const instance = sql.prepare(
    "history.instance",
    `SELECT i.iid, i.run_no, i.status, i.output, i.error, COALESCE(i.started_at, t.started_at) AS started_at,
       i.finished_at, t.state, t.pause_requested
     FROM ${sql.table("instance")} AS i LEFT JOIN ${sql.table("ticket")} AS t ON t.tid == i.iid
     WHERE i.workflow = :workflow AND i.id = :id`,
  );
  const pastRuns = sql.prepare(
    "history.runs",
    `SELECT run_no, status, output, error, started_at, finished_at FROM ${sql.table("past_run")}
     WHERE iid = :iid ORDER BY run_no DESC LIMIT :limit`,
  );
  const keyset = (column: string, order: Order): string =>
    order === "oldest"
      ? `${column} > :after ORDER BY ${column} ASC LIMIT :limit`
      : `${column} < :after ORDER BY ${column} DESC LIMIT :limit`;
  const steps = (order: Order) =>
    sql.prepare(
      `history.steps.${order}`,
      `SELECT ${stepSelection} FROM ${sql.table("step")} AS s
       WHERE s.iid = :iid AND s.run_no = :run_no AND ${keyset("s.ord", order)}`,
    );
  const events = (order: Order) =>
    sql.prepare(
      `history.events.${order}`,
      `SELECT e.number, e.kind, e.type, e.payload, e.created_at, e.delivered_at, e.consumed_by
       FROM ${sql.table("event")} AS e
       WHERE e.iid = :iid AND e.run_no = :run_no AND ${keyset("e.number", order)}`,
    );
  const read = {
    oldest: { steps: steps("oldest"), events: events("oldest") },
    newest: { steps: steps("newest"), events: events("newest") },
  };
  return { instance, pastRuns, read };
}

type AttemptReader = (
  iid: string,
  runNumber: number,
  of: readonly StepRecord[],
) => Script<Map<number, AttemptRecord[]>>;

/** Reads the latest attempts of the steps that needed more than one, or still do. */
function attemptReader(sql: Sql): AttemptReader {
  const attempts = sql.prepare(
    "history.attempts",
    `SELECT a.ord, a.n, a.started_at, a.ended_at, a.error
     FROM ${sql.rows("steps", "s", { ord: "int", listed_after: "int" })} ${sql.dialect.drivenJoin} ${sql.table("attempt")} AS a
       ON a.iid = :iid AND a.run_no = :run_no AND a.ord = s.ord AND a.n > s.listed_after`,
  );
  return function* (iid, runNumber, of) {
    const log = new Map<number, AttemptRecord[]>();
    const retried = of.filter((step) => step.attempts > 1 || step.status !== "completed");
    if (retried.length === 0) return log;
    const rows = yield attempts.with({
      iid,
      run_no: runNumber,
      steps: retried.map((step) => ({
        ord: step.ord,
        listed_after: Math.max(0, step.attempts - ATTEMPTS_LISTED),
      })),
    });
    for (const attempt of rows.map(toAttempt).toSorted((a, b) => a.n - b.n)) {
      log.set(attempt.ord, [...(log.get(attempt.ord) ?? []), attempt]);
    }
    return log;
  };
}

/** Where the next page starts: after the last entry of each kind. */
function endOf(page: readonly Entry[], from: HistoryPosition): HistoryPosition {
  const lastStep = page.findLast(({ kind }) => kind === "step");
  const lastEvent = page.findLast(({ kind }) => kind === "event");
  return {
    step: lastStep === undefined ? from.step : int(lastStep.row, "ord"),
    event: lastEvent === undefined ? from.event : int(lastEvent.row, "number"),
  };
}

type Entry = { readonly kind: "step" | "event"; readonly row: Row };

function merge(steps: readonly Row[], events: readonly Row[], order: Order): Entry[] {
  const merged: Entry[] = [];
  let s = 0;
  let e = 0;
  while (s < steps.length || e < events.length) {
    const step = steps[s];
    const event = events[e];
    if (event === undefined || (step !== undefined && stepFirst(step, event, order))) {
      merged.push({ kind: "step", row: step as Row });
      s += 1;
    } else {
      merged.push({ kind: "event", row: event });
      e += 1;
    }
  }
  return merged;
}

/** At equal times the step comes first: a wait is registered before an event answers it. */
function stepFirst(step: Row, event: Row, order: Order): boolean {
  const [called, came] = [int(step, "started_at"), int(event, "created_at")];
  return order === "oldest" ? called <= came : called > came;
}

function startOf(query: HistoryQuery, about: string): HistoryPosition {
  if (query.cursor === undefined) {
    return query.order === "oldest"
      ? { step: -1, event: -1 }
      : { step: 2_147_483_647, event: Number.MAX_SAFE_INTEGER };
  }
  const [step, event] = decodeCursor(query.cursor, about, ["int32", "integer"]);
  return { step: step as number, event: event as number };
}

function toRun(row: Row, status: InstanceStatusName): RunRecord {
  return {
    runNumber: int(row, "run_no"),
    status,
    output: textOrNull(row, "output"),
    error: textOrNull(row, "error"),
    startedAt: intOrNull(row, "started_at"),
    finishedAt: intOrNull(row, "finished_at"),
  };
}

function toAttempt(row: Row): AttemptRecord {
  return {
    ord: int(row, "ord"),
    n: int(row, "n"),
    startedAt: int(row, "started_at"),
    endedAt: int(row, "ended_at"),
    error: textOrNull(row, "error"),
  };
}

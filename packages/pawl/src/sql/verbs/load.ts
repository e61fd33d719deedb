import {
  asLoaded,
  type EventRecord,
  type LoadedStep,
  type StepRecord,
} from "../../store/records.js";
import type { Claimed, LoadedRun, LoadRequest } from "../../store/store.js";
import { int, text, textOrNull, type Sql, type Verb } from "../sql.js";
import type { Row, Script } from "../statement.js";
import { inStepColumns, stepFields, stepSelection, toStep } from "../step-row.js";
import { stateWord } from "../ticket.js";
import { ORPHANED, RESUMING, toClaimed } from "./claim.js";
import { toEvent } from "./events/reading.js";

/** How much history one statement may bring. A bigger history is loaded alone, in pages. */
const PAGE_BYTES = 4 * 1024 * 1024;

export type Load = Verb<[runs: readonly LoadRequest[]], LoadedRun[]>;

/** How an event travels in the columns of a step; `sort` reads it back. */
const eventInStep = {
  ord: "e.number",
  name: "e.kind",
  type: "e.type",
  started_at: "e.created_at",
  ended_at: "e.delivered_at",
  result: "e.payload",
} as const;

export function loadVerb(sql: Sql): Load {
  const { everything, page, last } = loadStatements(sql);
  const sizesOf = measurer(sql);
  return {
    transaction: false,
    empty: [everything.with({ runs: [] })],
    *script(requests): Script<LoadedRun[]> {
      const found = new Map<string, FoundRows>(
        requests.map(({ iid }) => [iid, { params: null, steps: [], events: [] }]),
      );
      const sizes = yield* sizesOf(requests);
      for (const group of grouped(requests, sizes)) {
        const [only] = group;
        const size = only === undefined ? undefined : sizes.get(only.iid);
        if (
          only !== undefined &&
          group.length === 1 &&
          size !== undefined &&
          size.bytes > PAGE_BYTES
        ) {
          yield* loadInPages(only, size, found);
        } else {
          sort(yield everything.with({ runs: group.map(toRow) }), found);
        }
      }
      return requests.map(({ iid }) => {
        const { params, steps: rows, events } = found.get(iid) as FoundRows;
        rows.sort((a, b) => a.ord - b.ord);
        events.sort((a, b) => a.number - b.number);
        return { iid, params, steps: rows, events };
      });
    },
  };

  function* loadInPages(
    request: LoadRequest,
    size: Size,
    found: Map<string, FoundRows>,
  ): Script<void> {
    const limit = Math.max(1, Math.floor((size.steps * PAGE_BYTES) / size.bytes));
    let after = 0;
    for (;;) {
      const rows = yield page.with({ runs: [toRow(request)], after, limit });
      sort(rows, found);
      const end = rows.at(-1);
      if (end === undefined || rows.length < limit) break;
      after = int(end, "ord");
    }
    sort(yield last.with({ runs: [toRow(request)] }), found);
  }
}

function loadStatements(sql: Sql) {
  const run = { iid: "key", run_no: "int" } as const;
  const { drivenJoin } = sql.dialect;
  const steps = (from: string): string =>
    `SELECT 'step' AS entry, s.iid AS iid, ${stepSelection} FROM ${from} ${drivenJoin} ${sql.table("step")} AS s
       ON s.iid == r.iid AND s.run_no = r.run_no`;
  // Events and params travel in the columns of a step, so that one statement brings everything.
  const rest = (from: string): string =>
    `SELECT 'event', e.iid, ${inStepColumns(eventInStep)} FROM ${from} ${drivenJoin} ${sql.table("event")} AS e
       ON e.iid == r.iid AND e.run_no = r.run_no AND e.consumed_by IS NULL
     UNION ALL
     SELECT 'run', i.iid, ${inStepColumns({ ord: "0", result: "i.params" })} FROM ${from} ${drivenJoin} ${sql.table("instance")} AS i ON i.iid == r.iid`;
  const allSteps = sql.dialect.jsonAggregates ? stepsAsJson(sql) : steps;
  const everything = sql.prepare(
    "load",
    `${allSteps(sql.rows("runs", "r", run))} UNION ALL ${rest(sql.rows("runs", "r", run))}`,
  );
  const page = sql.prepare(
    "load.page",
    `${steps(sql.rows("runs", "r", run))} WHERE s.ord > :after ORDER BY s.ord LIMIT :limit`,
  );
  const last = sql.prepare(
    "load.last",
    `${steps(sql.rows("runs", "r", run))} AND s.ord < 0 UNION ALL ${rest(sql.rows("runs", "r", run))}`,
  );
  return { everything, page, last };
}

/** The sizes that the claims told, counted anew where a crash may have left them wrong. */
function measurer(sql: Sql): (requests: readonly LoadRequest[]) => Script<Map<string, Size>> {
  const measure = sql.prepare(
    "load.measure",
    `SELECT r.iid AS iid, COUNT(*) AS steps,
       SUM(COALESCE(${sql.dialect.byteLength("s.result")}, 0) + COALESCE(${sql.dialect.byteLength("s.error")}, 0)) AS bytes
     FROM ${sql.rows("runs", "r", { iid: "key", run_no: "int" })} ${sql.dialect.drivenJoin} ${sql.table("step")} AS s ON s.iid == r.iid AND s.run_no = r.run_no
     GROUP BY r.iid`,
  );
  return function* sizesOf(requests) {
    const sizes = new Map<string, Size>(
      requests.map(({ iid, historyBytes }) => [iid, { bytes: historyBytes, steps: 0 }]),
    );
    const unsure = requests.filter(
      ({ takenOver, historyBytes }) => takenOver || historyBytes > PAGE_BYTES,
    );
    const measured = unsure.length === 0 ? [] : yield measure.with({ runs: unsure.map(toRow) });
    for (const row of measured) {
      sizes.set(text(row, "iid"), { bytes: int(row, "bytes"), steps: int(row, "steps") });
    }
    return sizes;
  };
}

/** The fields of a completed step that replay needs. */
const replayed = ["ord", "name", "count", "type", "seq", "calledAfter", "result"] as const;

/**
 * Reads all steps of a run as one row of JSON: the completed ones as an array for each column, the others as objects.
 * As rows, 1,000 steps cost the driver 15 ms more in a new process and 5 ms more in a warm one; with arrays of all
 * columns they cost 3 ms more.
 */
function stepsAsJson(sql: Sql): (from: string) => string {
  const arrays = replayed.map(
    (key) => `'${key}', array_agg(s.${stepFields[key]}) FILTER (WHERE s.status = 'completed')`,
  );
  const fields = Object.entries(stepFields).map(([key, column]) => `'${key}', s.${column}`);
  const others = `json_agg(json_build_object(${fields.join(", ")})) FILTER (WHERE s.status <> 'completed')`;
  const cells = Object.values(stepFields).map(
    (column) => `${column === "result" ? "x.steps" : "NULL"} AS ${column}`,
  );
  return (from) =>
    `SELECT 'steps' AS entry, r.iid AS iid, ${cells.join(", ")} FROM ${from} CROSS JOIN LATERAL (
       SELECT json_build_object(${arrays.join(", ")}, 'others', ${others})::text AS steps
       FROM ${sql.table("step")} AS s WHERE s.iid == r.iid AND s.run_no = r.run_no) AS x`;
}

type Size = { readonly bytes: number; readonly steps: number };
type FoundRows = { params: string | null; steps: LoadedStep[]; events: EventRecord[] };

function grouped(
  requests: readonly LoadRequest[],
  sizes: ReadonlyMap<string, Size>,
): LoadRequest[][] {
  const groups: LoadRequest[][] = [];
  let room = 0;
  for (const request of requests) {
    const bytes = sizes.get(request.iid)?.bytes ?? 0;
    const group = groups.at(-1);
    if (group === undefined || bytes > room) {
      groups.push([request]);
      room = PAGE_BYTES - bytes;
    } else {
      group.push(request);
      room -= bytes;
    }
  }
  return groups;
}

function toRow(request: LoadRequest): { iid: string; run_no: number } {
  return { iid: request.iid, run_no: request.runNumber };
}

function sort(rows: readonly Row[], found: ReadonlyMap<string, FoundRows>): void {
  for (const row of rows) {
    const run = found.get(text(row, "iid"));
    if (run === undefined) continue;
    switch (text(row, "entry")) {
      case "step":
        run.steps.push(asLoaded(toStep(row)));
        break;
      case "steps":
        run.steps = fromJson(text(row, "result"));
        break;
      case "event":
        run.events.push(
          toEvent({
            number: row["ord"],
            kind: row["name"],
            type: row["type"],
            payload: row["result"],
            created_at: row["started_at"],
            delivered_at: row["ended_at"],
          }),
        );
        break;
      default:
        run.params = textOrNull(row, "result");
    }
  }
}

type Columns = { readonly [Key in (typeof replayed)[number]]: readonly LoadedStep[Key][] };
type StepsAsJson = (Columns | { readonly ord: null }) & { readonly others: StepRecord[] | null };

function fromJson(json: string): LoadedStep[] {
  const { others, ...completed } = JSON.parse(json) as StepsAsJson;
  return asSteps(completed).concat((others ?? []).map(asLoaded));
}

function asSteps(all: Columns | { readonly ord: null }): LoadedStep[] {
  if (all.ord === null) return [];
  return all.ord.map((ord, n) => ({
    ord,
    name: at(all.name, n),
    count: at(all.count, n),
    type: at(all.type, n),
    status: "completed",
    seq: at(all.seq, n),
    calledAfter: at(all.calledAfter, n),
    result: at(all.result, n),
    error: null,
    open: null,
  }));
}

/** The arrays of one row are equally long. */
function at<T>(array: readonly T[], n: number): T {
  return array[n] as T;
}

type Adopt = Verb<[runner: string, iids: readonly string[]], Claimed[]>;

/**
 * Reads tickets that the runner owns without knowing it, because the reply to its claim was lost: their code has not
 * run. Takeovers that no part has told of since belong to this claim, so the steps that the dead owner may have begun
 * are still to be charged.
 */
export function adoptVerb(sql: Sql): Adopt {
  const read = sql.prepare(
    "adopt",
    `SELECT t.tid, t.run_no, t.claim_no, t.takeovers, t.event_count, t.history_bytes,
       CASE WHEN t.takeovers > 0 AND t.part_no = 0 THEN ${ORPHANED} ELSE ${RESUMING} END AS precedence,
       i.workflow, i.id, i.created_at, i.params, :now AS now
     FROM ${sql.rows("runs", "r", { iid: "key" })} ${sql.dialect.drivenJoin} ${sql.table("ticket")} AS t ON t.tid == r.iid
       ${sql.dialect.drivenJoin} ${sql.table("instance")} AS i ON i.iid == t.tid
     WHERE t.owner = :runner AND t.state = ${stateWord.leased}`,
  );
  return {
    transaction: false,
    *script(runner, iids): Script<Claimed[]> {
      const rows = yield read.with({ runner, runs: iids.map((iid) => ({ iid })) });
      return rows.map((row) => toClaimed(row, int(row, "now")));
    },
  };
}

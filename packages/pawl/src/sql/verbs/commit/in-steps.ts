import type { Part, PartAnswer } from "../../../store/part.js";
import type { StatementByStatement } from "../../dialect.js";
import { int, intOrNull, text, type Sql } from "../../sql.js";
import type { Row, RowValues, Script } from "../../statement.js";
import {
  areNew,
  sentSteps,
  stepChanges,
  stepColumnNames,
  stepKey,
  stepRows,
  stepTuples,
  stepValues,
} from "../../step-row.js";
import { becomesSql, birthOf, endTurnSet, stateWord, writesTicketSql } from "../../ticket.js";
import { firstOfEachId } from "../create.js";
import type { EventReader } from "../events/reading.js";
import { hookBit, hookedColumn, poster, posterByIid, postId } from "../hooks/posting.js";
import { answerParts, type MissingParts } from "./answer.js";
import { bulkSteps, byKeys, type StepInsert } from "./bulk.js";
import type { Commit } from "./index.js";
import { columns, isProgress, rowsOf, type CommitRows } from "./rows.js";

/** Everywhere else: a script that locks, decides and writes, in one transaction. */
export function commitInSteps(
  sql: Sql,
  dialect: StatementByStatement,
  events: EventReader,
  missing: MissingParts,
  newInboxId: () => string,
): Commit {
  const { fence, readHooked } = fencingStatements(sql);
  const { insertAttempts, consumeEvents, deliver } = writingStatements(sql);
  const lockPlain = plainLocker(sql, dialect);
  const insertSteps = stepInserter(sql, dialect);
  const spawn = spawner(sql);
  const endTurns = turnEnder(sql);
  return {
    transaction: true,
    answersLocked: true,
    *script(parts): Script<PartAnswer[]> {
      if (parts.every((part) => isProgress(part) && part.consumed.length === 0)) {
        const steps = insertSteps(parts);
        const at = yield* lockPlain(parts, steps.prepare);
        if (at !== null) {
          yield* steps.write(at);
          return yield* answerParts(parts, [], at, events, missing);
        }
      }
      const all = rowsOf(parts, newInboxId);
      const locked = yield fence.with({ parts: all.parts });
      const byIid = new Map(locked.map((row) => [text(row, "iid"), row]));
      const fresh = parts.filter(({ iid }) => byIid.get(iid)?.["state"] === "leased");
      if (fresh.length > 0) {
        const at = int(locked[0] as Row, "now");
        const rows = fresh.length === parts.length ? all : rowsOf(fresh, newInboxId);
        yield* insertSteps(fresh).write(at);
        if (rows.attempts.length > 0) yield insertAttempts.with({ attempts: rows.attempts, at });
        if (rows.consumed.length > 0) yield consumeEvents.with({ consumed: rows.consumed, at });
        const isCause =
          rows.spawns.length > 0 ||
          fresh.some(({ next: { kind } }) => kind === "complete" || kind === "fail");
        const [hooked] = isCause && readHooked !== null ? yield readHooked.with() : locked;
        if (rows.spawns.length > 0) yield* spawn(rows.spawns, at, hooked);
        if (rows.deliveries.length > 0) yield deliver.with({ deliveries: rows.deliveries });
        yield* endTurns(fresh, rows.parts, byIid, at, hooked);
      }
      return yield* answerParts(parts, locked, null, events, missing);
    },
  };
}

function fencingStatements(sql: Sql) {
  // Where a statement runs once for each row, the hooks are read apart: otherwise a part that ends costs 4 µs more.
  const readHooked =
    sql.dialect.rowsStyle === "each"
      ? sql.prepare("commit.hooked", `SELECT ${hookedColumn(sql)}`)
      : null;
  const fence = sql.prepare(
    "commit.fence",
    `SELECT p.iid, t.state, t.pause_requested, t.event_count, t.part_no, t.started_at, :now AS now, ${becomesSql} AS becomes
       ${readHooked === null ? `, ${hookedColumn(sql)}` : ""}
     FROM ${sql.rows("parts", "p", columns.parts)} ${sql.dialect.lookUp("ticket", "t")}
       ON t.tid == p.iid AND t.claim_no = p.claim_no
     ${sql.dialect.lockSkippingOf("t")}`,
  );
  return { fence, readHooked };
}

function writingStatements(sql: Sql) {
  const insertAttempts = sql.prepare(
    "commit.attempts",
    `${sql.dialect.insertInto("attempt")} (iid, run_no, ord, n, started_at, ended_at, error)
     SELECT a.iid, a.run_no, a.ord, a.n, :at - a.took, :at, a.error
     FROM ${sql.rows("attempts", "a", columns.attempts)} ${sql.dialect.onConflictKeep(["iid"])}`,
  );
  const consumeEvents = sql.prepare(
    "commit.consumed",
    sql.dialect.updateFrom({
      table: "event",
      alias: "e",
      rows: sql.rows("consumed", "c", columns.consumed),
      on: "e.iid == c.iid AND e.run_no = c.run_no AND e.number = c.number AND e.consumed_by IS NULL",
      set: { consumed_by: "c.ord", delivered_at: ":at" },
    }),
  );
  const deliver = sql.prepare(
    "commit.deliveries",
    `${sql.dialect.insertInto("inbox")} (id, iid, run_no, event_id, kind, type, payload)
     SELECT d.id, d.iid, d.run_no, d.event_id, d.kind, d.type, d.payload
     FROM ${sql.rows("deliveries", "d", columns.deliveries)} ${sql.dialect.onConflictKeep(["id"])}`,
  );
  return { insertAttempts, consumeEvents, deliver };
}

/**
 * Locks the tickets of parts that are progress. Answers the time if all of them are leased under their part's claim
 * number and have nothing to tell, which is the rule; otherwise null, and the long way follows.
 */
type LockPlain = (parts: readonly Part[], meanwhile: () => void) => Script<number | null>;

/**
 * Answers one row instead of one per ticket. Claim numbers and event counters only grow, so none is below the number
 * that its part knows: their sums are equal only if all of them are.
 */
function plainLocker(sql: Sql, dialect: StatementByStatement): LockPlain {
  const sums = Object.entries({ claims: "t.claim_no", events: "t.event_count" }).map(
    ([name, column]) => `CAST(COALESCE(SUM(${column}), 0) AS ${dialect.integerType}) AS ${name}`,
  );
  const query = `SELECT COUNT(*) AS mine, ${sums.join(", ")},
    COUNT(CASE WHEN t.state <> ${stateWord.leased} OR t.pause_requested = 1 THEN 1 END) AS odd, :now AS now
    FROM ${dialect.fromKeys("ticket", "t", "tid")}`;
  const lock =
    dialect.literal === null
      ? byJsonKeys(sql, "commit.plain", query)
      : byKeys(sql, dialect.literal, "commit.plain", query);
  return function* lockPlain(parts, meanwhile) {
    const keys = parts.map(({ iid }) => iid);
    const [row] = (yield* lock(keys, meanwhile)) as [Row];
    const isPlain =
      int(row, "mine") === parts.length &&
      int(row, "odd") === 0 &&
      int(row, "claims") === sum(parts, ({ claimNumber }) => claimNumber) &&
      int(row, "events") === sum(parts, ({ seenEvents }) => seenEvents);
    return isPlain ? int(row, "now") : null;
  };
}

/** Sends keys as one JSON array, which takes a third of the time of whole parts as JSON. */
function byJsonKeys(sql: Sql, name: string, query: string): ReturnType<typeof byKeys> {
  const statement = sql.prepare(name, query);
  return function* (keys) {
    return yield statement.with({ keys: JSON.stringify(keys) });
  };
}

function sum(parts: readonly Part[], of: (part: Part) => number): number {
  return parts.reduce((total, part) => total + of(part), 0);
}

function stepInserter(
  sql: Sql,
  { literal }: StatementByStatement,
): (parts: readonly Part[]) => StepInsert {
  const conflict = sql.dialect.onConflictSetIfNewer("step", stepKey, stepChanges);
  if (literal !== null) return bulkSteps(sql, literal, conflict);
  const into = `${sql.dialect.insertInto("step")} (${stepColumnNames.join(", ")})`;
  const placeholders = stepColumnNames.map(() => "?").join(", ");
  // Plain values, bound as they are, take a tenth of a step's time less than a row set.
  const insert = sql.prepare("commit.steps.new", `${into} VALUES (${placeholders})`);
  const upsert = sql.prepare(
    "commit.steps",
    `${into} SELECT ${stepValues(":at")} FROM ${sql.rows("steps", "s", sentSteps)} ${conflict}`,
  );
  return (parts) => ({
    prepare: () => {},
    *write(at) {
      if (areNew(parts)) {
        try {
          yield { statement: insert, executions: stepTuples(parts, at) };
          return;
        } catch (error) {
          if (sql.dialect.classify(error) !== "duplicate") throw error;
        }
      }
      const steps = stepRows(parts);
      if (steps.length > 0) yield upsert.with({ steps, at });
    },
  });
}

type Spawner = (rows: CommitRows["spawns"], at: number, hooked: Row | undefined) => Script<void>;

/** Creates the instances that parts spawn, as far as their ids are free. */
function spawner(sql: Sql): Spawner {
  const spawned = sql.rows("spawns", "s", columns.spawns);
  const birth = birthOf("create", ":at");
  const existing = sql.prepare(
    "commit.spawns.existing",
    `SELECT s.iid FROM ${spawned} ${sql.dialect.drivenJoin}
       ${sql.table("instance")} AS i ON i.workflow == s.workflow AND i.id = s.id`,
  );
  const insertInstances = sql.prepare(
    "commit.spawns.instances",
    `INSERT INTO ${sql.table("instance")} (iid, workflow, id, queue, run_no, status, params, origin, created_at)
     SELECT s.iid, s.workflow, s.id, s.queue, 1, 'live', s.params, s.origin, :at FROM ${spawned}`,
  );
  const insertTickets = sql.prepare(
    "commit.spawns.tickets",
    `INSERT INTO ${sql.table("ticket")} (tid, queue, handler, ${birth.columns})
     SELECT s.iid, s.queue, s.workflow, ${birth.values} FROM ${spawned}`,
  );
  const post = poster(sql, "commit.spawned");
  return function* spawn(rows, at, hooked) {
    const taken = new Set((yield existing.with({ spawns: rows })).map((row) => text(row, "iid")));
    const spawns = firstOfEachId(rows.filter((row) => !taken.has(String(row["iid"]))));
    if (spawns.length === 0) return;
    yield insertInstances.with({ spawns, at });
    yield insertTickets.with({ spawns, at });
    if ((int(hooked as Row, "hooked") & hookBit.onWorkflowEnqueued) === 0) return;
    const posted = spawns.map(({ iid, workflow, id }) => ({
      id: postId.create(String(iid)),
      workflow: String(workflow),
      instanceId: String(id),
      runNumber: 1,
      reason: "create" as const,
    }));
    yield post("onWorkflowEnqueued", posted, at);
  };
}

type TurnEnder = (
  parts: readonly Part[],
  rows: CommitRows["parts"],
  tickets: ReadonlyMap<string, Row>,
  at: number,
  hooked: Row | undefined,
) => Script<void>;

/** Writes the tickets of parts that have to do with them, and ends the runs of parts that finish. */
function turnEnder(sql: Sql): TurnEnder {
  const { writeTickets, finish, removeTickets } = endingStatements(sql);
  const post = posterByIid(sql, "commit.finished");
  return function* endTurns(parts, rows, tickets, at, hooked) {
    const written: RowValues[] = [];
    const finished: RowValues[] = [];
    for (const [n, { iid, next, takeovers }] of parts.entries()) {
      if (next.kind === "continue" && takeovers === undefined) continue;
      const locked = tickets.get(iid) as Row;
      const becomes = text(locked, "becomes");
      const row = { ...rows[n], becomes, started_at: intOrNull(locked, "started_at") };
      (becomes === "finished" ? finished : written).push(row);
    }
    if (written.length > 0) yield writeTickets.with({ parts: written, at });
    if (finished.length === 0) return;
    yield finish.with({ parts: finished, at });
    yield removeTickets.with({ parts: finished });
    if ((int(hooked as Row, "hooked") & hookBit.onInstanceFinished) === 0) return;
    const posted = parts.flatMap(({ iid, runNumber, next }) => {
      if (next.kind !== "complete" && next.kind !== "fail") return [];
      const reason = next.kind === "complete" ? ("complete" as const) : ("errored" as const);
      return [{ id: postId.finish(iid, runNumber), iid, runNumber, reason }];
    });
    yield post("onInstanceFinished", posted, at);
  };
}

function endingStatements(sql: Sql) {
  const ended = sql.rows("parts", "p", { ...columns.parts, becomes: "word", started_at: "big" });
  const writeTickets = sql.prepare(
    "commit.tickets",
    sql.dialect.updateFrom({
      table: "ticket",
      alias: "t",
      rows: ended,
      on: `t.tid == p.iid AND ${writesTicketSql}`,
      set: endTurnSet(":at"),
    }),
  );
  const finish = sql.prepare(
    "commit.finish",
    sql.dialect.updateFrom({
      table: "instance",
      alias: "i",
      rows: ended,
      on: "i.iid == p.iid",
      set: {
        status: "CASE WHEN p.next = 'complete' THEN 'complete' ELSE 'errored' END",
        output: "p.output",
        error: "p.error",
        started_at: "p.started_at",
        finished_at: ":at",
        claim_no: "p.claim_no",
      },
    }),
  );
  const removeTickets = sql.prepare(
    "commit.remove",
    sql.dialect.deleteMatching({
      table: "ticket",
      key: "tid",
      rows: sql.rows("parts", "p", { iid: "key" }),
      matches: "p.iid",
    }),
  );
  return { writeTickets, finish, removeTickets };
}

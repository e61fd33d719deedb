import type { Part, PartAnswer } from "../../../store/part.js";
import { int, type Sql } from "../../sql.js";
import type { Row, Script, Statement, Values } from "../../statement.js";
import {
  areNew,
  sentSteps,
  stepChanges,
  stepColumnNames,
  stepKey,
  stepRows,
  stepValues,
} from "../../step-row.js";
import {
  assignments,
  becomesSql,
  birthOf,
  endTurnSet,
  stateWord,
  writesTicketSql,
} from "../../ticket.js";
import type { EventReader } from "../events/reading.js";
import { isRegistered, postSelected } from "../hooks/posting.js";
import { isAmong } from "../is-among.js";
import { answerParts, type MissingParts } from "./answer.js";
import type { Commit } from "./index.js";
import { columns, consumedRows, isProgress, progressColumns, progressRow, rowsOf } from "./rows.js";

/** PostgreSQL: fence and writes in one statement, one round trip. */
export function commitInOneStatement(
  sql: Sql,
  events: EventReader,
  missing: MissingParts,
  newInboxId: () => string,
): Commit {
  const { plain, any, full } = statements(sql);

  /** Writes parts whose steps are all new without looking for their rows, as long as no row is found to be there. */
  function* written(
    kind: keyof typeof plain,
    parts: readonly Part[],
    values: Values,
  ): Script<Row[]> {
    if (areNew(parts)) {
      try {
        return yield plain[kind].with(values);
      } catch (error) {
        if (sql.dialect.classify(error) !== "duplicate") throw error;
      }
    }
    return yield any[kind].with(values);
  }

  return {
    transaction: false,
    answersLocked: true,
    // The statement that a run resumed by an event sends first.
    empty: [any.events.with({ parts: [], steps: [], parts_sent: 0, consumed: [] })],
    *script(parts): Script<PartAnswer[]> {
      if (parts.every(isProgress)) {
        const consumed = consumedRows(parts);
        const rows = yield* written(consumed.length === 0 ? "progress" : "events", parts, {
          parts: parts.map(progressRow),
          steps: stepRows(parts),
          parts_sent: parts.length,
          consumed,
        });
        const [first] = rows as [Row];
        const odd = rows.filter((row) => row["iid"] !== null);
        // Unless some tickets were not locked, only those that are not simply leased have a row.
        const at = int(first, "count") === parts.length ? int(first, "now") : null;
        return yield* answerParts(parts, odd, at, events, missing);
      }
      const rows = { ...rowsOf(parts, newInboxId), steps: stepRows(parts) };
      const { attempts, spawns, deliveries } = rows;
      const extra = attempts.length + spawns.length + deliveries.length > 0;
      const locked = extra ? yield full.with(rows) : yield* written("turn", parts, rows);
      return yield* answerParts(parts, locked, null, events, missing);
    },
  };
}

/**
 * From the hot path up: results; results and events, planned in a third of the time that a turn's end takes; turns that
 * end; everything. Where all steps are new they go without ON CONFLICT, which looks before it inserts and logs twice:
 * 7 % of a step's time.
 */
function statements(sql: Sql) {
  const plainSteps = insertSteps(sql, "");
  const conflict = sql.dialect.onConflictSetIfNewer("step", stepKey, stepChanges);
  const anySteps = insertSteps(sql, conflict);
  const consumed = consumeEvents(sql);
  const turn = [...endTurns(sql), consumed];
  return {
    plain: {
      progress: progressWith(sql, "progress.new", [plainSteps]),
      events: progressWith(sql, "events.new", [plainSteps, consumed]),
      turn: turnWith(sql, "turn.new", [plainSteps, ...turn]),
    },
    any: {
      progress: progressWith(sql, "progress", [anySteps]),
      events: progressWith(sql, "events", [anySteps, consumed]),
      turn: turnWith(sql, "turn", [anySteps, ...turn]),
    },
    full: turnWith(sql, "full", [anySteps, ...turn, ...extras(sql)]),
  };
}

/** A commit of parts that are progress. It answers one row if all tickets are simply leased. */
function progressWith(sql: Sql, name: string, writes: readonly string[]): Statement {
  return sql.prepare(
    `commit.${name}`,
    `WITH locked AS MATERIALIZED (
       SELECT t.tid AS iid, t.state, t.pause_requested, t.event_count,
         (t.state <> ${stateWord.leased} OR t.pause_requested = 1 OR t.event_count > p.seen_events) AS odd
       FROM ${sql.rows("parts", "p", progressColumns)} JOIN ${sql.table("ticket")} AS t ON t.tid == p.iid AND t.claim_no = p.claim_no
       ${sql.dialect.lockSkippingOf("t")}),
     clock AS MATERIALIZED (SELECT :now AS now, count FROM (SELECT count(*) FROM locked) AS after_the_locks),
     fresh AS MATERIALIZED (SELECT iid FROM locked WHERE state = ${stateWord.leased}),
     ${writes.join(",\n")}
     SELECT clock.now, clock.count, l.iid, l.state, ${stateWord.leased} AS becomes, l.pause_requested, l.event_count
     FROM clock LEFT JOIN locked AS l ON l.odd OR clock.count < :parts_sent`,
  );
}

/** A commit of any parts. It answers a row for each ticket that it locked. */
function turnWith(sql: Sql, name: string, writes: readonly string[]): Statement {
  return sql.prepare(
    `commit.${name}`,
    `WITH part AS MATERIALIZED (SELECT * FROM ${sql.rows("parts", "p", columns.parts)}),
     locked AS MATERIALIZED (
       SELECT p.*, t.state, t.pause_requested, t.event_count, t.started_at, ${becomesSql} AS becomes
       FROM part AS p JOIN ${sql.table("ticket")} AS t ON t.tid == p.iid AND t.claim_no = p.claim_no
       ${sql.dialect.lockSkippingOf("t")}),
     clock AS MATERIALIZED (SELECT :now AS now FROM (SELECT count(*) FROM locked) AS after_the_locks),
     fresh AS MATERIALIZED (SELECT * FROM locked WHERE state = ${stateWord.leased}),
     ${writes.join(",\n")}
     SELECT l.iid, l.state, l.becomes, l.pause_requested, l.event_count, clock.now FROM locked AS l CROSS JOIN clock`,
  );
}

/** The condition that a part's ticket is leased under its claim number. */
const isFresh = (iid: string): string => isAmong(iid, "SELECT iid FROM fresh");

function insertSteps(sql: Sql, conflict: string): string {
  return `wrote_steps AS (
    ${sql.dialect.insertInto("step")} (${stepColumnNames.join(", ")})
    SELECT ${stepValues("clock.now")} FROM ${sql.rows("steps", "s", sentSteps)} CROSS JOIN clock
    WHERE ${isFresh("s.iid")} ${conflict})`;
}

function consumeEvents(sql: Sql): string {
  return `consumed_events AS (
    UPDATE ${sql.table("event")} AS e SET consumed_by = c.ord, delivered_at = clock.now
    FROM ${sql.rows("consumed", "c", columns.consumed)} CROSS JOIN clock
    WHERE ${isFresh("c.iid")} AND e.iid == c.iid AND e.run_no = c.run_no AND e.number = c.number AND e.consumed_by IS NULL)`;
}

function endTurns(sql: Sql): string[] {
  const ticket = sql.table("ticket");
  return [
    `wrote_tickets AS (
       UPDATE ${ticket} AS t SET ${assignments(endTurnSet("clock.now"))}
       FROM fresh AS p, clock WHERE t.tid == p.iid AND t.claim_no = p.claim_no AND ${writesTicketSql})`,
    `finished AS (
       UPDATE ${sql.table("instance")} AS i SET
         status = CASE WHEN p.next = 'complete' THEN 'complete' ELSE 'errored' END,
         output = p.output, error = p.error, started_at = p.started_at, finished_at = clock.now, claim_no = p.claim_no
       FROM fresh AS p, clock WHERE i.iid == p.iid AND p.becomes = 'finished'
       RETURNING i.iid, i.workflow, i.id, i.run_no, i.status)`,
    `told_finished AS (${postSelected(
      sql,
      `SELECT 'finish.' || f.run_no || '.' || f.iid, 'onInstanceFinished', f.workflow, f.id, f.run_no, f.status,
         clock.now, clock.now
       FROM finished AS f CROSS JOIN clock WHERE ${isRegistered(sql, "onInstanceFinished")}`,
    )})`,
    `removed AS (DELETE FROM ${ticket} AS t USING fresh AS p
       WHERE t.tid == p.iid AND t.claim_no = p.claim_no AND p.becomes = 'finished')`,
  ];
}

/** Attempts, spawned instances and messages to other runs. */
function extras(sql: Sql): string[] {
  const birth = birthOf("create", "clock.now");
  const isBorn = isAmong("s.iid", "SELECT iid FROM born");
  return [
    `wrote_attempts AS (
       INSERT INTO ${sql.table("attempt")} (iid, run_no, ord, n, started_at, ended_at, error)
       SELECT a.iid, a.run_no, a.ord, a.n, clock.now - a.took, clock.now, a.error
       FROM ${sql.rows("attempts", "a", columns.attempts)} CROSS JOIN clock WHERE ${isFresh("a.iid")}
       ON CONFLICT DO NOTHING)`,
    `spawn AS MATERIALIZED (
       SELECT s.* FROM ${sql.rows("spawns", "s", columns.spawns)} WHERE ${isFresh("s.parent")})`,
    `born AS (
       INSERT INTO ${sql.table("instance")} (iid, workflow, id, queue, run_no, status, params, origin, created_at)
       SELECT s.iid, s.workflow, s.id, s.queue, 1, 'live', s.params, s.origin, clock.now FROM spawn AS s CROSS JOIN clock
       ON CONFLICT DO NOTHING RETURNING iid)`,
    `queued AS (
       INSERT INTO ${sql.table("ticket")} (tid, queue, handler, ${birth.columns})
       SELECT s.iid, s.queue, s.workflow, ${birth.values} FROM spawn AS s CROSS JOIN clock
       WHERE ${isBorn})`,
    `delivered AS (
       INSERT INTO ${sql.table("inbox")} (id, iid, run_no, event_id, kind, type, payload)
       SELECT d.id, d.iid, d.run_no, d.event_id, d.kind, d.type, d.payload
       FROM ${sql.rows("deliveries", "d", columns.deliveries)} WHERE ${isFresh("d.sender")}
       ON CONFLICT DO NOTHING)`,
    `told_spawned AS (${postSelected(
      sql,
      `SELECT 'create.1.' || s.iid, 'onWorkflowEnqueued', s.workflow, s.id, 1, 'create', clock.now, clock.now
       FROM spawn AS s CROSS JOIN clock
       WHERE ${isBorn} AND ${isRegistered(sql, "onWorkflowEnqueued")}`,
    )})`,
  ];
}

import type { EventRecord } from "../../store/records.js";
import type { Part, PartAnswer } from "../../store/store.js";
import type { Sql, Verb } from "../sql.js";
import { int, intOrNull, text } from "../sql.js";
import type { Row, RowValues, Script, Statement } from "../statement.js";
import { columns, rowsOf, type CommitRows } from "./commit-rows.js";
import { firstOfEachId } from "./create.js";
import type { EventReader } from "./event-rows.js";

export type Commit = Verb<[parts: readonly Part[]], PartAnswer[]>;
/** The cheapest way to commit these parts. */
export type CommitOf = (parts: readonly Part[]) => Commit;

/**
 * The fence: a part counts only if its ticket still carries its claim number, read under the row's lock.
 * A ticket that carries the number but is not leased any more shows that this very part was applied
 * before (nothing else gives a ticket up without a new number): it answers ok and writes nothing.
 */
export function commitVerb(sql: Sql, events: EventReader, newInboxId: () => string): CommitOf {
  const missing = missingParts(sql);
  if (sql.dialect.name === "postgres") {
    const commit = inOneStatement(sql, events, missing, newInboxId);
    return () => commit;
  }
  const commit = inSteps(sql, events, missing, newInboxId);
  if (sql.dialect.name === "sqlite") return () => commit;
  const results = resultsOnly(sql, events, missing, newInboxId);
  return (parts) => (parts.every(isOneResult) ? results : commit);
}

const stepKey = ["iid", "run_no", "ord"];
const stepColumns =
  "iid, run_no, ord, seq, called_after, claim_no, part_no, name, count, type, status, attempts, started_at, ended_at, wake_at, wait_key, result, error";
/** What a later write of the same step changes: everything but its identity and its start. */
const stepChanges = [
  "seq",
  "claim_no",
  "part_no",
  "status",
  "attempts",
  "ended_at",
  "wake_at",
  "wait_key",
  "result",
  "error",
];
const stepValues = (now: string): string =>
  `s.iid, s.run_no, s.ord, s.seq, s.called_after, s.claim_no, s.part_no, s.name, s.count, s.type, s.status, s.attempts,
   ${now} - s.took, CASE WHEN s.status IN ('completed', 'errored') THEN ${now} END,
   COALESCE(s.wake_at, ${now} + s.wake_in), s.wait_key, s.result, s.error`;

/** The state a fenced part leaves its ticket in. A pause beats a park, an unseen event beats parking, finish beats all. */
type Becomes = "leased" | "waiting" | "queued" | "paused" | "finished";

const becomesSql = `CASE
  WHEN p.next IN ('complete', 'fail') THEN 'finished'
  WHEN p.next IN ('park', 'release') AND t.pause_requested = 1 THEN 'paused'
  WHEN p.next = 'park' AND t.event_count > p.seen_events THEN 'leased'
  WHEN p.next = 'park' THEN 'waiting'
  WHEN p.next = 'release' THEN 'queued'
  ELSE 'leased' END`;

/** Columns of a ticket that a part writes; on progress it writes none. None reads another that is assigned. */
const ticketChanges = (now: string): Record<string, string> => ({
  state: "p.becomes",
  owner: "CASE WHEN p.becomes = 'leased' THEN t.owner ELSE NULL END",
  due_at: `CASE WHEN p.becomes IN ('waiting', 'queued') THEN COALESCE(p.wake_at, ${now} + p.wake_in) ELSE NULL END`,
  wake_at: `CASE WHEN p.becomes <> 'leased' THEN NULL
    WHEN p.next = 'watch' THEN COALESCE(p.wake_at, ${now} + p.wake_in) ELSE t.wake_at END`,
  wait_mask:
    "CASE WHEN p.becomes = 'leased' AND p.next <> 'watch' THEN t.wait_mask ELSE p.wait_mask END",
  pause_requested: "CASE WHEN p.becomes = 'paused' THEN 0 ELSE t.pause_requested END",
  takeovers: "CASE WHEN p.becomes = 'leased' THEN COALESCE(p.takeovers, t.takeovers) ELSE 0 END",
  history_bytes: "CASE WHEN p.becomes = 'leased' THEN t.history_bytes ELSE p.history_bytes END",
  part_no: "p.part_no",
});
/**
 * A refused park leaves the ticket alone; a watch sent again must not move its wake. A finished one is
 * removed: written too, in the same statement, one of both would silently not happen.
 */
const writesTicketSql = `(p.becomes IN ('waiting', 'queued', 'paused') OR p.becomes = 'leased'
  AND (p.next = 'watch' OR p.takeovers IS NOT NULL) AND t.part_no < p.part_no)`;

function inOneStatement(
  sql: Sql,
  events: EventReader,
  missing: MissingParts,
  newInboxId: () => string,
): Commit {
  const ticket = sql.table("ticket");
  const insertSteps = `wrote_steps AS (
    ${sql.dialect.insertInto("step")} (${stepColumns})
    SELECT ${stepValues("clock.now")} FROM ${sql.rows("steps", "s", columns.steps)}
      JOIN fresh AS p ON p.iid = s.iid CROSS JOIN clock
    ${sql.dialect.onConflictSetIfNewer("step", stepKey, stepChanges)})`;
  const endTurns = [
    `wrote_tickets AS (
       UPDATE ${ticket} AS t SET ${Object.entries(ticketChanges("clock.now"))
         .map(([column, expression]) => `${column} = ${expression}`)
         .join(", ")}
       FROM fresh AS p, clock WHERE t.tid = p.iid AND ${writesTicketSql})`,
    `finished AS (
       UPDATE ${sql.table("instance")} AS i SET
         status = CASE WHEN p.next = 'complete' THEN 'complete' ELSE 'errored' END,
         output = p.output, error = p.error, started_at = p.started_at, finished_at = clock.now, claim_no = p.claim_no
       FROM fresh AS p, clock WHERE i.iid = p.iid AND p.becomes = 'finished')`,
    `removed AS (DELETE FROM ${ticket} AS t USING fresh AS p WHERE t.tid = p.iid AND p.becomes = 'finished')`,
    `consumed_events AS (
       UPDATE ${sql.table("event")} AS e SET consumed_by = c.ord, delivered_at = clock.now
       FROM ${sql.rows("consumed", "c", columns.consumed)} JOIN fresh AS p ON p.iid = c.iid CROSS JOIN clock
       WHERE e.iid = c.iid AND e.run_no = c.run_no AND e.number = c.number AND e.consumed_by IS NULL)`,
  ];
  const extras = [
    `wrote_attempts AS (
       INSERT INTO ${sql.table("attempt")} (iid, run_no, ord, n, started_at, ended_at, error)
       SELECT a.iid, a.run_no, a.ord, a.n, clock.now - a.took, clock.now, a.error
       FROM ${sql.rows("attempts", "a", columns.attempts)} JOIN fresh AS p ON p.iid = a.iid CROSS JOIN clock
       ON CONFLICT DO NOTHING)`,
    `spawn AS MATERIALIZED (
       SELECT s.* FROM ${sql.rows("spawns", "s", columns.spawns)} JOIN fresh AS p ON p.iid = s.parent)`,
    `born AS (
       INSERT INTO ${sql.table("instance")} (iid, workflow, id, queue, run_no, status, params, origin, created_at)
       SELECT s.iid, s.workflow, s.id, s.queue, 1, 'live', s.params, s.origin, clock.now FROM spawn AS s CROSS JOIN clock
       ON CONFLICT DO NOTHING RETURNING iid, created_at)`,
    `queued AS (
       INSERT INTO ${ticket} (tid, queue, handler, class, state, run_no, claim_no, due_at)
       SELECT s.iid, s.queue, s.workflow, 1, 'queued', 1, 0, born.created_at FROM spawn AS s JOIN born ON born.iid = s.iid)`,
    `delivered AS (
       INSERT INTO ${sql.table("inbox")} (id, iid, run_no, event_id, kind, type, payload)
       SELECT d.id, d.iid, d.run_no, d.event_id, d.kind, d.type, d.payload
       FROM ${sql.rows("deliveries", "d", columns.deliveries)} JOIN fresh AS p ON p.iid = d.sender
       ON CONFLICT DO NOTHING)`,
    `posted AS (
       INSERT INTO ${sql.table("outbox")} (id, topic, payload, created_at, due_at)
       SELECT o.id, o.topic, o.payload, clock.now, clock.now
       FROM ${sql.rows("outbox", "o", columns.outbox)} JOIN fresh AS p ON p.iid = o.sender CROSS JOIN clock
       ON CONFLICT DO NOTHING)`,
  ];
  const prepare = (name: string, writes: readonly string[]): Statement =>
    sql.prepare(
      `commit.${name}`,
      `WITH part AS MATERIALIZED (SELECT * FROM ${sql.rows("parts", "p", columns.parts)}),
       locked AS MATERIALIZED (
         SELECT p.*, t.state, t.pause_requested, t.event_count, t.started_at, ${becomesSql} AS becomes
         FROM part AS p JOIN ${ticket} AS t ON t.tid = p.iid AND t.claim_no = p.claim_no
         ${sql.dialect.lockSkippingOf("t")}),
       clock AS MATERIALIZED (SELECT :now AS now FROM (SELECT count(*) FROM locked) AS after_the_locks),
       fresh AS MATERIALIZED (SELECT * FROM locked WHERE state = 'leased'),
       ${writes.join(",\n")}
       SELECT l.iid, l.state, l.becomes, l.pause_requested, l.event_count, clock.now FROM locked AS l CROSS JOIN clock`,
    );
  // Three texts, from the hot path up: results only; turns that end; everything.
  const progress = prepare("progress", [insertSteps]);
  const turn = prepare("turn", [insertSteps, ...endTurns]);
  const full = prepare("full", [insertSteps, ...endTurns, ...extras]);
  const textFor = (parts: readonly Part[], rows: CommitRows): Statement => {
    if (
      rows.attempts.length + rows.spawns.length + rows.deliveries.length + rows.outbox.length >
      0
    ) {
      return full;
    }
    const ends = parts.some(
      (part) => part.next.kind !== "continue" || part.takeovers !== undefined,
    );
    return ends || rows.consumed.length > 0 ? turn : progress;
  };
  return {
    transaction: false,
    answersLocked: true,
    *script(parts): Script<PartAnswer[]> {
      const rows = rowsOf(parts, newInboxId);
      const locked = yield textFor(parts, rows).with(rows);
      return yield* answer(parts, locked, events, missing);
    },
  };
}

function inSteps(
  sql: Sql,
  events: EventReader,
  missing: MissingParts,
  newInboxId: () => string,
): Commit {
  const ticket = sql.table("ticket");
  const fence = sql.prepare(
    "commit.fence",
    `SELECT p.iid, t.state, t.pause_requested, t.event_count, t.part_no, t.started_at, :now AS now, ${becomesSql} AS becomes
     FROM ${sql.rows("parts", "p", columns.parts)} ${sql.dialect.lookUp("ticket", "t")}
       ON t.tid = p.iid AND t.claim_no = p.claim_no
     ${sql.dialect.lockSkippingOf("t")}`,
  );
  const insertSteps = sql.prepare(
    "commit.steps",
    `${sql.dialect.insertInto("step")} (${stepColumns})
     SELECT ${stepValues(":at")} FROM ${sql.rows("steps", "s", columns.steps)}
     ${sql.dialect.onConflictSetIfNewer("step", stepKey, stepChanges)}`,
  );
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
      on: "e.iid = c.iid AND e.run_no = c.run_no AND e.number = c.number AND e.consumed_by IS NULL",
      set: { consumed_by: "c.ord", delivered_at: ":at" },
    }),
  );
  const existingSpawns = sql.prepare(
    "commit.spawns.existing",
    `SELECT s.iid FROM ${sql.rows("spawns", "s", columns.spawns)} ${sql.dialect.drivenJoin}
       ${sql.table("instance")} AS i ON i.workflow = s.workflow AND i.id = s.id`,
  );
  const insertInstances = sql.prepare(
    "commit.spawns.instances",
    `INSERT INTO ${sql.table("instance")} (iid, workflow, id, queue, run_no, status, params, origin, created_at)
     SELECT s.iid, s.workflow, s.id, s.queue, 1, 'live', s.params, s.origin, :at FROM ${sql.rows("spawns", "s", columns.spawns)}`,
  );
  const insertTickets = sql.prepare(
    "commit.spawns.tickets",
    `INSERT INTO ${ticket} (tid, queue, handler, class, state, run_no, claim_no, due_at)
     SELECT s.iid, s.queue, s.workflow, 1, 'queued', 1, 0, :at FROM ${sql.rows("spawns", "s", columns.spawns)}`,
  );
  const deliver = sql.prepare(
    "commit.deliveries",
    `${sql.dialect.insertInto("inbox")} (id, iid, run_no, event_id, kind, type, payload)
     SELECT d.id, d.iid, d.run_no, d.event_id, d.kind, d.type, d.payload
     FROM ${sql.rows("deliveries", "d", columns.deliveries)} ${sql.dialect.onConflictKeep(["id"])}`,
  );
  const post = sql.prepare(
    "commit.outbox",
    `${sql.dialect.insertInto("outbox")} (id, topic, payload, created_at, due_at)
     SELECT o.id, o.topic, o.payload, :at, :at FROM ${sql.rows("outbox", "o", columns.outbox)}
     ${sql.dialect.onConflictKeep(["id"])}`,
  );
  const ended = { ...columns.parts, becomes: "word", started_at: "big" } as const;
  const writeTickets = sql.prepare(
    "commit.tickets",
    sql.dialect.updateFrom({
      table: "ticket",
      alias: "t",
      rows: sql.rows("parts", "p", ended),
      on: `t.tid = p.iid AND ${writesTicketSql}`,
      set: ticketChanges(":at"),
    }),
  );
  const finish = sql.prepare(
    "commit.finish",
    sql.dialect.updateFrom({
      table: "instance",
      alias: "i",
      rows: sql.rows("parts", "p", ended),
      on: "i.iid = p.iid",
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

  function* spawn(rows: CommitRows["spawns"], at: number): Script<void> {
    const existing = new Set(
      (yield existingSpawns.with({ spawns: rows })).map((row) => text(row, "iid")),
    );
    const spawns = firstOfEachId(rows.filter((row) => !existing.has(String(row["iid"]))));
    if (spawns.length === 0) return;
    yield insertInstances.with({ spawns, at });
    yield insertTickets.with({ spawns, at });
  }

  function* endTurns(
    parts: readonly Part[],
    rows: CommitRows["parts"],
    tickets: ReadonlyMap<string, Row>,
    at: number,
  ): Script<void> {
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
  }

  return {
    transaction: true,
    answersLocked: true,
    *script(parts): Script<PartAnswer[]> {
      const all = rowsOf(parts, newInboxId);
      const locked = yield fence.with({ parts: all.parts });
      const byIid = new Map(locked.map((row) => [text(row, "iid"), row]));
      const isFresh = (part: Part): boolean => byIid.get(part.iid)?.["state"] === "leased";
      const fresh = parts.filter(isFresh);
      if (fresh.length > 0) {
        const at = int(locked[0] as Row, "now");
        const rows = fresh.length === parts.length ? all : rowsOf(fresh, newInboxId);
        if (rows.steps.length > 0) yield insertSteps.with({ steps: rows.steps, at });
        if (rows.attempts.length > 0) yield insertAttempts.with({ attempts: rows.attempts, at });
        if (rows.consumed.length > 0) yield consumeEvents.with({ consumed: rows.consumed, at });
        if (rows.spawns.length > 0) yield* spawn(rows.spawns, at);
        if (rows.deliveries.length > 0) yield deliver.with({ deliveries: rows.deliveries });
        if (rows.outbox.length > 0) yield post.with({ outbox: rows.outbox, at });
        yield* endTurns(fresh, rows.parts, byIid, at);
      }
      return yield* answer(parts, locked, events, missing);
    },
  };
}

function isOneResult(part: Part): boolean {
  const { steps, attempts, consumed, spawns, deliveries, outbox } = part;
  const rest =
    attempts.length + consumed.length + spawns.length + deliveries.length + outbox.length;
  const stays = part.next.kind === "continue" && part.takeovers === undefined;
  return stays && steps.length === 1 && rest === 0;
}

/**
 * Progress on a server without RETURNING: one fenced insert that commits by itself, then a look at what became
 * of each part; two round trips instead of four. A part has one row here: SKIP LOCKED decides row by row, and
 * a part must never be written by halves.
 */
function resultsOnly(
  sql: Sql,
  events: EventReader,
  missing: MissingParts,
  newInboxId: () => string,
): Commit {
  const ticket = sql.table("ticket");
  const insert = sql.prepare(
    "commit.result",
    `${sql.dialect.insertInto("step")} (${stepColumns})
     SELECT ${stepValues(":now")} FROM ${sql.rows("steps", "s", columns.steps)}
       ${sql.dialect.lookUp("ticket", "t")} ON t.tid = s.iid AND t.claim_no = s.claim_no AND t.state = 'leased'
     ${sql.dialect.lockSkippingOf("t")}
     ${sql.dialect.onConflictSetIfNewer("step", stepKey, stepChanges)}`,
  );
  const look = sql.prepare(
    "commit.result.look",
    `SELECT w.iid, CASE WHEN s.iid IS NULL THEN t.state ELSE 'leased' END AS state, t.pause_requested, t.event_count,
       :now AS now, 'leased' AS becomes
     FROM ${sql.rows("written", "w", { iid: "key", run_no: "int", ord: "int", claim_no: "big", part_no: "int" })}
       ${sql.dialect.drivenJoin} ${ticket} AS t ON t.tid = w.iid AND t.claim_no = w.claim_no
       LEFT JOIN ${sql.table("step")} AS s ON s.iid = w.iid AND s.run_no = w.run_no AND s.ord = w.ord
         AND s.claim_no = w.claim_no AND s.part_no >= w.part_no
     WHERE s.iid IS NOT NULL OR t.state <> 'leased'`,
  );
  return {
    transaction: false,
    *script(parts): Script<PartAnswer[]> {
      const { steps } = rowsOf(parts, newInboxId);
      yield insert.with({ steps });
      return yield* answer(parts, yield look.with({ written: steps }), events, missing);
    },
  };
}

type Fate = "busy" | "lost" | { readonly finishedAt: number };
type MissingParts = (parts: readonly Part[]) => Script<Map<string, Fate>>;

/** A part that was not locked is busy, lost, or its run was finished by this very part before. */
function missingParts(sql: Sql): MissingParts {
  const read = sql.prepare(
    "commit.missing",
    `SELECT p.iid, t.claim_no AS ticket_claim, i.claim_no AS finish_claim, i.run_no, i.finished_at
     FROM ${sql.rows("parts", "p", { iid: "key" })}
       ${sql.dialect.drivenJoin} ${sql.table("instance")} AS i ON i.iid = p.iid
       LEFT JOIN ${sql.table("ticket")} AS t ON t.tid = p.iid`,
  );
  return function* (parts) {
    const rows = yield read.with({ parts: parts.map(({ iid }) => ({ iid })) });
    const byIid = new Map(rows.map((row) => [text(row, "iid"), row]));
    return new Map(parts.map((part) => [part.iid, fateOf(part, byIid.get(part.iid))]));
  };
}

function fateOf(part: Part, row: Row | undefined): Fate {
  if (row === undefined) return "lost";
  if (intOrNull(row, "ticket_claim") === part.claimNumber) return "busy";
  const finishedAt = intOrNull(row, "finished_at");
  const mine =
    int(row, "finish_claim") === part.claimNumber && int(row, "run_no") === part.runNumber;
  return mine && finishedAt !== null ? { finishedAt } : "lost";
}

function* answer(
  parts: readonly Part[],
  locked: readonly Row[],
  events: EventReader,
  missing: MissingParts,
): Script<PartAnswer[]> {
  const byIid = new Map(locked.map((row) => [text(row, "iid"), row]));
  const absent = parts.filter((part) => !byIid.has(part.iid));
  const fates = absent.length === 0 ? new Map<string, Fate>() : yield* missing(absent);
  const unseen = yield* events(
    parts
      .filter((part) => stateOf(byIid.get(part.iid)) === "leased")
      .filter((part) => int(byIid.get(part.iid) as Row, "event_count") > part.seenEvents),
  );
  return parts.map((part): PartAnswer => {
    const row = byIid.get(part.iid);
    if (row === undefined) {
      const fate = fates.get(part.iid) ?? "lost";
      if (typeof fate === "string") return { kind: fate };
      return {
        kind: "ok",
        now: fate.finishedAt,
        state: "finished",
        pauseRequested: false,
        events: [],
      };
    }
    return {
      kind: "ok",
      now: int(row, "now"),
      state: stateOf(row) as Exclude<ReturnType<typeof stateOf>, undefined>,
      pauseRequested: stateOf(row) === "leased" && int(row, "pause_requested") === 1,
      events: unseen.get(part.iid) ?? ([] as EventRecord[]),
    };
  });
}

/** A ticket that was not leased had taken this part already: it says where that left it. */
function stateOf(row: Row | undefined): "leased" | "parked" | "paused" | "finished" | undefined {
  if (row === undefined) return undefined;
  const state =
    text(row, "state") === "leased" ? (text(row, "becomes") as Becomes) : text(row, "state");
  return state === "waiting" || state === "queued"
    ? "parked"
    : (state as "leased" | "paused" | "finished");
}

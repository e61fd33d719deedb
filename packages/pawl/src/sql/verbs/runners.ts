import type { HeartbeatAnswer, OwnedTicket } from "../../store/store.js";
import { int, intOrNull, text, type Sql, type Verb } from "../sql.js";
import type { Row, Script } from "../statement.js";

/**
 * How long a dead runner's row is kept after its death. A claim of its own may still be on its way, and the tickets
 * that it takes must be found under a dead owner.
 */
const DEAD_KEPT_MS = 10 * 60_000;

export type Runners = {
  readonly register: Verb<[runner: string, leaseMs: number], void>;
  readonly heartbeat: Verb<[runner: string, leaseMs: number], HeartbeatAnswer>;
  readonly declareDead: Verb<[], string[]>;
  readonly retire: Verb<[runner: string], void>;
  readonly nextExpiry: Verb<[runner: string], number | null>;
};

export function runnerVerbs(sql: Sql): Runners {
  const { insert, expired, bury, forget, retire, nextExpiry } = statements(sql);
  return {
    register: {
      transaction: false,
      *script(id, leaseMs): Script<void> {
        yield insert.with({ runners: [{ id, lease_ms: leaseMs }] });
      },
    },
    heartbeat: heartbeatVerb(sql),
    declareDead: {
      transaction: true,
      *script(): Script<string[]> {
        const dead = (yield expired.with()).map((row) => ({ id: text(row, "id") }));
        if (dead.length > 0) yield bury.with({ dead });
        yield forget.with();
        return dead.map(({ id }) => id);
      },
    },
    retire: {
      transaction: false,
      *script(id): Script<void> {
        yield retire.with({ runner: id });
      },
    },
    nextExpiry: {
      transaction: false,
      *script(id): Script<number | null> {
        const [row] = yield nextExpiry.with({ runner: id });
        const at = intOrNull(row as Row, "at");
        return at === null ? null : Math.max(0, at - int(row as Row, "now"));
      },
    },
  };
}

function statements(sql: Sql) {
  const runner = sql.table("runner");
  const ticket = sql.table("ticket");
  const insert = sql.prepare(
    "runner.register",
    `${sql.dialect.insertInto("runner")} (id, lease_until, registered_at)
     SELECT r.id, :now + r.lease_ms, :now FROM ${sql.rows("runners", "r", { id: "key", lease_ms: "big" })}
     ${sql.dialect.onConflictKeep(["id"])}`,
  );
  const expired = sql.prepare(
    "runner.expired",
    `SELECT id, lease_until FROM ${runner} WHERE dead = 0 AND lease_until <= :now ORDER BY id ${sql.dialect.lockSkipping}`,
  );
  const bury = sql.prepare(
    "runner.bury",
    sql.dialect.updateFrom({
      table: "runner",
      alias: "r",
      rows: sql.rows("dead", "d", { id: "key" }),
      on: "r.id = d.id",
      set: { dead: "1", lease_until: ":now" },
    }),
  );
  const forget = sql.prepare(
    "runner.forget",
    `DELETE FROM ${runner} WHERE dead = 1 AND lease_until < :now - ${DEAD_KEPT_MS}
       AND NOT EXISTS (SELECT 1 FROM ${ticket} AS t WHERE t.owner = ${runner}.id)`,
  );
  const retire = sql.prepare(
    "runner.retire",
    `UPDATE ${runner} SET dead = 1, lease_until = :now WHERE id = :runner AND dead = 0`,
  );
  // A value for each runner instead of EXISTS, which the planner could turn round into a walk over all tickets.
  const nextExpiry = sql.prepare(
    "runner.next",
    `SELECT MIN(o.lease_until) AS at, :now AS now FROM (
       SELECT r.lease_until, (SELECT t.tid FROM ${ticket} AS t ${sql.dialect.throughIndex("ticket_owner")}
           WHERE t.owner == r.id LIMIT 1) AS owned
       FROM ${runner} AS r WHERE r.dead = 0 AND r.id <> :runner) AS o
     WHERE o.owned IS NOT NULL`,
  );
  return { insert, expired, bury, forget, retire, nextExpiry };
}

/** Writes the runner's row and nothing else, since heartbeats that touch tickets deadlock with commits. */
function heartbeatVerb(sql: Sql): Runners["heartbeat"] {
  const owned = "t.tid, t.run_no, t.claim_no, t.pause_requested, t.event_count";
  if (sql.dialect.writableCtes) {
    const beat = sql.prepare(
      "runner.heartbeat",
      `WITH beat AS (
         UPDATE ${sql.table("runner")} SET lease_until = :now + :lease_ms WHERE id = :runner AND dead = 0
         RETURNING id, lease_until - :lease_ms AS now)
       SELECT beat.now, ${owned} FROM beat LEFT JOIN ${sql.table("ticket")} AS t ON t.owner == beat.id`,
    );
    return {
      transaction: false,
      *script(runner, leaseMs): Script<HeartbeatAnswer> {
        return toAnswer(yield beat.with({ runner, lease_ms: leaseMs }));
      },
    };
  }
  const extend = sql.prepare(
    "runner.extend",
    `UPDATE ${sql.table("runner")} SET lease_until = :now + :lease_ms WHERE id = :runner AND dead = 0`,
  );
  const look = sql.prepare(
    "runner.look",
    `SELECT r.lease_until - :lease_ms AS now, ${owned} FROM ${sql.table("runner")} AS r
       LEFT JOIN ${sql.table("ticket")} AS t ON t.owner == r.id
     WHERE r.id = :runner AND r.dead = 0`,
  );
  return {
    transaction: false,
    *script(runner, leaseMs): Script<HeartbeatAnswer> {
      yield extend.with({ runner, lease_ms: leaseMs });
      return toAnswer(yield look.with({ runner, lease_ms: leaseMs }));
    },
  };
}

function toAnswer(rows: readonly Row[]): HeartbeatAnswer {
  const [first] = rows;
  if (first === undefined) return { kind: "dead" };
  return {
    kind: "ok",
    now: int(first, "now"),
    owned: rows.filter((row) => row["tid"] !== null).map(toOwned),
  };
}

function toOwned(row: Row): OwnedTicket {
  return {
    iid: text(row, "tid"),
    runNumber: int(row, "run_no"),
    claimNumber: int(row, "claim_no"),
    pauseRequested: int(row, "pause_requested") === 1,
    eventCount: int(row, "event_count"),
  };
}

import { DatabaseSync } from "@photostructure/sqlite";
import { sqliteStore } from "../../src/sqlite.js";
import type { Store } from "../../src/store/store.js";
import { ManualClock } from "../../src/testing/clock.js";
import type { AttemptRow, Snapshot } from "./checker.js";
import type { Posted } from "./outbox-checker.js";

/** A real store, and a view past it of the rows. */
export type Database = {
  readonly store: Store;
  readonly clock: ManualClock;
  /** Returns the same object while nothing was written. */
  snapshot(): Snapshot & Posted;
  attempts(): AttemptRow[];
};

const START_MS = 1_700_000_000_000;

let shared: { readonly database: Database; readonly empty: () => void } | null = null;

/**
 * Returns one database for all simulations of a process, as new. To migrate and prepare takes longer than
 * most of them.
 */
export async function emptyDatabase(): Promise<Database> {
  shared ??= await open();
  shared.empty();
  return shared.database;
}

async function open(): Promise<NonNullable<typeof shared>> {
  const db = new DatabaseSync(":memory:");
  const clock = new ManualClock(START_MS);
  const store = sqliteStore(db, { clock });
  await store.migrate();
  const tables = [
    "instance",
    "past_run",
    "ticket",
    "step",
    "attempt",
    "event",
    "inbox",
    "outbox",
    "hook",
    "runner",
  ];
  const clear = tables.map((table) => db.prepare(`DELETE FROM pawl_${table}`));
  const all = <Row>(sql: string): (() => Row[]) => {
    const statement = db.prepare(sql);
    return () => statement.all() as Row[];
  };
  const instances = all<Snapshot["instances"][number]>(
    "SELECT iid, id, run_no, status, params, output, error FROM pawl_instance",
  );
  const tickets = all<Snapshot["tickets"][number]>(
    "SELECT tid, run_no, state, owner, due_at, wait_mask, claim_no, pause_requested FROM pawl_ticket",
  );
  const steps = all<Snapshot["steps"][number]>(
    `SELECT iid, run_no, ord, name, type, status, seq, attempts, claim_no, started_at, ended_at, wake_at, wait_key,
       result, error FROM pawl_step ORDER BY iid, run_no, ord`,
  );
  const events = all<Snapshot["events"][number]>(
    "SELECT iid, run_no, number, type, created_at, consumed_by FROM pawl_event",
  );
  const runners = all<Snapshot["runners"][number]>("SELECT id, dead FROM pawl_runner");
  const outbox = all<Posted["outbox"][number]>(
    "SELECT id, hook, instance_id, run_no, reason FROM pawl_outbox",
  );
  const hooks = all<{ name: string }>("SELECT name FROM pawl_hook");
  const attempts = all<AttemptRow>("SELECT iid, run_no, ord, n FROM pawl_attempt");
  const writes = all<{ count: number }>("SELECT total_changes() AS count");
  const read = (): Snapshot & Posted => ({
    instances: instances(),
    tickets: tickets(),
    steps: steps(),
    events: events(),
    runners: runners(),
    outbox: outbox(),
    hooks: hooks().map(({ name }) => name),
  });
  let last: { readonly count: number; readonly snapshot: Snapshot & Posted } | null = null;
  return {
    empty: () => {
      for (const statement of clear) statement.run();
      clock.set(START_MS);
    },
    database: {
      store,
      clock,
      attempts,
      // Most calls write nothing, and reading everything again is half of a simulation.
      snapshot: () => {
        const count = writes()[0]?.count ?? 0;
        if (last?.count !== count) last = { count, snapshot: read() };
        return last.snapshot;
      },
    },
  };
}

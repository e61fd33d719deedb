import fc, { type RunDetails } from "fast-check";
import { afterAll, beforeAll, expect, test } from "vitest";
import { ManualClock } from "../src/testing/clock.js";
import type { StoreFixture, TestDatabase } from "../src/testing/conformance/index.js";
import { ModelStore } from "../src/testing/model-store/store.js";
import { canonical, Divergence, type Peer } from "./differential/lockstep.js";
import { operations } from "./differential/operations.js";
import { Play } from "./differential/play.js";
import { tablesOf, type Tables } from "./differential/tables.js";
import { mysqlFamily, postgres, sqliteFile } from "./fixtures.js";
import { sharedServer, stores, type StoreName } from "./support/servers.js";

// This plays the same random sequence of operations on a model and on all databases, and expects the same
// answers and the same tables. PAWL_DIFF_RUNS=2000 plays more. A failure says how to play it again.

const DEFAULT_RUNS = 30;
/** Shrinking a failure takes longer than finding one. There is no limit if PAWL_DIFF_RUNS is set. */
const DEFAULT_LIMIT_MS = 240_000;
const { PAWL_DIFF_RUNS: runs, PAWL_DIFF_SEED: seed, PAWL_DIFF_PATH: path } = process.env;

const fixtures: Readonly<Record<StoreName, () => StoreFixture>> = {
  sqlite: () => sqliteFile,
  postgres: () => postgres(sharedServer("postgres")),
  mariadb: () => mysqlFamily(sharedServer("mariadb")),
  mysql: () => mysqlFamily(sharedServer("mysql")),
};

/**
 * After how many plays each of these must have come up. Otherwise the weights of the operations are wrong.
 */
const comesUpWithin: Readonly<Record<string, number>> = {
  "create → duplicate": 30,
  takeover: 30,
  resumed: 30,
  reopened: 30,
  "restart → ok": 30,
  "event for a turn": 30,
  "an inbox with events": 30,
  "pause → waitingForPause": 30,
  "resume → running": 30,
  "transaction → rollback": 30,
  "onWorkflowEnqueued create": 30,
  "onInstanceFinished complete": 200,
  "onInstanceFinished terminated": 200,
  "onWorkflowEnqueued restart": 200,
  "onWorkflowEnqueued event": 200,
  "another delivery": 200,
  "failed deliveries": 200,
  "event wakes": 200,
  "event leases": 200,
  "event → duplicate": 200,
  "event of an ended run again": 200,
  "continue → lost": 200,
  "park → leased": 200,
  "park → paused": 200,
  "park again → parked": 200,
  adopted: 200,
  "claim pauses a dead runner's run": 200,
  "takeovers in a row": 500,
  "park again → leased": 2_000,
};

const clock = new ManualClock();
const databases: TestDatabase[] = [];
const peers: Peer[] = [];
const tables = new Map<string, Tables>();

beforeAll(async () => {
  for (const name of stores) {
    const database = await fixtures[name]().open({ clock });
    databases.push(database);
    const { store } = database;
    peers.push({ name, store, begin: () => database.begin(), cursors: new Map() });
    tables.set(name, await tablesOf(name, database));
  }
});

afterAll(async () => {
  for (const database of databases) await database.destroy();
});

test("all stores do what the model does", { timeout: 24 * 3_600_000 }, async () => {
  const reached = new Map<string, number>();
  const count = (what: string): void => void reached.set(what, 1 + (reached.get(what) ?? 0));
  let plays = 0;
  const property = fc.asyncProperty(operations, async (sequence) => {
    plays += 1;
    // The databases are used again, so each play has names and a time of its own.
    clock.advance(30 * 24 * 3_600_000);
    const model = new ModelStore(clock);
    const play = new Play(model, peers, clock, `${plays}`, count);
    try {
      await play.run(sequence);
      await compareTables(play, `${plays}`);
    } finally {
      await play.leave(peers);
    }
  });
  const details = await fc.check(property, {
    ...(runs
      ? { numRuns: Number(runs) }
      : { numRuns: DEFAULT_RUNS, interruptAfterTimeLimit: DEFAULT_LIMIT_MS }),
    // The few plays of every day are always the same ones, because what lands must not depend on luck. Longer
    // runs look for more.
    ...(seed || !runs ? { seed: Number(seed ?? 1) } : {}),
    ...(path ? { path } : {}),
  });
  if (details.failed) throw new Error(report(details));
  const missed = Object.entries(comesUpWithin).filter(
    ([what, within]) => within <= plays && !reached.has(what),
  );
  expect(missed).toEqual([]);
});

/** Compares what cannot be read through a store: every column of every table. */
async function compareTables(play: Play, word: string): Promise<void> {
  const all = await Promise.all(
    [...tables].map(async ([name, read]) => ({ name, found: await read(` ${word}`) })),
  );
  for (const { name, found } of all) {
    for (const [table, rows] of Object.entries(found)) {
      const [actual, reference] = [canonical(rows), canonical(all[0]?.found[table])];
      if (actual !== reference) {
        play.diverge(
          `${table} of ${name}\n  ${actual}\n${table} of ${all[0]?.name}\n  ${reference}`,
        );
      }
    }
  }
}

function report<T>(details: RunDetails<T>): string {
  const { seed: failed, counterexamplePath, numShrinks, errorInstance: error } = details;
  const replay = `PAWL_DIFF_SEED=${failed} PAWL_DIFF_PATH=${counterexamplePath}`;
  return [
    `after ${numShrinks} simplifications; again:`,
    `  ${replay} npx vitest run --project stores differential`,
    error instanceof Divergence ? error.message : String((error as Error)?.stack ?? error),
  ].join("\n");
}

import fc, { type RunDetails } from "fast-check";
import { afterAll, beforeAll, expect, test } from "vitest";
import { ManualClock } from "../src/testing/clock.js";
import type { StoreFixture, TestDatabase } from "../src/testing/conformance/index.js";
import { ModelStore } from "../src/testing/model-store.js";
import type { Peer } from "./differential/lockstep.js";
import { operations } from "./differential/operations.js";
import { Play } from "./differential/play.js";
import { tablesOf, type Tables } from "./differential/tables.js";
import { mysqlFamily, postgres, sqliteFile } from "./fixtures.js";

/** About half a second each. */
const RUNS = Number(process.env["PAWL_DIFF_RUNS"] ?? 20);

const fixtures: Readonly<Record<string, () => StoreFixture>> = {
  sqlite: () => sqliteFile,
  postgres: () => postgres(urlOf("POSTGRES")),
  mariadb: () => mysqlFamily(urlOf("MARIADB")),
  mysql: () => mysqlFamily(urlOf("MYSQL")),
};

function urlOf(server: string): string {
  const variable = `PAWL_TEST_${server}_URL`;
  const url = process.env[variable];
  if (!url) throw new Error(`${variable} names no server, and PAWL_TEST_STORES asks for one`);
  return url;
}

const asked = (process.env["PAWL_TEST_STORES"] ?? Object.keys(fixtures).join(",")).split(",");

const clock = new ManualClock();
const databases: TestDatabase[] = [];
const peers: Peer[] = [];
const tables = new Map<string, Tables>();

beforeAll(async () => {
  for (const name of asked.map((word) => word.trim())) {
    const fixture = fixtures[name];
    if (fixture === undefined) throw new Error(`PAWL_TEST_STORES: there is no store "${name}"`);
    const database = await fixture().open({ clock });
    databases.push(database);
    tables.set(name, await tablesOf(name, database));
    const begin = () => database.begin();
    peers.push({ name, store: database.store, begin, cursors: new Map() });
  }
});

afterAll(async () => {
  for (const database of databases) await database.destroy();
});

test("stores", { timeout: 3_600_000 }, async () => {
  const reached = new Map<string, number>();
  let plays = 0;
  const property = fc.asyncProperty(operations, async (sequence) => {
    plays += 1;
    clock.advance(30 * 24 * 3_600_000);
    const model = new ModelStore(clock);
    const play = new Play(model, peers, clock, `${plays}`, (what) => {
      reached.set(what, 1 + (reached.get(what) ?? 0));
    });
    try {
      await play.run(sequence);
      await sameTables(`${plays}`, model);
    } finally {
      await play.leave(peers);
    }
  });
  const details = await fc.check(property, {
    numRuns: RUNS,
    endOnFailure: process.env["NOSHRINK"] === "1",
    ...replayed(),
  });
  if (details.failed) throw new Error(report(details));
  console.log(Object.fromEntries([...reached].toSorted()));
  expect(1).toBe(1);
});

/** What cannot be read through a store: every column of every table. */
async function sameTables(word: string, model: ModelStore): Promise<void> {
  const found = await Promise.all(
    [...tables].map(async ([name, read]) => ({ name, rows: await read(` ${word}`) })),
  );
  const [first] = found;
  for (const { name, rows } of found) {
    for (const [table, content] of Object.entries(rows)) {
      expect(content, `${table} of ${name}`).toEqual(first?.rows[table]);
    }
    expect(rows["outbox"]?.map(({ id, topic, payload }) => ({ id, topic, payload }))).toEqual(
      model.outbox.toSorted((a, b) => (a.id < b.id ? -1 : 1)),
    );
  }
}

function replayed(): { seed?: number; path?: string } {
  const { PAWL_DIFF_SEED: seed, PAWL_DIFF_PATH: path } = process.env;
  return { ...(seed ? { seed: Number(seed) } : {}), ...(path ? { path } : {}) };
}

function report<T>(details: RunDetails<T>): string {
  const { seed, counterexamplePath: path, numShrinks, errorInstance } = details;
  const why = errorInstance instanceof Error ? errorInstance : new Error(String(errorInstance));
  return [
    `stores diverge (seed ${seed}, path ${path}, shrunk ${numShrinks} times). Again:`,
    `  PAWL_DIFF_SEED=${seed} PAWL_DIFF_PATH=${path} npx vitest run --project stores differential`,
    why.name === "Divergence" ? why.message : (why.stack ?? why.message),
  ].join("\n");
}

import { readFileSync } from "node:fs";
import { DatabaseSync } from "@photostructure/sqlite";
import { sqliteStore } from "pawl/sqlite";
import { describe, expect, test } from "vitest";
import type { Store } from "../src/store/store.js";
import {
  anEvent,
  anInstance,
  aPart,
  aStep,
  commitOk,
  complete,
  leasedRun,
  sendTo,
  targetOf,
  type Leased,
} from "../src/testing/conformance/build.js";
import { world } from "./support/database.js";
import { inScope, type Scope } from "./support/scope.js";
import { stores } from "./support/servers.js";

/* The SQL of docs/operating.md, on every database. */

const page = readFileSync(new URL("../../../docs/operating.md", import.meta.url), "utf8");
const [, statements = ""] = /^```sql\n(.*?)^```$/ms.exec(page) ?? [];
const tables = ["instance", "past_run", "step", "attempt", "event", "ticket"];

type Place = {
  readonly store: Store;
  readonly prefix: string;
  readonly query: (sql: string) => Promise<unknown[]>;
};

async function somewhere(scope: Scope, kind: (typeof stores)[number]): Promise<Place> {
  if (kind !== "sqlite") {
    const { db, store } = await world(scope, kind);
    const session = await db.session();
    const prefix = kind === "postgres" ? `${db.name}.` : `${db.name}.pawl_`;
    return { store, prefix, query: (sql) => session.query(sql) };
  }
  const handle = new DatabaseSync(":memory:");
  scope.defer(() => handle.close());
  const store = sqliteStore(handle);
  await store.migrate();
  return { store, prefix: "pawl_", query: async (sql) => handle.prepare(sql).all() };
}

describe.each(stores)("on %s", (kind) => {
  test("deletes instances that ended long ago, and nothing else", () =>
    inScope(async (scope) => {
      const { store, prefix, query } = await somewhere(scope, kind);
      const finished = async (): Promise<Leased> => {
        const run = await leasedRun(store);
        await sendTo(store, run, anEvent("paid"));
        const steps = [aStep(1, { status: "errored", error: '"no"' })];
        const attempts = [{ ord: 1, n: 1, tookMs: 1, error: '"no"' }];
        await commitOk(store, aPart(run, { seenEvents: 1, steps, attempts, next: complete() }));
        return run;
      };
      const old = await finished();
      const recent = await finished();
      const live = await leasedRun(store);
      await query(
        `UPDATE ${prefix}instance SET finished_at = 1600000000000 WHERE iid = '${old.iid}'`,
      );
      const rowsOf = async (iid: string): Promise<number[]> => {
        const counts: number[] = [];
        for (const table of tables) {
          const key = table === "ticket" ? "tid" : "iid";
          const rows = await query(`SELECT 1 FROM ${prefix}${table} WHERE ${key} = '${iid}'`);
          counts.push(rows.length);
        }
        return counts;
      };
      expect(await rowsOf(old.iid)).toEqual([1, 0, 1, 1, 1, 0]);

      for (const statement of statements.replaceAll("pawl.", prefix).split(";")) {
        if (statement.trim() !== "") await query(statement);
      }
      expect(await rowsOf(old.iid)).toEqual([0, 0, 0, 0, 0, 0]);
      expect(await rowsOf(recent.iid)).toEqual([1, 0, 1, 1, 1, 0]);
      expect(await rowsOf(live.iid)).toEqual([1, 0, 0, 0, 0, 1]);
      expect(await store.get(targetOf(anInstance(old)))).toBeNull();
    }));
});

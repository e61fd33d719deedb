import { expect, test } from "vitest";
import { inScope } from "./support/scope.js";
import { world } from "./support/database.js";
import { servers } from "./support/servers.js";
import * as b from "../src/testing/conformance/build.js";

for (const kind of servers) {
  test(`${kind}: takeovers + finish`, () =>
    inScope(async (scope) => {
      const { db, store } = await world(scope, kind);
      const run = await b.leased(store);
      await store.retire(run.runner);
      const taken = await b.claimOne(store, run);
      expect(taken.takenOver).toBe(true);
      const a = await b.commitOk(store, b.aPart(taken, { takeovers: 1, next: b.complete() }));
      expect(a.state).toBe("finished");
      const s = await db.session();
      expect(await s.query(`SELECT * FROM ${db.table("ticket")}`)).toEqual([]);
    }));
}

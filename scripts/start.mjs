// @ts-check
// Shows the store at work on the embedded default: a SQLite file in a temporary folder.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openSqlite } from "@pawl/dispatcher-node";
import { sqliteStore } from "pawl/sqlite";

const folder = mkdtempSync(join(tmpdir(), "pawl-"));
const handle = openSqlite(join(folder, "pawl.db"));
const store = sqliteStore(handle);
try {
  await store.migrate();
  const tables = handle
    .prepare("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name")
    .all()
    .map((row) => /** @type {{ name: string }} */ (row).name);
  console.log(`A new database in WAL mode has these tables:\n  ${tables.join("\n  ")}\n`);

  const target = { workflow: "order", id: "order-1" };
  await store.create([{ iid: "1", ...target, queue: "default", params: '{"amount":42}' }]);
  console.log("created   ", await summary());

  await store.register("demo", 30_000);
  const claim = await store.claim({
    runner: "demo",
    lanes: [{ queue: "default", handler: "order" }],
    limit: 10,
    reservedForNew: 1,
  });
  const [run] = claim.kind === "ok" ? claim.claimed : [];
  if (run === undefined) throw new Error("nothing to claim");
  console.log("claimed   ", await summary());

  await store.commit([
    {
      iid: run.iid,
      runNumber: run.runNumber,
      claimNumber: run.claimNumber,
      partNumber: 1,
      seenEvents: 0,
      steps: [
        {
          ord: 1,
          name: "charge the card",
          count: 1,
          type: "do",
          status: "completed",
          seq: 1,
          calledAfter: 0,
          attempts: 1,
          tookMs: 12,
          wake: null,
          waitKey: null,
          result: '{"charged":42}',
          error: null,
        },
      ],
      attempts: [],
      consumed: [],
      spawns: [],
      deliveries: [],
      outbox: [],
      next: { kind: "complete", output: '{"ok":true}' },
    },
  ]);
  console.log("committed ", await summary());

  const history = await store.history(target, { order: "oldest", pageSize: 10 });
  console.log("\nIts history:");
  for (const entry of history?.items ?? []) {
    if (entry.kind === "step") console.log(`  ${entry.step.name}: ${entry.step.result}`);
  }

  async function summary() {
    const instance = await store.get(target);
    return `${instance?.workflow}/${instance?.id} is ${instance?.status}`;
  }
} finally {
  await store.close();
  handle.close();
  rmSync(folder, { recursive: true });
}

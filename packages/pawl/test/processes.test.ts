import path from "node:path";
import { DatabaseSync } from "@photostructure/sqlite";
import { sqliteStore } from "pawl/sqlite";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Store } from "../src/store/store.js";
import {
  anEvent,
  anInstance,
  aPart,
  aStep,
  aWait,
  claim,
  recordedEvents,
  parkUntil,
  someInstances,
  recordedSteps,
  targetOf,
} from "../src/testing/conformance/build.js";
import { compiled } from "./support/compile.js";
import { database } from "./support/database.js";
import { temporaryFolder } from "./support/folder.js";
import { startWorker, type Worker } from "./support/processes.js";
import { inScope, Scope } from "./support/scope.js";
import { stores } from "./support/servers.js";
import { until } from "./support/until.js";
import type { WorkerPlace } from "./support/worker.js";

/* Several processes on one database, as in production; each with its own clock, zone and connections. */

let workerFile: string;
const all = new Scope();
beforeAll(async () => {
  workerFile = await compiled(all, "pawl/test/support/worker.ts");
});
afterAll(() => all.end());

/** Opens an empty database, and a store on it in this process. */
async function somewhere(
  scope: Scope,
  kind: WorkerPlace["kind"],
): Promise<{ place: WorkerPlace; store: Store }> {
  if (kind === "sqlite") {
    const at = path.join(temporaryFolder(scope), "test.db");
    const handle = new DatabaseSync(at);
    scope.defer(() => handle.close());
    const store = sqliteStore(handle);
    scope.defer(() => store.close());
    return { place: { kind, at, name: "", skewMs: 0 }, store };
  }
  const db = await database(scope, kind);
  return { place: { kind, at: db.url, name: db.name, skewMs: 0 }, store: db.store() };
}

describe.each(stores)("four processes on %s", (kind) => {
  const scope = new Scope();
  let store: Store;
  let workers: Worker[];

  beforeAll(async () => {
    const made = await somewhere(scope, kind);
    store = made.store;
    workers = await Promise.all(
      Array.from({ length: 4 }, () => startWorker(scope, workerFile, made.place)),
    );
  });
  afterAll(() => scope.end());

  test("migrate an empty database at once", async () => {
    await Promise.all(workers.map((worker) => worker.migrate()));
    await store.migrate();
    expect(await store.list({ workflow: "none", order: "oldest", pageSize: 1 })).toMatchObject({
      items: [],
    });
  });

  test("create one id 20 times at once: one wins, and the others learn which", async () => {
    const id = "wanted";
    const tries = workers.map(() => someInstances(5, { workflow: "create", id }));
    const answers = await Promise.all(
      workers.map((worker, n) => worker.createTogether(...tries[n]!)),
    );
    const flat = answers.flat(2);
    expect(flat.length).toBe(20);
    const winner = flat.filter(({ kind: answer }) => answer === "created");
    expect(winner.length).toBe(1);
    const existing = await store.get({ workflow: "create", id });
    expect(winner[0]).toMatchObject({ iid: existing?.iid });
    for (const answer of flat) {
      if (answer.kind === "duplicate") expect(answer.existing?.iid).toBe(existing?.iid);
    }
  });

  test("claim 200 runs at once: no two get the same run, and together they get all", async () => {
    const instances = someInstances(200, { workflow: "claim" });
    await store.create(instances);
    await Promise.all(workers.map((worker, n) => worker.register(`claimer-${n}`, 60_000)));
    const taken = await Promise.all(
      workers.map((worker, n) => worker.claimAll(`claimer-${n}`, "claim", 7)),
    );
    const iids = taken.flat();
    expect(iids.length).toBe(200);
    expect(iids.toSorted()).toEqual(instances.map(({ iid }) => iid).toSorted());
  });

  test("lose a killed process's runs to another when its lease has run out, and not before", async () => {
    const leaseMs = 1_000;
    const [victim] = workers as [Worker];
    const instance = anInstance({ workflow: "victim" });
    await store.create([instance]);
    await victim.register("victim", 60_000);
    const lanes = [{ queue: "default", handler: "victim" }];
    const request = { lanes, limit: 1, reservedForNew: 0 };
    const mine = await victim.claim({ runner: "victim", ...request });
    expect(mine).toMatchObject({ kind: "ok", claimed: [{ iid: instance.iid }] });
    const beat = await victim.heartbeat("victim", leaseMs);
    if (beat.kind === "dead") throw new Error("too early");
    await victim.kill();

    await store.register("heir", 60_000);
    const taken = await until(async () => {
      await store.declareDead();
      const [run] = await claim(store, "heir", request);
      return run;
    }, "taken over");
    expect(taken).toMatchObject({ iid: instance.iid, takenOver: true, claimNumber: 2 });
    expect(taken.now).toBeGreaterThanOrEqual(beat.now + leaseMs);
  });
});

describe.each(stores)("a process an hour ahead, in Kolkata, on %s", (kind) => {
  test("stores the database's time, to the millisecond", () =>
    inScope(async (scope) => {
      const { place, store } = await somewhere(scope, kind);
      await store.migrate();
      const skewed = await startWorker(
        scope,
        workerFile,
        { ...place, skewMs: 3_600_000 },
        { TZ: "Asia/Kolkata" },
      );
      expect(await skewed.clock()).toMatchObject({ zone: -330 });
      expect((await skewed.clock()).now).toBeGreaterThan(Date.now() + 3_000_000);

      /** Runs `work`, and returns the database's time around it. */
      const around = async <T>(work: () => Promise<T>) => {
        const from = await store.now();
        const value = await work();
        return { value, from, to: await store.now() };
      };
      const within = (time: number | null, { from, to }: { from: number; to: number }) => {
        expect(time).toBeGreaterThanOrEqual(from);
        expect(time).toBeLessThanOrEqual(to);
      };

      const instance = anInstance({ workflow: "skewed" });
      const created = await around(() => skewed.create([instance]));
      within((await store.get(targetOf(instance)))!.createdAt, created);

      const registered = await around(() => skewed.register("runner", 50));
      await until(async () => (await store.declareDead()).includes("runner"), "expired");
      expect(await store.now()).toBeGreaterThanOrEqual(registered.from + 50);

      await skewed.register("second", 60_000);
      const lanes = [{ queue: "default", handler: "skewed" }];
      const claimed = await around(() =>
        skewed.claim({ runner: "second", lanes, limit: 1, reservedForNew: 0 }),
      );
      if (claimed.value.kind === "dead") throw new Error("dead");
      const [run] = claimed.value.claimed;
      within(run!.now, claimed);

      const sent = await around(() => skewed.sendEvent(targetOf(instance), anEvent()));
      const [event] = await recordedEvents(store, instance);
      // The event's time is later than what the claim saw, if need be by a millisecond.
      within(event!.createdAt, { from: sent.from, to: Math.max(sent.to, run!.now + 1) });

      const part = aPart(run!, {
        seenEvents: 1,
        steps: [aStep(1), aWait(2, { inMs: 60_000 })],
        next: parkUntil({ inMs: 60_000 }),
      });
      const committed = await around(() => skewed.commit([part]));
      const [answer] = committed.value;
      if (answer?.kind !== "ok") throw new Error("not committed");
      within(answer.now, committed);
      const steps = await recordedSteps(store, instance);
      expect(steps[0]!.endedAt).toBe(answer.now);
      expect(steps[1]!.wakeAt).toBe(answer.now + 60_000);
      const due = await around(() => skewed.nextDueInMs(lanes));
      within(answer.now + 60_000 - due.value!, due);
    }));
});

import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { hookNames } from "../src/model/hooks.js";
import type { Target } from "../src/model/target.js";
import type { NewInstance, Store } from "../src/store/store.js";
import type { Next } from "../src/store/part.js";
import { ManualClock } from "../src/testing/clock.js";
import {
  aDelivery,
  anAttempt,
  anEvent,
  anInstance,
  aPart,
  aRunner,
  aStep,
  aWait,
  claim,
  claimOne,
  commitOk,
  complete,
  create,
  dueIn,
  historyRows,
  failWith,
  leasedRun,
  leaseMs,
  loadOne,
  parkFor,
  pollOk,
  release,
  sendTo,
  someInstances,
  targetOf,
  unique,
  waiting,
  pause,
  resume,
  restart,
  terminate,
} from "../src/testing/conformance/build.js";
import { database } from "./support/database.js";
import { type Proxy, proxy } from "./support/proxy.js";
import { Scope } from "./support/scope.js";
import { type Kind, servers } from "./support/servers.js";
import { until } from "./support/until.js";

/*
 * The line breaks at every request and at every reply of every verb: before the server has read the request,
 * or after it has done its work and before the store hears of it. The store sends the request again, and what
 * is stored must be what one undisturbed call would have left.
 */

/** One verb, on a subject made for it. */
type Scenario<Subject> = {
  readonly prepare: (store: Store) => Promise<Subject>;
  /** Calls the verb through the line that breaks. `direct` is another line. */
  readonly act: (store: Store, subject: Subject, direct: Store) => Promise<unknown>;
  readonly observe: (store: Store, subject: Subject) => Promise<unknown>;
  /** The answer to the sender if its own first try counted. By default this is the same answer. */
  readonly hears?: (answer: unknown) => unknown;
};

/** Returns all that can be seen of a run, without names. Time stands still, so times are comparable. */
async function seen(store: Store, run: Target & { iid: string; runner?: string }) {
  const instance = await store.get(targetOf(run));
  if (instance === null) return null;
  const { status, runNumber, params, output, error, createdAt, startedAt, finishedAt } = instance;
  const query = { runNumber: 1, order: "oldest", pageSize: 100 } as const;
  const history = await store.history(targetOf(run), query);
  const beat = run.runner === undefined ? null : await store.heartbeat(run.runner, leaseMs);
  const owned = beat?.kind === "ok" ? beat.owned.filter(({ iid }) => iid === run.iid) : null;
  return {
    instance: { status, runNumber, params, output, error, createdAt, startedAt, finishedAt },
    first: history?.items,
    runs: history?.runs,
    due: await dueIn(store, run),
    owned: owned?.map((ticket) => ({ ...ticket, iid: "" })),
  };
}

const workflow = (): { workflow: string } => ({ workflow: `w${unique()}` });
const count = (store: Store, name: string): Promise<number> =>
  store.list({ workflow: name, order: "oldest", pageSize: 100 }).then(({ items }) => items.length);

const scenario = <Subject>(one: Scenario<Subject>): Scenario<unknown> =>
  one as unknown as Scenario<unknown>;

/** When an event is sent again, its own first try makes it a duplicate. */
const accepted = (answer: unknown): unknown => {
  const { kind } = answer as { kind: string };
  return kind === "duplicate" ? "accepted" : kind;
};

/** Concurrent requests, each for so many instances, one of which is as given. */
function creates(sizes: readonly number[], given: Partial<NewInstance> = {}): Scenario<unknown> {
  return scenario({
    prepare: async () => {
      const name = workflow();
      const [first, ...others] = sizes.map((size) => someInstances(size, name));
      return [[{ ...first![0]!, ...given }, ...first!.slice(1)], ...others];
    },
    act: (store, requests) =>
      Promise.all(
        requests.map((request) =>
          store.create(request).then(
            (answers) => answers.map(({ kind }) => kind),
            (error: unknown) => String(error),
          ),
        ),
      ),
    observe: async (store, requests) => ({
      count: await count(store, requests[0]![0]!.workflow),
      all: await Promise.all(requests.flat().map((instance) => seen(store, instance))),
    }),
  });
}

/** A part that ends like this and, if asked, writes everything else that a part can. */
function commits(next: Next, all: "all" | "steps" = "steps"): Scenario<unknown> {
  if (all === "steps") {
    return scenario({
      prepare: (store) => leasedRun(store, workflow()),
      act: (store, run) =>
        commitOk(store, aPart(run, { steps: [aStep(1), aWait(2, { inMs: 700 })], next })),
      observe: seen,
    });
  }
  return scenario({
    prepare: async (store) => {
      const run = await leasedRun(store, workflow());
      const other = await create(store, workflow());
      await sendTo(store, run, anEvent());
      const child = anInstance(workflow());
      const part = aPart(run, {
        seenEvents: 1,
        steps: [aStep(1, { tookMs: 5 }), aWait(2, { inMs: 700 })],
        attempts: [anAttempt(1, 1)],
        consumed: [{ number: 1, ord: 1 }],
        spawns: [child],
        deliveries: [aDelivery(other.iid)],
        next,
      });
      return { run, other, child, part };
    },
    act: (store, { part }) => commitOk(store, part),
    observe: async (store, { run, other, child }) => {
      await until(async () => (await store.moveInbox(100)) === 0, "an empty inbox");
      return [await seen(store, run), await seen(store, other), await seen(store, child)];
    },
  });
}

const scenarios: Readonly<Record<string, Scenario<unknown>>> = {
  create: creates([1]),
  "create of a batch": creates([3]),
  "concurrent creates": creates([1, 2, 1]),
  // PostgreSQL refuses the whole group because of it, and then each request is written alone.
  "creates beside one that may be refused": creates([1, 1, 2], { params: '"\0"' }),
  "create with a lease": scenario({
    prepare: async (store) => ({ ...anInstance(workflow()), runner: await aRunner(store) }),
    act: (store, run) => store.create([run], { lease: { runner: run.runner } }),
    observe: seen,
    // A runner that is told "not leased" finds the ticket among those it owns.
    hears: (answer) => (answer as { kind: string }[]).map(({ kind }) => kind),
  }),
  "sendEvent to a waiting run": scenario({
    prepare: async (store) => ({ run: await waiting(store, workflow()), event: anEvent() }),
    act: (store, { run, event }) => store.sendEvent(targetOf(run), event),
    observe: (store, { run }) => seen(store, run),
    hears: accepted,
  }),
  "sendEvent to a running run": scenario({
    prepare: async (store) => ({ run: await leasedRun(store, workflow()), event: anEvent() }),
    act: (store, { run, event }) => store.sendEvent(targetOf(run), event),
    observe: (store, { run }) => seen(store, run),
    hears: accepted,
  }),
  "pause of a queued run": scenario({
    prepare: (store) => create(store, workflow()),
    act: (store, run) => store.control(targetOf(run), pause),
    observe: seen,
  }),
  "pause of a running run": scenario({
    prepare: (store) => leasedRun(store, workflow()),
    act: async (store, run) => (await store.control(targetOf(run), pause)).kind,
    observe: seen,
  }),
  resume: scenario({
    prepare: async (store) => {
      const run = await create(store, workflow());
      await store.control(targetOf(run), pause);
      return run;
    },
    act: (store, run) => store.control(targetOf(run), resume),
    observe: seen,
  }),
  terminate: scenario({
    prepare: async (store) => ({
      ...(await leasedRun(store, workflow())),
      operation: `o${unique()}`,
    }),
    act: async (store, run) => (await store.control(targetOf(run), terminate(run.operation))).kind,
    observe: seen,
  }),
  restart: scenario({
    prepare: async (store) => ({
      ...(await leasedRun(store, workflow())),
      operation: `o${unique()}`,
    }),
    act: async (store, run) => (await store.control(targetOf(run), restart(run.operation))).kind,
    observe: seen,
  }),
  register: scenario({
    prepare: async () => `runner-${unique()}`,
    act: (store, runner) => store.register(runner, leaseMs),
    observe: (store, runner) => store.heartbeat(runner, leaseMs),
  }),
  heartbeat: scenario({
    prepare: (store) => leasedRun(store, workflow()),
    act: async (store, run) => (await store.heartbeat(run.runner, leaseMs)).kind,
    observe: seen,
  }),
  declareDead: scenario({
    prepare: (store) => aRunner(store, 0),
    // Rows that a broken line left locked are passed over.
    act: (store, runner, direct) =>
      until(async () => {
        await store.declareDead();
        return (await direct.heartbeat(runner, 0)).kind === "dead";
      }, `${runner} dead`),
    observe: (store, runner) => store.heartbeat(runner, leaseMs),
  }),
  retire: scenario({
    prepare: (store) => aRunner(store),
    act: (store, runner) => store.retire(runner),
    observe: (store, runner) => store.heartbeat(runner, leaseMs),
  }),
  claim: scenario({
    prepare: async (store) => {
      const instances = someInstances(3, workflow());
      await store.create(instances);
      const runner = await aRunner(store);
      return instances.map((instance) => ({ ...instance, runner }));
    },
    act: (store, runs, direct) => claimAll(store, direct, runs),
    observe: (store, runs) => Promise.all(runs.map((run) => seen(store, run))),
    hears: () => "some now, others as owned tickets at the next heartbeat",
  }),
  "claim of a dead runner's run": scenario({
    prepare: async (store) => {
      const run = await leasedRun(store, workflow());
      await store.retire(run.runner);
      return [{ ...run, queue: "default", runner: await aRunner(store) }];
    },
    act: (store, runs, direct) => claimAll(store, direct, runs),
    observe: (store, runs) => Promise.all(runs.map((run) => seen(store, run))),
    hears: () => "now, or as an owned ticket at the next heartbeat",
  }),
  reopen: scenario({
    prepare: async (store) => waiting(store, workflow()),
    // Rows that a broken line left locked are passed over.
    act: (store, run, direct) =>
      until(async () => {
        const { iid, runNumber, claimNumber, runner } = run;
        await store.reopen(runner, [{ iid, runNumber, claimNumber }]);
        const beat = await direct.heartbeat(runner, leaseMs);
        return beat.kind === "ok" && beat.owned.length === 1;
      }, "reopened"),
    observe: seen,
  }),
  "commit that continues": commits({ kind: "continue" }),
  "commit that parks": commits(parkFor(["paid"], { inMs: 700 })),
  "commit that releases": commits(release(700)),
  "commit that completes": commits(complete('"out"')),
  "commit that fails": commits(failWith()),
  "commit of everything": commits(complete('"out"'), "all"),
  poll: scenario({
    prepare: async (store) => {
      const run = await leasedRun(store, workflow());
      await sendTo(store, run);
      return run;
    },
    act: (store, run) => pollOk(store, run),
    observe: seen,
  }),
  moveInbox: scenario({
    prepare: async (store) => {
      const run = await waiting(store, { ...workflow(), types: ["child"] });
      const sender = await leasedRun(store, workflow());
      await commitOk(store, aPart(sender, { deliveries: [aDelivery(run.iid)] }));
      return run;
    },
    act: (store, run, direct) =>
      until(async () => {
        await store.moveInbox(100);
        return (await historyRows(direct, run)).length > 0;
      }, "the event in its run"),
    observe: async (store, run) => {
      await until(async () => (await store.moveInbox(100)) === 0, "an empty inbox");
      return seen(store, run);
    },
  }),
  registerHooks: scenario({
    prepare: async () => {},
    act: (store) => store.registerHooks(hookNames),
    observe: async () => {},
  }),
  settleHooks: scenario({
    prepare: async (store) => {
      const instances = someInstances(2, workflow());
      await store.create(instances);
      const request = { hooks: hookNames, limit: 1_000, leaseMs, maxAttempts: 5 };
      const rows = await store.claimHooks(request);
      return rows.filter(({ instanceId }) => instances.some(({ id }) => id === instanceId));
    },
    act: (store, rows) =>
      store.settleHooks(
        rows.map(({ id, claimNumber }, n) => ({
          id,
          claimNumber,
          failure: n === 0 ? null : { error: "no", retryInMs: null },
        })),
      ),
    observe: async (store, rows) => {
      const { items } = await store.failedHooks({ pageSize: 1_000 });
      const left = items.filter(({ id }) => rows.some((row) => row.id === id));
      return left.map(({ attempts, error }) => ({ attempts, error }));
    },
  }),
  retryHook: scenario({
    prepare: async (store) => {
      await store.create(someInstances(1, workflow()));
      const request = { hooks: hookNames, limit: 1_000, leaseMs, maxAttempts: 5 };
      const row = (await store.claimHooks(request)).at(-1)!;
      const failure = { error: "no", retryInMs: null };
      await store.settleHooks([{ id: row.id, claimNumber: row.claimNumber, failure }]);
      return row;
    },
    act: (store, { id }) => store.retryHook(id),
    observe: async (store, row) =>
      (await store.failedHooks({ pageSize: 1_000 })).items.some(({ id }) => id === row.id),
  }),
  "a read of everything": scenario({
    prepare: async (store) => {
      const run = await leasedRun(store, workflow());
      await commitOk(store, aPart(run, { steps: [aStep(1)] }));
      return run;
    },
    act: async (store, run) => [
      await store.now(),
      (await store.get(targetOf(run)))?.status,
      await count(store, run.workflow),
      (await historyRows(store, run)).length,
      (await store.adopt(run.runner, [run.iid])).length,
      (await loadOne(store, run)).steps.length,
      await dueIn(store, run),
    ],
    observe: seen,
  }),
};

async function claimAll(
  store: Store,
  direct: Store,
  runs: readonly { workflow: string; queue: string; runner: string }[],
): Promise<void> {
  const { workflow: handler, queue, runner } = runs[0]!;
  await until(async () => {
    await claim(store, runner, { lanes: [{ queue, handler }], limit: runs.length });
    const beat = await direct.heartbeat(runner, leaseMs);
    return beat.kind === "ok" && beat.owned.length === runs.length;
  }, "all claimed");
}

const MOST_MESSAGES = 60;

/** A server, and two ways to it: one that can be cut and one that cannot. */
type Place = {
  readonly kind: Kind;
  readonly line: Proxy;
  readonly store: Store;
  readonly direct: Store;
  readonly doubledOutbox: () => Promise<unknown[]>;
};

async function placeOn(scope: Scope, kind: Kind): Promise<Place> {
  const clock = new ManualClock();
  const db = await database(scope, kind);
  const direct = db.store({ clock });
  await direct.migrate();
  await direct.registerHooks(hookNames);
  const line = await proxy(scope, kind, db.url);
  const store = db.store({ clock, url: line.url, connections: 1 });
  const session = await db.session();
  const doubledOutbox = () =>
    session.query(
      `SELECT workflow FROM ${db.table("outbox")} GROUP BY workflow, instance_id, run_no, hook, reason
       HAVING COUNT(*) <> 1`,
    );
  return { kind, line, store, direct, doubledOutbox };
}

async function breakEverywhere(place: Place, one: Scenario<unknown>): Promise<void> {
  const { kind, line, store, direct } = place;
  const play = async (begin: () => void) => {
    const subject = await one.prepare(direct);
    begin();
    const answer = await one.act(store, subject, direct);
    return {
      answer: one.hears === undefined ? answer : one.hears(answer),
      outcome: await one.observe(direct, subject),
    };
  };
  const undisturbed = await play(() => {});
  const broken = async (at: "request" | "reply", n: number): Promise<boolean> => {
    let cut = { happened: false };
    const seenThen = await play(() => (cut = line.cut(at, n)));
    expect(seenThen, `${kind}, cut at ${at} ${n}`).toEqual(undisturbed);
    return cut.happened;
  };
  // To the server, a later request that does not come looks like a reply before it that does not arrive.
  expect(await broken("request", 1), "a request to cut").toBe(true);
  let n = 1;
  while (await broken("reply", n)) if (++n > MOST_MESSAGES) throw new Error("no end of replies");
  expect(n, "replies to cut").toBeGreaterThan(1);
}

type Operation = "restart" | "terminate";

/** Wherever the line breaks, another caller's newer operation comes before the store sends its own again. */
async function overtake(
  { kind, line, store, direct }: Place,
  first: Operation,
  newer: Operation,
): Promise<void> {
  const look = async (run: Target): Promise<{ runs: number; ended: boolean }> => {
    const { runNumber, status } = (await direct.get(targetOf(run)))!;
    return { runs: runNumber, ended: status === "terminated" };
  };
  const after = (...done: Operation[]): { runs: number; ended: boolean } => ({
    runs: 1 + done.filter((operation) => operation === "restart").length,
    ended: done.at(-1) === "terminate",
  });
  const reached = new Set<"before" | "after">();
  for (let n = 1, happened = true; happened; n++) {
    const run = await leasedRun(direct, workflow());
    let applied = false;
    const cut = line.cut("reply", n, async () => {
      applied = (await look(run)).runs > 1 || (await look(run)).ended;
      const operationId = `newer-${unique()}`;
      await direct.control(targetOf(run), { command: newer, operationId });
    });
    const { kind: answer } = await store.control(targetOf(run), {
      command: first,
      operationId: `first-${unique()}`,
    });
    happened = cut.happened;
    if (!happened) break;
    expect(answer, `${kind}, cut at reply ${n}`).toBe("ok");
    expect(await look(run), `${kind}, cut at reply ${n}`).toEqual(
      applied ? after(first, newer) : after(newer, first),
    );
    reached.add(applied ? "after" : "before");
  }
  expect(reached.size, `${kind}: cut before and after it was done`).toBe(2);
}

describe("a broken line to the server", () => {
  const scope = new Scope();
  let places: Place[];

  beforeAll(async () => {
    places = await Promise.all(servers.map((kind) => placeOn(scope, kind)));
  });
  afterAll(() => scope.end());

  test.each(Object.entries(scenarios))("%s applies exactly once", async (_, one) => {
    await Promise.all(places.map((place) => breakEverywhere(place, one)));
    for (const { doubledOutbox } of places) expect(await doubledOutbox()).toEqual([]);
  });

  test.each([
    ["restart", "restart"],
    ["restart", "terminate"],
    ["terminate", "restart"],
  ] as const)("a %s and a newer %s before its resend each apply once", async (first, newer) => {
    await Promise.all(places.map((place) => overtake(place, first, newer)));
  });

  test("migrate completes", async () => {
    await Promise.all(
      places.map(async ({ kind, line }) => {
        for (let n = 1, happened = true; happened; n += 7) {
          const empty = await database(scope, kind);
          const cut = line.cut("reply", n);
          await empty.store({ url: line.url, connections: 1 }).migrate();
          happened = cut.happened;
          line.cut("reply", Infinity);
          await claimOne(empty.store(), await create(empty.store()));
        }
      }),
    );
  });
});

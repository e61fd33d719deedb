import type { HistoryRow, HistoryQuery, Store } from "../../store/store.js";
import { defined, equal, refused } from "./assert.js";
import {
  aPart,
  aRunningStep,
  aStep,
  aWait,
  allPages,
  anAttempt,
  anEvent,
  commitOk,
  create,
  historyRows,
  type Leased,
  leasedRun,
  sendTo,
  targetOf,
  restart,
} from "./build.js";
import type { ConformanceCase } from "./fixture.js";
import { damagedCursors, garbageCursors } from "./list.js";
import { stillTime, type StillWorld } from "./world.js";

const label = (entry: HistoryRow) =>
  entry.kind === "step" ? `step ${entry.step.ord}` : `event ${entry.event.number}`;

async function pagesOf(
  store: Store,
  run: Leased,
  query: Partial<HistoryQuery>,
  between?: () => Promise<void>,
): Promise<string[][]> {
  const whole: HistoryQuery = { order: "oldest", pageSize: 10, ...query };
  const pages = await allPages(
    async (from) =>
      defined(await store.history(targetOf(run), { ...whole, ...from }), "the history"),
    between,
  );
  return pages.map((page) => page.map(label));
}

/** A run with `count` steps and as many events, one after the other, each at its own time. */
async function aLongRun({ store, clock }: StillWorld, count: number): Promise<Leased> {
  const run = await leasedRun(store);
  for (let n = 1; n <= count; n++) {
    clock.advance(10);
    await commitOk(store, aPart(run, { partNumber: n, seenEvents: n, steps: [aStep(n)] }));
    clock.advance(10);
    await sendTo(store, run);
  }
  return run;
}

const inOrder = (count: number) =>
  Array.from({ length: count }, (_, i) => [`step ${i + 1}`, `event ${i + 1}`]).flat();

export const historyCases: readonly ConformanceCase[] = [
  stillTime("history answers null for an instance that does not exist", async ({ store }) => {
    const run = await create(store);
    const query: HistoryQuery = { order: "oldest", pageSize: 5 };
    equal(await store.history({ workflow: "order", id: "unknown" }, query), null, "unknown id");
    equal(await store.history({ workflow: "other", id: run.id }, query), null, "other workflow");
    const future = await store.history(targetOf(run), { ...query, runNumber: 2 });
    equal(future?.items ?? [], [], "entries of a run that there was not");
  }),

  stillTime("the history of a new run is empty and names the run", async ({ store }) => {
    const run = await create(store);
    equal(
      await store.history(targetOf(run), { order: "newest", pageSize: 5 }),
      {
        items: [],
        hasNextPage: false,
        runNumber: 1,
        runs: [
          {
            runNumber: 1,
            status: "queued",
            output: null,
            error: null,
            startedAt: null,
            finishedAt: null,
          },
        ],
      },
      "the history",
    );
  }),

  stillTime("history has steps and events in the order in which they happened", async (world) => {
    const run = await aLongRun(world, 5);
    const labels = async (order: HistoryQuery["order"]) =>
      (await historyRows(world.store, run, { order })).map(label);
    equal(await labels("oldest"), inOrder(5), "oldest first");
    equal(await labels("newest"), inOrder(5).toReversed(), "newest first");
  }),

  stillTime("history pages in both directions show everything once", async (world) => {
    const run = await aLongRun(world, 5);
    for (const pageSize of [1, 3, 5, 10, 11]) {
      const oldest = await pagesOf(world.store, run, { pageSize });
      equal(oldest.flat(), inOrder(5), `oldest first by ${pageSize}`);
      equal(oldest.length, Math.ceil(10 / pageSize), "pages");
      const newest = await pagesOf(world.store, run, { pageSize, order: "newest" });
      equal(newest.flat(), inOrder(5).toReversed(), `newest first by ${pageSize}`);
      equal(newest.length, Math.ceil(10 / pageSize), "pages");
    }
  }),

  stillTime("history pages show entries of one millisecond once each", async (world) => {
    const { store } = world;
    const run = await leasedRun(store);
    for (let n = 1; n <= 6; n++) {
      const steps = [aStep(2 * n - 1), aStep(2 * n)];
      await commitOk(store, aPart(run, { partNumber: n, seenEvents: n, steps }));
      await sendTo(store, run);
    }
    for (const order of ["oldest", "newest"] as const) {
      const whole = (await historyRows(store, run, { order })).map(label);
      equal(new Set(whole).size, 18, "entries");
      for (const pageSize of [1, 4, 7]) {
        equal((await pagesOf(store, run, { order, pageSize })).flat(), whole, `by ${pageSize}`);
      }
    }
  }),

  stillTime("history that grows while paging shows the existing entries once", async (world) => {
    const { store, clock } = world;
    for (const order of ["oldest", "newest"] as const) {
      const run = await aLongRun(world, 5);
      let n = 5;
      const grow = async () => {
        n += 1;
        clock.advance(10);
        await commitOk(store, aPart(run, { partNumber: n, seenEvents: n, steps: [aStep(n)] }));
      };
      const seen = (await pagesOf(store, run, { order, pageSize: 3 }, grow)).flat();
      const existing = new Set(inOrder(5));
      const expected = order === "oldest" ? inOrder(5) : inOrder(5).toReversed();
      equal(
        seen.filter((entry) => existing.has(entry)),
        expected,
        "the existing entries",
      );
      equal(new Set(seen).size, seen.length, "none twice");
    }
  }),

  stillTime("history shows each step with its attempts on every page", async ({ store, clock }) => {
    const run = await leasedRun(store);
    for (let n = 1; n <= 4; n++) {
      clock.advance(10);
      const attempts = [anAttempt(n, 2), anAttempt(n, 1)];
      const steps = [aStep(n, { attempts: 2 })];
      await commitOk(store, aPart(run, { partNumber: n, steps, attempts }));
    }
    const pages = await allPages(async (from) =>
      defined(
        await store.history(targetOf(run), { order: "oldest", pageSize: 3, ...from }),
        "the history",
      ),
    );
    equal(
      pages.flat().map((entry) => (entry.kind === "step" ? entry.attempts.map(({ n }) => n) : [])),
      Array.from({ length: 4 }, () => [1, 2]),
      "the attempts of each step",
    );
  }),

  stillTime("a step that waits for its first retry shows why", async ({ store }) => {
    const run = await leasedRun(store);
    const steps = [aWait(1, { inMs: 1_000 }, { type: "do", attempts: 1 })];
    const attempts = [anAttempt(1, 1, { error: '"why"' })];
    await commitOk(store, aPart(run, { steps, attempts }));
    const [entry] = await historyRows(store, run);
    equal(
      entry?.kind === "step" ? entry.attempts.map(({ n, error }) => [n, error]) : [],
      [[1, '"why"']],
      "the attempts",
    );
  }),

  stillTime("a history cursor works for the longest names, too", async ({ store }) => {
    const run = await leasedRun(store, { workflow: "😀".repeat(64), id: "i".repeat(100) });
    for (let i = 0; i < 3; i++) await sendTo(store, run);
    equal((await pagesOf(store, run, { pageSize: 1 })).length, 3, "pages");
  }),

  stillTime("history of an earlier run is paged like that of the current one", async (world) => {
    const { store } = world;
    const run = await aLongRun(world, 4);
    await store.control(targetOf(run), restart("restart"));
    await sendTo(store, run, anEvent());
    const first = await pagesOf(store, run, { runNumber: 1, pageSize: 3 });
    equal(first.flat(), inOrder(4), "the first run");
    equal(first.length, 3, "pages");
    equal(await pagesOf(store, run, { pageSize: 3 }), [["event 1"]], "the current run");
    equal(await pagesOf(store, run, { runNumber: 2 }), [["event 1"]], "the second run by number");
  }),

  stillTime("a step that is overwritten stays one entry", async ({ store, clock }) => {
    const run = await leasedRun(store);
    await commitOk(store, aPart(run, { steps: [aRunningStep(1)] }));
    clock.advance(10);
    await sendTo(store, run);
    clock.advance(10);
    await commitOk(store, aPart(run, { partNumber: 2, seenEvents: 1, steps: [aStep(1)] }));
    const labels = (await historyRows(store, run)).map(label);
    equal(labels.toSorted(), ["event 1", "step 1"], "the entries");
  }),

  stillTime("an invalid history cursor is refused", async (world) => {
    const { store } = world;
    const run = await aLongRun(world, 3);
    const query: HistoryQuery = { order: "oldest", pageSize: 2 };
    const page = defined(await store.history(targetOf(run), query), "the history");
    const real = defined(page.cursor, "the cursor");
    for (const cursor of [...garbageCursors, ...damagedCursors(real)]) {
      await refused(
        store.history(targetOf(run), { ...query, cursor }),
        "INVALID_CURSOR",
        `cursor ${cursor}`,
      );
    }
  }),

  stillTime("a cursor of another history, run, order or list is refused", async (world) => {
    const { store } = world;
    const run = await aLongRun(world, 3);
    const other = await aLongRun(world, 3);
    await store.control(targetOf(run), restart("restart"));
    const query: HistoryQuery = { runNumber: 1, order: "oldest", pageSize: 2 };
    const page = defined(await store.history(targetOf(run), query), "the history");
    const cursor = defined(page.cursor, "the cursor");
    const list = await store.list({ workflow: "order", order: "oldest", pageSize: 1 });
    const foreign = defined(list.cursor, "the list's cursor");
    const reads: Readonly<Record<string, Promise<unknown>>> = {
      "another history": store.history(targetOf(other), { ...query, cursor }),
      "another order": store.history(targetOf(run), { ...query, order: "newest", cursor }),
      "another run": store.history(targetOf(run), { ...query, runNumber: 2, cursor }),
      "a list's cursor": store.history(targetOf(run), { ...query, cursor: foreign }),
      "a history's cursor": store.list({ workflow: "order", order: "oldest", pageSize: 1, cursor }),
    };
    const outcomes = Object.entries(reads).map(([what, read]) =>
      refused(read, "INVALID_CURSOR", what),
    );
    await Promise.all(outcomes);
  }),
];

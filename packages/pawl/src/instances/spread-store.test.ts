import { beforeEach, describe, expect, test } from "vitest";
import { instancesWorld, type InstancesWorld } from "../../test/support/instances.js";
import { defineWorkflow } from "../authoring/define-workflow.js";
import { idMaker } from "../model/ids.js";
import { webRuntime } from "../runtime.js";
import type { InstanceStatusName } from "../model/status.js";
import type { InstanceStore } from "../store/instance-store.js";
import type { ListQuery } from "../store/store.js";
import { placeOf, spreadStore } from "./spread-store.js";

const SHARDS = 3;
const newId = idMaker(webRuntime);

let worlds: InstancesWorld[];
let all: InstanceStore<never>;

beforeEach(async () => {
  const registry = { ORDER: defineWorkflow({ name: "order", run: () => 1 }) };
  worlds = [];
  for (let n = 0; n < SHARDS; n++) worlds.push(await instancesWorld(registry));
  all = spreadOver(SHARDS);
});

function spreadOver(count: number): InstanceStore<never> {
  const stores = worlds
    .slice(0, count)
    .map(({ context }) => context.store) as InstanceStore<never>[];
  return spreadStore({
    spread: `shards: ${count}`,
    of: (target) => stores[placeOf(target, count)] as InstanceStore<never>,
    all: () => stores,
  });
}

const target = (id: string) => ({ workflow: "order", id });
const worldOf = (id: string) => worlds[placeOf(target(id), SHARDS)] as InstancesWorld;

async function create(...ids: string[]): Promise<string[]> {
  const rows = ids.map((id) => ({ iid: newId(), ...target(id), queue: "default", params: null }));
  return (await all.create(rows)).map(({ kind }) => kind);
}

/** Returns ids that belong to the given place. */
function idsOf(place: number, count: number, prefix = "i"): string[] {
  const ids: string[] = [];
  for (let n = 0; ids.length < count; n++) {
    if (placeOf(target(`${prefix}${n}`), SHARDS) === place) ids.push(`${prefix}${n}`);
  }
  return ids;
}

const query = (given: Partial<ListQuery> = {}): ListQuery => ({
  workflow: "order",
  order: "newest",
  pageSize: 4,
  ...given,
});

/** Reads all pages, and calls `between` after each. */
async function pages(given: Partial<ListQuery>, between: () => unknown = () => {}) {
  const found: string[][] = [];
  let cursor: string | undefined;
  do {
    const page = await all.list(query({ ...given, ...(cursor === undefined ? {} : { cursor }) }));
    expect(page.items.length).toBeLessThanOrEqual(given.pageSize ?? 4);
    expect(page.hasNextPage).toBe(page.cursor !== undefined);
    found.push(page.items.map(({ id }) => id));
    cursor = page.cursor;
    await between();
  } while (cursor !== undefined);
  return found.flat();
}

describe("the place of an instance", () => {
  test("never changes, because the instance is stored there", () => {
    const places = ["a", "b", "order-1", "Ünïcode", "k0e5c3d2a"].map((id) =>
      [2, 8, 64].map((count) => placeOf(target(id), count)),
    );
    expect(places).toEqual([
      [0, 0, 16],
      [1, 7, 7],
      [0, 2, 2],
      [0, 6, 22],
      [1, 7, 39],
    ]);
  });

  test("is spread evenly, even if ids differ in their last letters only", () => {
    for (const count of [2, 7, 64]) {
      const sizes = Array.from({ length: count }, () => 0);
      for (let n = 0; n < 1_000 * count; n++) {
        const place = placeOf(target(`customer-${n}`), count);
        sizes[place] = (sizes[place] ?? 0) + 1;
      }
      expect(Math.min(...sizes)).toBeGreaterThan(850);
      expect(Math.max(...sizes)).toBeLessThan(1_150);
    }
  });
});

describe("a list over several stores", () => {
  const ids = Array.from({ length: 23 }, (_, n) => `n${String(n).padStart(2, "0")}`);

  async function createInTurn(): Promise<void> {
    for (const id of ids) {
      await create(id);
      for (const { clock } of worlds) clock.advance(1_000);
    }
  }

  test.each(["newest", "oldest"] as const)("has every row once, %s first", async (order) => {
    await createInTurn();
    const expected = order === "oldest" ? ids : ids.toReversed();
    for (const pageSize of [1, 2, 5, 23, 100]) {
      expect(await pages({ order, pageSize })).toEqual(expected);
    }
  });

  test("filters by status, for live and for ended instances", async () => {
    await createInTurn();
    const paused = ids.filter((_, n) => n % 3 === 1);
    for (const id of paused) await all.control(target(id), { command: "pause" });
    const complete = ids.filter((_, n) => n % 3 === 0);
    for (const id of complete) {
      await worldOf(id).turn(target(id), { kind: "complete", output: '"x"' });
    }
    const listed = (status: InstanceStatusName) => pages({ status, order: "oldest", pageSize: 2 });
    expect(await listed("complete")).toEqual(complete);
    expect(await listed("paused")).toEqual(paused);
    expect(await listed("errored")).toEqual([]);
  });

  test("does not shift the pages for rows that come meanwhile, newest first", async () => {
    await createInTurn();
    let n = 0;
    const found = await pages({ order: "newest", pageSize: 3 }, async () => {
      for (const { clock } of worlds) clock.advance(1_000);
      await create(`late-${n++}`, `late-${n++}`, `late-${n++}`);
    });
    expect(found).toEqual(ids.toReversed());
  });

  test("lists rows that come meanwhile once, oldest first, even from stores whose clocks are behind", async () => {
    // Rows in these stores are older than most rows that have been listed elsewhere.
    worlds[1]?.clock.advance(-8_500);
    worlds[2]?.clock.advance(-4_500);
    await createInTurn();
    const late = [1, 2, 0, 1].flatMap((place, n) => idsOf(place, 1, `late-${n}-`));
    let pagesRead = 0;
    const found = await pages({ order: "oldest", pageSize: 3 }, async () => {
      if (++pagesRead === 7) await create(...late);
    });
    expect(found.toSorted()).toEqual([...ids, ...late].toSorted());
  });

  test("lists rows that an empty store gets while others are listed", async () => {
    const [first, second, third] = [idsOf(0, 5), idsOf(1, 5), idsOf(2, 2)];
    for (const id of [...first, ...second]) await create(id);
    let isLate = true;
    const found = await pages({ order: "oldest", pageSize: 3 }, async () => {
      if (isLate) await create(...third);
      isLate = false;
    });
    expect(found.toSorted()).toEqual([...first, ...second, ...third].toSorted());
  });

  test("loses nothing and keeps the order if one store returns short pages", async () => {
    const [mine, theirs] = [idsOf(0, 6), idsOf(1, 6)];
    for (const [n, id] of mine.entries()) {
      await create(id, theirs[n] as string);
      for (const { clock } of worlds) clock.advance(1_000);
    }
    // This store behaves like a walk that found nothing in its windows and tells how far it got.
    const short = worlds[0]?.context.store as InstanceStore<never>;
    const others = worlds.slice(1).map(({ context }) => context.store) as InstanceStore<never>[];
    const shy = {
      ...short,
      list: (asked: ListQuery) => short.list({ ...asked, pageSize: 1 }),
    };
    all = spreadStore({ spread: "shy", of: () => short, all: () => [shy, ...others] });
    const expected = mine.flatMap((id, n) => [id, theirs[n] as string]);
    const found = await pages({ order: "oldest", pageSize: 4 });
    expect(found.toSorted()).toEqual(expected.toSorted());
    const times = await Promise.all(
      found.map(async (id) => (await worldOf(id).context.store.get(target(id)))?.createdAt ?? 0),
    );
    expect(times).toEqual(times.toSorted((a, b) => a - b));
  });

  test("refuses cursors that are not its own", async () => {
    await createInTurn();
    const { cursor = "" } = await all.list(query({ pageSize: 2 }));
    const oldest = (await all.list(query({ pageSize: 2, order: "oldest" }))).cursor ?? "";
    const ofOne = (await worlds[0]?.context.store.list(query({ pageSize: 2 })))?.cursor ?? "";
    const refused = (given: Partial<ListQuery>, store = all) =>
      expect(store.list(query(given))).rejects.toMatchObject({ code: "INVALID_CURSOR" });
    await refused({ cursor: "garbage" });
    await refused({ cursor: `${cursor}x` });
    await refused({ cursor: oldest });
    await refused({ cursor, order: "oldest" });
    await refused({ cursor, status: "complete" });
    await refused({ cursor, workflow: "other" });
    await refused({ cursor: ofOne });
    await refused({ cursor }, spreadOver(2));
    await refused({ cursor: oldest, order: "oldest" }, spreadOver(2));
  });

  test("reads its own cursor over the largest number of stores", async () => {
    await createInTurn();
    const stores = Array.from(
      { length: 64 },
      (_, n) => (worlds[n % SHARDS] as InstancesWorld).context.store as InstanceStore<never>,
    );
    const wide = spreadStore({
      spread: "shards: 64",
      of: () => stores[0] as InstanceStore<never>,
      all: () => stores,
    });
    const asked = query({ order: "oldest", pageSize: 30 });
    const first = await wide.list(asked);
    expect(first.cursor?.length).toBeLessThan(8_000);
    await wide.list({ ...asked, cursor: first.cursor ?? "" });
  });
});

describe("a batch over several stores", () => {
  test("goes to the store of each instance, and is answered in the order of the batch", async () => {
    const ids = Array.from({ length: 12 }, (_, n) => `b${n}`);
    await create("b3", "b7");
    expect(await create(...ids)).toEqual(
      ids.map((id) => (id === "b3" || id === "b7" ? "duplicate" : "created")),
    );
    for (const [place, world] of worlds.entries()) {
      const here = ids.filter((id) => placeOf(target(id), SHARDS) === place);
      expect(world.rows()).toBe(here.length);
    }
  });

  test("fails if a store is away once all others are done, and is whole when sent again", async () => {
    const [first, second] = worlds.map(({ context }) => context.store) as InstanceStore<never>[];
    let isAway = true;
    const flaky = {
      ...(second as InstanceStore<never>),
      create: async (...given: Parameters<InstanceStore<never>["create"]>) => {
        if (isAway) throw new Error("away");
        return (second as InstanceStore<never>).create(...given);
      },
    };
    const stores = [first as InstanceStore<never>, flaky];
    all = spreadStore({
      spread: "shards: 2",
      of: (given) => stores[placeOf(given, 2)] as InstanceStore<never>,
      all: () => stores,
    });
    const rows = Array.from({ length: 8 }, (_, n) => ({
      iid: newId(),
      ...target(`r${n}`),
      queue: "default",
      params: null,
    }));
    await expect(all.create(rows)).rejects.toThrow("away");
    isAway = false;
    const again = await all.create(rows);
    // These are the same rows again, so none is a duplicate.
    expect(again.map(({ kind }) => kind)).toEqual(rows.map(() => "created"));
  });
});

import type { Store } from "../../store/store.js";
import { ManualClock } from "../clock.js";
import type { ConformanceCase, StoreFixture, TestDatabase } from "./fixture.js";

/** The world of a case: an empty database, and one store on it. */
export type World = { readonly db: TestDatabase; readonly store: Store };
export type StillWorld = World & { readonly clock: ManualClock };

/** A case in which time moves only when told to, so that every time is known to the millisecond. */
export function stillTime(
  name: string,
  play: (world: StillWorld) => Promise<void>,
): ConformanceCase {
  return {
    name,
    run(fixture) {
      const clock = new ManualClock();
      return within(fixture, { clock }, (world) => play({ ...world, clock }));
    },
  };
}

/** A case on the database's own clock. */
export function realTime(name: string, play: (world: World) => Promise<void>): ConformanceCase {
  return { name, run: (fixture) => within(fixture, {}, play) };
}

/** A case in a database that nobody has migrated. */
export function unmigrated(name: string, play: (world: World) => Promise<void>): ConformanceCase {
  return { name, run: (fixture) => within(fixture, { migrate: false }, play) };
}

/** Cases that call `begin` of their database. */
export function withTransactions(cases: readonly ConformanceCase[]): ConformanceCase[] {
  return cases.map((each) => ({ ...each, needsTransactions: true }));
}

async function within(
  fixture: StoreFixture,
  options: NonNullable<Parameters<StoreFixture["open"]>[0]>,
  play: (world: World) => Promise<void>,
): Promise<void> {
  const db = await fixture.open(options);
  try {
    await play({ db, store: db.store });
  } catch (error) {
    await db.destroy().catch(() => {}); // the first failure is the one worth reading
    throw error;
  }
  await db.destroy();
}

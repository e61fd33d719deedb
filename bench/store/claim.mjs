// @ts-check
// Measures claims of 100 tickets: in tables with nothing else, beside a million parked instances, and under
// an old snapshot that keeps every dead index entry in place.
import { compare, figure, median, ratio, sum, timed } from "../measure.mjs";
import { aPart, aRunner, claim, commitAll, someInstances } from "./runs.mjs";

/**
 * @typedef {object} ClaimFigure
 * @property {import("../measure.mjs").Figure} ms the median claim of each round
 * @property {number} mean ms over all claims: the rare ones that look at everything are in it
 * @property {number} ratio to a claim with nothing else in the tables
 *
 * @typedef {object} ClaimResult
 * @property {number} parked
 * @property {number} churned claims and parks under the snapshot
 * @property {ClaimFigure} empty
 * @property {ClaimFigure} besideParked
 * @property {ClaimFigure} underSnapshot its ratio is to tables with nothing else, beside it in the same minute
 */

const LIMIT = 100;
/**
 * Due tickets, claimed and parked in turn. All are resuming, because else the first ones would always come
 * first.
 */
const DUE = 10_000;
const SLICES = 40;

/**
 * @param {import("./databases.mjs").Database} database
 * @param {import("./index.mjs").Options} options
 * @returns {Promise<ClaimResult>}
 */
export async function benchClaim(database, { rounds, share, progress }) {
  const parked = Math.round(1_000_000 * share);
  const churned = Math.round(100_000 * share);
  const size = { rounds, slices: SLICES };
  const worlds = [await database.world(), await database.world(), await database.world()];
  const [none, full, old] = /** @type {[World, World, World]} */ (worlds);
  try {
    progress(`claim: loading ${parked.toLocaleString("en-US")} parked instances`);
    await full.park(parked);
    const empty = await cycler(none.store);
    const besideParked = await cycler(full.store);
    const underSnapshot = await cycler(old.store);

    progress("claim: with nothing else, and beside them");
    const before = await compare(
      size,
      { empty: empty.cycle, besideParked: besideParked.cycle },
      median,
    );
    progress(`claim: ${churned.toLocaleString("en-US")} claims and parks under an old snapshot`);
    const letGo = await old.holdSnapshot();
    for (let n = 0; n < churned; n += LIMIT) await underSnapshot.cycle();
    underSnapshot.times.length = 0;
    /** @type {{ during: number[], ratios: number[] }} */
    const snapshot = { during: [], ratios: [] };
    for (let round = 0; round < rounds; round++) {
      // The snapshot would hold up the clean-up of the first tables, too. New tables have had few claims under it.
      const fresh = await database.world();
      const { cycle } = await cycler(fresh.store);
      const contestants = { fresh: cycle, underSnapshot: underSnapshot.cycle };
      const figures = await compare({ rounds: 1, slices: SLICES / 2 }, contestants, median);
      snapshot.during.push(...samplesOf(figures["underSnapshot"]));
      snapshot.ratios.push(ratio(figures["underSnapshot"], figures["fresh"]).median);
      await fresh.close();
    }
    await letGo();

    return {
      parked,
      churned,
      empty: { ms: figure(samplesOf(before["empty"])), mean: empty.mean(), ratio: 1 },
      besideParked: {
        ms: figure(samplesOf(before["besideParked"])),
        mean: besideParked.mean(),
        ratio: ratio(before["besideParked"], before["empty"]).median,
      },
      underSnapshot: {
        ms: figure(snapshot.during),
        mean: underSnapshot.mean(),
        ratio: median(snapshot.ratios),
      },
    };
  } finally {
    for (const world of worlds) await world.close();
  }
}

/** @typedef {import("./databases.mjs").World} World */

/** @param {import("../measure.mjs").Figure | undefined} given */
const samplesOf = (given) => given?.samples ?? [];

/**
 * `cycle` claims 100 due tickets and parks them, due again. It returns how long the claim took.
 * @param {import("./databases.mjs").Store} store
 */
async function cycler(store) {
  const runner = await aRunner(store);
  /** @param {import("./runs.mjs").Claimed[]} claimed */
  const park = (claimed) =>
    commitAll(
      store,
      claimed.map((run) =>
        aPart(run, 1, { kind: "park", waitMask: 4, wake: { inMs: 0 }, historyBytes: 300 }),
      ),
    );
  for (let n = 0; n < DUE; n += LIMIT) await store.create(someInstances(LIMIT));
  for (let n = 0; n < DUE; n += LIMIT) await park(await claim(store, runner, LIMIT, LIMIT));
  /** @type {number[]} */
  const times = [];
  const cycle = async () => {
    /** @type {import("./runs.mjs").Claimed[]} */
    let claimed = [];
    const ms = await timed(async () => (claimed = await claim(store, runner, LIMIT)));
    if (claimed.length < LIMIT) throw new Error(`claimed ${claimed.length} of ${LIMIT}`);
    await park(claimed);
    times.push(ms);
    return ms;
  };
  return { cycle, times, mean: () => sum(times) / times.length };
}

// @ts-check
// Claims of 100 tickets: in tables with nothing else, beside a million parked instances, and under an old
// snapshot that keeps every dead index entry in place.
import { figure, rounds, timed } from "../measure.mjs";
import { aPart, aRunner, claim, commitAll, someInstances } from "./runs.mjs";

/**
 * @typedef {object} ClaimResult
 * @property {number} parked
 * @property {number} churned claims and parks under the snapshot
 * @property {Record<string, import("../measure.mjs").Figure>} ms of one claim of 100
 * @property {Record<string, import("../measure.mjs").Figure>} meanMs
 * @property {number} parkedRatio
 * @property {number} snapshotRatio
 */

const LIMIT = 100;
const DUE = 2_000;

/**
 * @param {import("./databases.mjs").Database} database
 * @param {{ rounds: number, share: number, progress: (line: string) => void }} options
 * @returns {Promise<ClaimResult>}
 */
export async function benchClaim(database, { rounds: count, share, progress }) {
  const parked = Math.round(1_000_000 * share);
  const churned = Math.round(100_000 * share);
  const perSample = 40;
  const empty = await database.world();
  const full = await database.world();
  const old = await database.world();
  /** @type {Record<string, number[]>} */
  const means = {};
  try {
    progress(`claim: loading ${parked.toLocaleString("en-US")} parked instances`);
    await full.park(parked);
    const worlds = { empty, parked: full, snapshot: old };
    /** @type {Record<string, () => Promise<number>>} */
    const samplers = {};
    for (const [name, world] of Object.entries(worlds)) {
      const cycle = await cycler(world.store);
      means[name] = [];
      samplers[name] = async () => {
        /** @type {number[]} */
        const times = [];
        for (let n = 0; n < perSample; n++) times.push(await cycle());
        means[name]?.push(times.reduce((sum, ms) => sum + ms, 0) / times.length);
        return figure(times).median;
      };
    }
    const { snapshot = never, ...quiet } = samplers;
    progress("claim: empty and parked");
    const first = await rounds(count, quiet);

    progress(`claim: ${churned.toLocaleString("en-US")} claims and parks under an old snapshot`);
    const letGo = await old.holdSnapshot();
    const churn = await cycler(old.store);
    for (let n = 0; n < churned; n += LIMIT) await churn();
    const { snapshot: held } = await rounds(count, { snapshot });
    await letGo();
    // Again, for the drift of the machine in between.
    const { empty: again } = await rounds(count, { empty: quiet["empty"] ?? never });

    if (!first["empty"] || !first["parked"] || !held || !again) throw new Error("no sample");
    const baseline = figure([...first["empty"].samples, ...again.samples]);
    return {
      parked,
      churned,
      ms: { empty: baseline, parked: first["parked"], snapshot: held },
      meanMs: Object.fromEntries(
        Object.entries(means).map(([name, samples]) => [name, figure(samples)]),
      ),
      parkedRatio: first["parked"].median / first["empty"].median,
      snapshotRatio: held.median / baseline.median,
    };
  } finally {
    for (const world of [empty, full, old]) await world.close();
  }
}

const never = () => Promise.reject(new Error("no contestant"));

/**
 * Claims 100 due tickets and gives them back, due again; answers how long the claim took.
 * @param {import("./databases.mjs").Store} store
 */
async function cycler(store) {
  const runner = await aRunner(store);
  for (let n = 0; n < DUE; n += 100) await store.create(someInstances(100));
  return async () => {
    /** @type {import("./runs.mjs").Claimed[]} */
    let claimed = [];
    const ms = await timed(async () => (claimed = await claim(store, runner, LIMIT)));
    if (claimed.length < LIMIT) throw new Error(`claimed ${claimed.length} of ${LIMIT}`);
    await commitAll(
      store,
      claimed.map((run) =>
        aPart(run, 1, { kind: "park", waitMask: 4, wake: { inMs: 0 }, historyBytes: 300 }),
      ),
    );
    return ms;
  };
}

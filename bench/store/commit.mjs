// @ts-check
// Measures fenced group commit of step rows, against inserts of the same rows with nothing around them.
import { compare, ratio, sum, timed } from "../measure.mjs";
import { aStepPart, aStepRow, commitAll, leased } from "./runs.mjs";

/**
 * @typedef {object} CommitResult
 * @property {number} batch rows per commit
 * @property {import("../measure.mjs").Figure} store rows/s
 * @property {Record<string, import("../measure.mjs").Figure>} raw rows/s
 * @property {string} bestRaw
 * @property {import("../measure.mjs").Figure} ratio of the store to the best raw
 */

/** Commits per slice, which takes some 10 ms. */
const SIZES = [
  { batch: 1, runs: 200, commits: 20 },
  { batch: 20, runs: 200, commits: 10 },
  { batch: 200, runs: 200, commits: 4 },
  { batch: 1000, runs: 1000, commits: 1 },
];
const SLICES = 30;

/**
 * @param {import("./databases.mjs").Database} database
 * @param {import("./index.mjs").Options} options
 */
export async function benchCommit(database, { rounds, share, batches, progress }) {
  /** @type {CommitResult[]} */
  const results = [];
  for (const { batch, runs: size, commits } of SIZES) {
    if (batches.length > 0 && !batches.includes(batch)) continue;
    progress(`commit, batches of ${batch}`);
    const world = await database.world();
    try {
      const { runs } = await leased(world.store, size);
      /**
       * Goes through all runs in turn, so that every run gets its steps in order.
       * @template T
       * @param {(run: (typeof runs)[number], ord: number) => T} make
       */
      const sequence = (make) => {
        let n = 0;
        return () =>
          Array.from({ length: batch }, () => {
            const run = /** @type {(typeof runs)[number]} */ (runs[n % runs.length]);
            const ord = Math.floor(n / runs.length) + 1;
            n += 1;
            return make(run, ord);
          });
      };
      /**
       * Rows and parts are made before the clock starts.
       * @param {() => () => Promise<unknown>} bind
       */
      const slice = (bind) => async () => {
        const writes = Array.from({ length: commits }, bind);
        return timed(async () => {
          for (const write of writes) await write();
        });
      };
      const nextParts = sequence(aStepPart);
      /** @type {Record<string, () => Promise<number>>} */
      const contestants = {
        store: slice(() => {
          const parts = nextParts();
          return () => commitAll(world.store, parts);
        }),
      };
      for (const raw of await world.rawInserts()) {
        const nextRows = sequence(aStepRow);
        contestants[raw.name] = slice(() => raw.bind(nextRows()));
      }
      const slices = Math.ceil(SLICES * share);
      const { store, ...raw } = await compare(
        { rounds, slices },
        contestants,
        (ms) => (slices * commits * batch * 1000) / sum(ms),
      );
      const [best] = Object.entries(raw).toSorted(([, a], [, b]) => b.median - a.median);
      if (store === undefined || best === undefined) throw new Error("no sample");
      const [bestRaw, figure] = best;
      results.push({ batch, store, raw, bestRaw, ratio: ratio(store, figure) });
    } finally {
      await world.close();
    }
  }
  return results;
}

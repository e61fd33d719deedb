// @ts-check
// Fenced group commit of step rows, against inserts of the same rows with nothing around them.
import { performance } from "node:perf_hooks";
import { figure, rounds } from "../measure.mjs";
import { aStepPart, aStepRow, commitAll, leased } from "./runs.mjs";

/**
 * @typedef {object} CommitResult
 * @property {number} batch rows per commit
 * @property {import("../measure.mjs").Figure} store rows/s
 * @property {Record<string, import("../measure.mjs").Figure>} raw rows/s
 * @property {string} bestRaw
 * @property {import("../measure.mjs").Figure} ratio store to the best raw, round by round
 */

/** Runs per batch size, and commits per sample: about a second each. */
const SIZES = [
  { batch: 1, runs: 200, commits: 600 },
  { batch: 20, runs: 200, commits: 400 },
  { batch: 200, runs: 200, commits: 150 },
  { batch: 1000, runs: 1000, commits: 40 },
];

/**
 * @param {import("./databases.mjs").Database} database
 * @param {{ rounds: number, share: number, progress: (line: string) => void }} options share: of the commits
 */
export async function benchCommit(database, { rounds: count, share, progress }) {
  /** @type {CommitResult[]} */
  const results = [];
  for (const { batch, runs: size, commits } of SIZES) {
    progress(`commit, batches of ${batch}`);
    const world = await database.world();
    try {
      const { runs } = await leased(world.store, size);
      const perSample = Math.max(3, Math.round(commits * share));
      /**
       * Batches that go through all runs in turn, so that every run gets its steps in order.
       * @template T
       * @param {{ at: number }} from
       * @param {(run: (typeof runs)[number], ord: number) => T} make
       */
      const batches = (from, make) =>
        Array.from({ length: perSample }, () =>
          Array.from({ length: batch }, () => {
            const n = from.at++;
            const run = /** @type {(typeof runs)[number]} */ (runs[n % runs.length]);
            return make(run, Math.floor(n / runs.length) + 1);
          }),
        );
      /** @param {readonly (() => Promise<unknown>)[]} writes */
      const rate = async (writes) => {
        const start = performance.now();
        for (const write of writes) await write();
        return (writes.length * batch * 1000) / (performance.now() - start);
      };
      const parts = { at: 0 };
      /** @type {Record<string, () => Promise<number>>} */
      const contestants = {
        store: () =>
          rate(batches(parts, aStepPart).map((each) => () => commitAll(world.store, each))),
      };
      for (const raw of await world.rawInserts()) {
        const rows = { at: 0 };
        contestants[raw.name] = () => rate(batches(rows, aStepRow).map((each) => raw.bind(each)));
      }
      const { store, ...raws } = await rounds(count, contestants);
      if (store === undefined) throw new Error("no sample");
      const [best] = Object.entries(raws).toSorted(([, a], [, b]) => b.median - a.median);
      if (best === undefined) throw new Error("no raw sample");
      const [bestRaw, rawFigure] = best;
      const ratio = figure(store.samples.map((sample, n) => sample / (rawFigure.samples[n] ?? 0)));
      results.push({ batch, store, raw: raws, bestRaw, ratio });
    } finally {
      await world.close();
    }
  }
  return results;
}

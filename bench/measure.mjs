// @ts-check
import { performance } from "node:perf_hooks";

/** @typedef {{ median: number, min: number, max: number, samples: number[] }} Figure */

/**
 * @param {readonly number[]} samples
 * @returns {Figure}
 */
export function figure(samples) {
  const sorted = samples.toSorted((a, b) => a - b);
  const at = (/** @type {number} */ n) => sorted[n] ?? Number.NaN;
  const middle = sorted.length / 2;
  const median =
    sorted.length % 2 === 1 ? at(Math.floor(middle)) : (at(middle - 1) + at(middle)) / 2;
  return { median, min: at(0), max: at(sorted.length - 1), samples: [...samples] };
}

/** @param {readonly number[]} list */
export const median = (list) => figure(list).median;

/** @param {readonly number[]} list */
export const sum = (list) => list.reduce((total, value) => total + value, 0);

/** @param {() => Promise<unknown>} work */
export async function timed(work) {
  const start = performance.now();
  await work();
  return performance.now() - start;
}

/**
 * A round is made of slices of some milliseconds, which the contestants run in turn, so that what disturbs the machine
 * disturbs all of them alike. A first round warms up and does not count.
 * @param {{ rounds: number, slices: number }} size
 * @param {Record<string, () => Promise<number>>} contestants each answers how many ms its slice took
 * @param {(ms: readonly number[]) => number} sample of one round, from its slices
 * @returns {Promise<Record<string, Figure>>}
 */
export async function compare({ rounds, slices }, contestants, sample) {
  const names = Object.keys(contestants);
  /** @type {Record<string, number[]>} */
  const samples = Object.fromEntries(names.map((name) => [name, []]));
  for (let round = 0; round <= rounds; round++) {
    /** @type {Record<string, number[]>} */
    const times = Object.fromEntries(names.map((name) => [name, []]));
    for (let slice = 0; slice < slices; slice++) {
      // Each starts as often as it comes second, so that what one leaves behind (a cache, a flush) hits all alike.
      const shift = slice % names.length;
      for (const name of [...names.slice(shift), ...names.slice(0, shift)]) {
        times[name]?.push((await contestants[name]?.()) ?? Number.NaN);
      }
    }
    if (round > 0) for (const name of names) samples[name]?.push(sample(times[name] ?? []));
  }
  return Object.fromEntries(names.map((name) => [name, figure(samples[name] ?? [])]));
}

/**
 * Compares round by round, so that a slow minute is slow for both.
 * @param {Figure | undefined} a
 * @param {Figure | undefined} b
 * @returns {Figure}
 */
export function ratio(a, b) {
  return figure((a?.samples ?? []).map((sample, n) => sample / (b?.samples[n] ?? Number.NaN)));
}

/** @param {number} value */
export function short(value) {
  if (value >= 1000) return Math.round(value).toLocaleString("en-US");
  return value >= 100 ? value.toFixed(0) : value >= 10 ? value.toFixed(1) : value.toFixed(2);
}

/** @param {Figure | undefined} given */
export const spread = (given) =>
  given === undefined ? "" : `${short(given.median)} [${short(given.min)}..${short(given.max)}]`;

/**
 * @param {readonly string[]} head
 * @param {readonly (readonly string[])[]} rows
 */
export function table(head, rows) {
  const all = [head, ...rows];
  const widths = head.map((_, n) => Math.max(...all.map((row) => (row[n] ?? "").length)));
  const line = (/** @type {readonly string[]} */ row) =>
    `| ${widths.map((width, n) => (row[n] ?? "").padEnd(width)).join(" | ")} |`;
  return [line(head), line(widths.map((width) => "-".repeat(width))), ...rows.map(line)].join("\n");
}

/**
 * @param {string} option
 * @param {string} list
 * @param {readonly string[]} known
 */
export function chosen(option, list, known) {
  const words = list
    .split(",")
    .map((word) => word.trim())
    .filter(Boolean);
  const unknown = words.find((word) => !known.includes(word));
  if (unknown !== undefined)
    throw new Error(`${option}: ${unknown} is none of ${known.join(", ")}`);
  return words;
}

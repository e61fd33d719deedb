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

/** @param {() => Promise<unknown>} work */
export async function timed(work) {
  const start = performance.now();
  await work();
  return performance.now() - start;
}

/**
 * Runs every contestant once per round, each round starting with another one, so that what disturbs the
 * machine disturbs all of them alike. A first round warms up and does not count.
 * @param {number} count
 * @param {Record<string, () => Promise<number>>} contestants
 * @returns {Promise<Record<string, Figure>>}
 */
export async function rounds(count, contestants) {
  const names = Object.keys(contestants);
  /** @type {Record<string, number[]>} */
  const samples = Object.fromEntries(names.map((name) => [name, []]));
  for (let round = 0; round <= count; round++) {
    const shift = round % names.length;
    for (const name of [...names.slice(shift), ...names.slice(0, shift)]) {
      const sample = await contestants[name]?.();
      if (round > 0 && sample !== undefined) samples[name]?.push(sample);
    }
  }
  return Object.fromEntries(names.map((name) => [name, figure(samples[name] ?? [])]));
}

/** @param {number} value */
export function short(value) {
  if (value >= 1000) return Math.round(value).toLocaleString("en-US");
  return value >= 100 ? value.toFixed(0) : value >= 10 ? value.toFixed(1) : value.toFixed(2);
}

/** @param {Figure} given */
export const spread = ({ median, min, max }) => `${short(median)} [${short(min)}..${short(max)}]`;

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

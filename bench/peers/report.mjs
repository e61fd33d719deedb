// @ts-check
import { figure, short, spread, table } from "../measure.mjs";
import { engines } from "./engines/index.mjs";
import { workloads } from "./workloads.mjs";

/**
 * One process chain of one round.
 * @typedef {object} Sample
 * @property {number} round
 * @property {string} engine
 * @property {string} workload
 * @property {number} load of the machine when it began
 * @property {import("./workloads.mjs").Figures} [figures]
 * @property {import("./usage.mjs").Usage} [usage]
 * @property {string} [failure]
 *
 * @typedef {object} Machine
 * @property {string} date
 * @property {number} cores
 * @property {number} memoryGb
 * @property {string} node
 * @property {string} processor
 * @property {Record<string, string>} versions by engine
 * @property {string[]} servers
 */

/**
 * @param {readonly Sample[]} samples
 * @param {Machine} machine
 * @param {{ rounds: number, share: number }} size
 */
export function report(samples, machine, { rounds, share }) {
  const loads = samples.map(({ load }) => load);
  const names = [...new Set(samples.map(({ engine }) => engine))];
  const titles = names.map((name) => engines[name]?.title ?? name);
  const sections = [
    `${machine.date} UTC; ${machine.cores} cores (${machine.processor}), ${machine.memoryGb} GB; Node ${machine.node}; ` +
      `load ${short(Math.min(...loads))} to ${short(Math.max(...loads))}; ` +
      `median [min..max] of ${rounds} rounds${share === 1 ? "" : ` (quick: ${share} of the work)`}; each figure from a process and a database of its own`,
    [
      ...machine.servers.map((line) => `- ${line}`),
      ...names.map((name) => {
        const { title, settings } = engines[name] ?? {};
        return `- ${title} (${machine.versions[name]}): ${settings}`;
      }),
    ].join("\n"),
  ];
  const done = Object.keys(workloads).filter((name) =>
    samples.some(({ workload }) => workload === name),
  );
  const of = (/** @type {string} */ engine, /** @type {string} */ workload) =>
    samples.filter((sample) => sample.engine === engine && sample.workload === workload);

  sections.push(
    table(
      ["", "", ...titles],
      done.flatMap((workload) =>
        Object.entries(workloads[workload]?.figures ?? {}).map(([key, title], n) => [
          n === 0 ? workload : "",
          title.trim(),
          ...names.map((engine) => cell(of(engine, workload), key)),
        ]),
      ),
    ),
    done.map((name) => `${name}: ${workloads[name]?.title}`).join(". ") + ".",
  );

  const costs = done.flatMap((workload) => {
    const unit = workloads[workload]?.unit;
    if (unit === undefined) return [];
    return COSTS.map(([key, title, scale], n) => [
      n === 0 ? `${workload}, per ${unit}` : "",
      title,
      ...names.map((engine) => costCell(of(engine, workload), key, scale)),
    ]);
  });
  if (costs.length > 0) sections.push(`What it cost\n\n${table(["", "", ...titles], costs)}`);

  const failures = samples.filter(({ failure }) => failure !== undefined);
  if (failures.length > 0) {
    const lines = failures.map(
      ({ engine, workload, round, failure }) =>
        `- ${engine}, ${workload}, round ${round}: ${failure}`,
    );
    sections.push(`Failed\n\n${lines.join("\n")}`);
  }
  return `${sections.join("\n\n")}\n`;
}

/** @type {[keyof import("./usage.mjs").Usage, string, number][]} */
const COSTS = [
  ["commits", "write commits", 1],
  ["statements", "statements", 1],
  ["walBytes", "WAL bytes", 1],
  ["nodeMs", "Node CPU, µs", 1000],
  ["serverMs", "database CPU, µs", 1000],
];

/**
 * @param {readonly Sample[]} samples
 * @param {string} key
 */
function cell(samples, key) {
  const values = samples.flatMap(({ figures }) => figures?.[key] ?? []);
  if (values.length === 0) return samples.some(({ failure }) => failure) ? "failed" : "-";
  return key === "samples" ? String(values.reduce((a, b) => a + b)) : spread(figure(values));
}

/**
 * @param {readonly Sample[]} samples
 * @param {keyof import("./usage.mjs").Usage} key
 * @param {number} scale
 */
function costCell(samples, key, scale) {
  const values = samples.flatMap(({ figures, usage }) => {
    const value = usage?.[key];
    const units = figures?.["units"];
    return value === undefined || units === undefined ? [] : (value * scale) / units;
  });
  return values.length === 0 ? "-" : precise(figure(values).median);
}

/** @param {number} value */
const precise = (value) => (value < 0.1 ? value.toFixed(3) : short(value));

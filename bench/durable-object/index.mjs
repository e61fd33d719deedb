// @ts-check
// npm run bench -- durable-object: Pawl in a Durable Object beside Cloudflare's own Workflows engine, in one workerd.
import { availableParallelism, loadavg, totalmem } from "node:os";
import { parseArgs } from "node:util";
import { askLong } from "../ask.mjs";
import { figure, median, ratio, short, spread, table } from "../measure.mjs";
import { openWorkerd } from "../workerd/index.mjs";

const MIN_THROUGHPUT = 20;
const MAX_LATENCY = 0.25;
const TURNS = 10;
const engines = /** @type {const} */ (["ours", "theirs"]);

/** @param {string[]} args */
export async function benchDurableObject(args) {
  const { values } = parseArgs({
    args,
    options: {
      rounds: { type: "string", default: "3" },
      quick: { type: "boolean", default: false },
    },
  });
  const many = { instances: values.quick ? 50 : 200, steps: 10 };
  const one = { instances: values.quick ? 2 : 10, steps: 1 };
  /** @type {Record<string, number[]>} */
  const perSecond = { ours: [], theirs: [] };
  /** @type {Record<string, number[]>} */
  const p50 = { ours: [], theirs: [] };
  for (let round = 1; round <= Number(values.rounds); round++) {
    const { ask, end } = await open();
    try {
      for (const engine of round % 2 === 1 ? engines : engines.toReversed()) {
        console.error(`round ${round}: ${engine}`);
        await ask(engine, "throughput", { instances: 10, steps: many.steps });
        const ms = Number(await ask(engine, "throughput", many));
        perSecond[engine]?.push((many.instances * many.steps * 1000) / ms);
      }
      // The engines run in turns of a few, so that what disturbs the machine disturbs both alike.
      /** @type {Record<string, number[]>} */
      const ms = { ours: [], theirs: [] };
      for (let turn = 0; turn < TURNS; turn++) {
        for (const engine of engines) ms[engine]?.push(...(await ask(engine, "latencies", one)));
      }
      for (const engine of engines) p50[engine]?.push(median(ms[engine] ?? []));
    } finally {
      await end();
    }
  }
  const [ours, theirs] = engines.map((name) => figure(perSecond[name] ?? []));
  const [oursMs, theirsMs] = engines.map((name) => figure(p50[name] ?? []));
  const times = ratio(ours, theirs);
  const share = ratio(oursMs, theirsMs);
  console.log(
    `${new Date().toISOString().slice(0, 16)} UTC; ${availableParallelism()} cores, ` +
      `${Math.round(totalmem() / 2 ** 30)} GB; Node ${process.version}; load ${(loadavg()[0] ?? 0).toFixed(1)}; ` +
      `${values.rounds} rounds\n`,
  );
  console.log(
    table(
      ["", "Pawl in a Durable Object", "Cloudflare's engine, local", "ratio", "target"],
      [
        [
          `${many.instances} instances × ${many.steps} steps, steps/s`,
          spread(ours),
          spread(theirs),
          spread(times),
          `≥ ${MIN_THROUGHPUT}: ${times.median >= MIN_THROUGHPUT ? "holds" : "missed"}`,
        ],
        [
          "one-step instance, p50 ms",
          spread(oursMs),
          spread(theirsMs),
          spread(share),
          `≤ ${short(MAX_LATENCY)}: ${share.median <= MAX_LATENCY ? "holds" : "missed"}`,
        ],
      ],
    ),
  );
}

/** Opens one workerd with both engines, each on files of its own. */
async function open() {
  const { url, end } = await openWorkerd("durable-object.mjs", {
    durableObjects: { OBJECTS: { className: "Host", useSQLite: true } },
    workflows: { THEIRS: { name: "theirs", className: "Theirs" } },
  });
  return {
    /**
     * @param {string} engine
     * @param {"throughput" | "latencies"} measure
     * @param {{ instances: number, steps: number }} size
     */
    ask: (engine, measure, size) => askLong(url, { engine, measure, ...size }),
    end,
  };
}

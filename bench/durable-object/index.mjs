// @ts-check
// npm run bench -- durable-object: Pawl in a Durable Object beside Cloudflare's own Workflows engine, in one workerd.
import { mkdtemp, rm } from "node:fs/promises";
import { availableParallelism, loadavg, tmpdir, totalmem } from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { build } from "esbuild";
import { Miniflare } from "miniflare";
import { figure, median, ratio, short, spread, table } from "../measure.mjs";

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
      // In turns of a few: what disturbs the machine disturbs both alike.
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

/** One workerd with both engines, each on files of its own. */
async function open() {
  const folder = await mkdtemp(path.join(tmpdir(), "pawl-bench-"));
  const { outputFiles } = await build({
    entryPoints: [fileURLToPath(new URL("worker/index.mjs", import.meta.url))],
    bundle: true,
    write: false,
    format: "esm",
    target: "es2022",
    external: ["cloudflare:*", "node:*"],
  });
  const server = new Miniflare({
    modules: [{ type: "ESModule", path: "worker.mjs", contents: outputFiles[0]?.text ?? "" }],
    compatibilityDate: "2026-04-20",
    durableObjects: { OBJECTS: { className: "Host", useSQLite: true } },
    durableObjectsPersist: path.join(folder, "objects"),
    workflows: { THEIRS: { name: "theirs", className: "Theirs" } },
    workflowsPersist: path.join(folder, "workflows"),
  });
  await server.ready;
  return {
    /**
     * @param {string} engine
     * @param {"throughput" | "latencies"} measure
     * @param {{ instances: number, steps: number }} size
     * @returns {Promise<any>}
     */
    ask: async (engine, measure, size) => {
      const body = JSON.stringify({ engine, measure, ...size });
      const answer = await server.dispatchFetch("http://bench/", { method: "POST", body });
      if (!answer.ok) throw new Error(await answer.text());
      return answer.json();
    },
    end: async () => {
      await server.dispose();
      await rm(folder, { recursive: true });
    },
  };
}

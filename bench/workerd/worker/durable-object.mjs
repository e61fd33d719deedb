// @ts-check
// Runs inside workerd: the same workflow for Pawl in a Durable Object and for Cloudflare's own engine.
import { WorkflowEntrypoint } from "cloudflare:workers";
import { workflowsBinding, workflowsDurableObject } from "@pawl/dispatcher-cloudflare-do";
import { defineRegistry, defineWorkflow } from "pawl";
import { completed } from "./status.mjs";

/** Counts runs of either engine whose code has come to its end. */
const runs = { ended: 0 };

/**
 * @param {{ payload: { steps: number } }} event
 * @param {{ do(name: string, body: () => Promise<unknown>): Promise<unknown> }} step
 */
async function run({ payload }, step) {
  for (let n = 1; n <= payload.steps; n++) {
    await step.do(`step ${n}`, async () => ({ n, text: "a small result" }));
  }
  runs.ended += 1;
  return payload.steps;
}

export class Theirs extends WorkflowEntrypoint {
  /** @override */
  run(/** @type {any} */ event, /** @type {any} */ step) {
    return run(event, step);
  }
}

const registry = defineRegistry({
  OURS: defineWorkflow({
    name: "ours",
    run: (event, step) => run(/** @type {any} */ (event), step),
  }),
});

export const Host = workflowsDurableObject({ workflows: registry });

/** @typedef {import("./status.mjs").Instance & { result?(): Promise<unknown> }} Instance */
/** @typedef {{ create(options: object): Promise<Instance> }} Engine */

/**
 * Runs all at once, to the last status "complete".
 * @param {Engine} engine
 * @param {{ instances: number, steps: number }} size
 */
async function throughput(engine, { instances, steps }) {
  const before = runs.ended;
  const startedAt = Date.now();
  const made = await Promise.all(
    Array.from({ length: instances }, () =>
      engine.create({ id: crypto.randomUUID(), params: { steps } }),
    ),
  );
  // Nobody asks while they run, because the questions would be measured, too.
  while (runs.ended < before + instances) await scheduler.wait(1);
  await Promise.all(made.map((instance) => completed(instance, 1)));
  return Date.now() - startedAt;
}

/**
 * Runs one at a time: from create to the result, or to status "complete" where there is nothing else to wait for.
 * @param {Engine} engine
 * @param {{ instances: number, steps: number }} size
 */
async function latencies(engine, { instances, steps }) {
  const ms = [];
  for (let n = 0; n < instances; n++) {
    const before = runs.ended;
    const startedAt = Date.now();
    const instance = await engine.create({ id: crypto.randomUUID(), params: { steps } });
    if (instance.result !== undefined) await instance.result();
    else {
      while (runs.ended === before) await scheduler.wait(1);
      await completed(instance, 1);
    }
    ms.push(Date.now() - startedAt);
  }
  return ms;
}

export default {
  /**
   * @param {Request} request
   * @param {{ OBJECTS: any, THEIRS: Engine }} env
   */
  async fetch(request, env) {
    const { engine, measure, ...size } = await request.json();
    const chosen = engine === "ours" ? workflowsBinding(env.OBJECTS)["OURS"] : env.THEIRS;
    const measured = measure === "throughput" ? throughput : latencies;
    return Response.json(await measured(/** @type {any} */ (chosen), size));
  },
};

// @ts-check
// Runs inside workerd: the workflows of the suite for Cloudflare's own engine, and what their clients do.
import { WorkflowEntrypoint } from "cloudflare:workers";
import { eachOf } from "../../peers/each.mjs";
import { completed } from "./status.mjs";

/** @typedef {{ id: string, kind: string, steps: number, clock: string }} Work */

const POLL_MS = 5;

const done = {
  bodies: 0,
  /** @type {Set<string>} runs that came to their wait */
  arrived: new Set(),
  /** @type {Set<string>} runs whose code has come to its end */
  ended: new Set(),
};

export class Bench extends WorkflowEntrypoint {
  /**
   * @override
   * @param {{ payload: any }} event
   * @param {import("cloudflare:workers").WorkflowStep} step
   */
  async run({ payload }, step) {
    const { id, kind, steps, clock } = /** @type {Work} */ (payload);
    for (let n = 0; n < steps; n++) {
      await step.do(`step ${n}`, async () => {
        done.bodies += 1;
        return { ok: true, i: n };
      });
    }
    let output = null;
    if (kind === "wait") {
      done.arrived.add(id);
      await step.waitForEvent("go", { type: "go", timeout: "1 hour" });
      // The clock in here shows whole milliseconds and stands still, so the sender's clock tells when the step
      // came.
      output = await step.do("go on", async () => Number(await (await fetch(clock)).text()));
    }
    done.ended.add(id);
    return output;
  }
}

/** @type {Record<string, (engine: Workflow<Work>, given: any) => Promise<unknown>>} */
const calls = {
  start: async (engine, /** @type {Work} */ work) => {
    await engine.create({ id: work.id, params: work });
    return null;
  },
  result: async (engine, { id }) => completed(await engine.get(id), POLL_MS),
  runAll: async (
    engine,
    /** @type {{ works: Work[], inFlight: number }} */ { works, inFlight },
  ) => {
    await eachOf(works, inFlight, async (work) => {
      const instance = await engine.create({ id: work.id, params: work });
      // Nobody asks while it runs, because each question reads its history and would take from the others.
      while (!done.ended.has(work.id)) await scheduler.wait(1);
      await completed(instance, POLL_MS);
    });
    return null;
  },
  hasArrived: async (_, { id }) => done.arrived.has(id),
  send: async (engine, { id }) => {
    await (await engine.get(id)).sendEvent({ type: "go", payload: {} });
    return null;
  },
  bodies: async () => done.bodies,
};

export default {
  /**
   * @param {Request} request
   * @param {{ BENCH: Workflow<Work> }} env
   */
  async fetch(request, env) {
    const call = calls[new URL(request.url).pathname.slice(1)];
    if (call === undefined) return new Response("unknown", { status: 404 });
    return Response.json(await call(env.BENCH, await request.json()));
  },
};

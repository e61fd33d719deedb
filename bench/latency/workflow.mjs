// @ts-check
import { performance } from "node:perf_hooks";
import { createWorkflows, defineWorkflow } from "pawl";
import { postgresStore } from "pawl/postgres";
import pg from "pg";

/** A clock that is the same for all processes of a machine, to some microseconds. */
export const now = () => performance.timeOrigin + performance.now();

/** Returns the time at which it began to go on. */
const Wait = defineWorkflow({
  name: "wait",
  /**
   * @param {import("pawl").WorkflowEvent<undefined>} _event
   * @param {import("pawl").WorkflowStep} step
   */
  async run(_event, step) {
    await step.waitForEvent("event", { type: "go", timeout: "1 hour" });
    return step.do("go on", () => now());
  },
});

/**
 * @param {string} url
 * @param {string} schema
 */
export function open(url, schema) {
  const pool = new pg.Pool({ connectionString: url, max: 4 });
  const pawl = createWorkflows({ workflows: { Wait }, store: postgresStore(pool, { schema }) });
  const end = async () => {
    await pawl.close();
    await pool.end();
  };
  return { pawl, pool, end };
}

import { createWorkflows, defineWorkflow, type WorkflowEvent } from "pawl";
import { bearerToken } from "pawl/auth";
import { postgresStore } from "pawl/postgres";
import pg from "pg";

const RESIZE = defineWorkflow({
  name: "resize",
  async run(event: WorkflowEvent<{ image: string }>, step) {
    const sizes: string[] = [];
    for (const width of [100, 400, 1600]) {
      sizes.push(await step.do(`to ${width}`, () => `${event.payload.image}@${width}`));
    }
    return { sizes, process: process.pid };
  },
});

/** The same engine in both processes; what each does with it is its own affair. */
export function openPawl() {
  const pool = new pg.Pool({ connectionString: process.env["DATABASE_URL"] });
  return createWorkflows({
    workflows: { RESIZE },
    store: postgresStore(pool),
    authorize: { all: bearerToken(process.env["API_TOKEN"] ?? "") },
  });
}

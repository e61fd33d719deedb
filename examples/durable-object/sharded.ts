import {
  workflowsBinding,
  workflowsDurableObject,
  workflowsFetch,
} from "@pawl/dispatcher-cloudflare-do";
import { defineRegistry, defineWorkflow } from "pawl";

type Env = { readonly PAWL: DurableObjectNamespace; readonly KEEP_MS: number };

const registry = defineRegistry({
  ORDER: defineWorkflow({
    name: "order",
    run: (event, step) => step.do("charge", () => `charged ${event.instanceId}`),
  }),
});

// #region sharding
const spread = { workflows: registry, shards: 4 };

const Workflows = workflowsDurableObject((env: Env) => ({
  ...spread,
  namespace: env.PAWL, // the binding to this class: its objects ask each other
}));

export default {
  async fetch(request, env) {
    const { pathname } = new URL(request.url);
    if (pathname.startsWith("/api/")) return workflowsFetch(env.PAWL, request, spread);

    const { ORDER } = workflowsBinding(env.PAWL, spread);
    const orders = await ORDER.createBatch([{ id: "a" }, { id: "b" }, { id: "c" }, { id: "d" }]);
    return Response.json(await Promise.all(orders.map((order) => order.result())));
  },
} satisfies ExportedHandler<Env>;
// #endregion

// #region retention
const ENDED_LONG_AGO = `SELECT iid FROM pawl_instance
  WHERE status IN ('complete', 'errored', 'terminated') AND finished_at < ? LIMIT 100`;

export class PawlHost extends Workflows {
  override async alarm(): Promise<void> {
    await super.alarm();
    const { storage } = this.ctx;
    const before = Date.now() - this.env.KEEP_MS;
    storage.transactionSync(() => {
      for (const table of ["attempt", "step", "event", "past_run", "instance"]) {
        storage.sql.exec(`DELETE FROM pawl_${table} WHERE iid IN (${ENDED_LONG_AGO})`, before);
      }
    });
  }
}
// #endregion

import { openSqlite, startRunner } from "@pawl/dispatcher-node";
import { createWorkflows, WorkflowEntrypoint, type WorkflowEvent, type WorkflowStep } from "pawl";
import { sqliteStore } from "pawl/sqlite";

type Order = { readonly email: string; readonly amount: number };

class OrderWorkflow extends WorkflowEntrypoint<unknown, Order> {
  async run(event: WorkflowEvent<Order>, step: WorkflowStep) {
    const { email, amount } = event.payload;
    const payment = await step.do("charge the card", () => `${amount} from ${email}`);
    await step.sleep("let it settle", "100 ms");
    const approval = await step.waitForEvent<{ by: string }>("approval", {
      type: "approved",
      timeout: "7 days",
    });
    return { payment, approvedBy: approval.payload.by };
  }
}

const pawl = createWorkflows({
  workflows: { ORDER: { name: "order", workflow: OrderWorkflow } },
  store: sqliteStore(openSqlite("pawl.db")),
});
await pawl.migrate();
const runner = startRunner(pawl);

const order = await pawl.workflows.ORDER.create({
  id: "order-1",
  params: { email: "ada@example.org", amount: 42 },
});
await order.sendEvent({ type: "approved", payload: { by: "Grace" } });
console.log(await order.result()); // { payment: "42 from ada@example.org", approvedBy: "Grace" }

await runner.stop();
await pawl.close();

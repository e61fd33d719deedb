import { createWorkflows, defineWorkflow, WorkflowEntrypoint, type Bindings } from "pawl";
import { same } from "../same.js";
import { store, type Handle } from "../store.js";

class Plain extends WorkflowEntrypoint {
  override async run() {
    same<unknown>()(this.env);
  }
}
class Mails extends WorkflowEntrypoint<{ mailer: string }> {
  override async run() {
    same<string>()(this.env.mailer);
  }
}
const pays = defineWorkflow({
  name: "pays",
  run: async (_event, _step, { env }: { env: { bank: number } }) => env.bank,
});

const plain = { PLAIN: { name: "plain", workflow: Plain } } as const;
createWorkflows({ store, workflows: plain });

const both = { ...plain, MAILS: { name: "mails", workflow: Mails }, PAYS: pays } as const;
createWorkflows({ store, workflows: both, env: { mailer: "m", bank: 1 } });
createWorkflows({
  store,
  workflows: both,
  env: (workflows) => {
    same<Bindings<typeof both, Handle>>()(workflows);
    return { mailer: "m", bank: 1 };
  },
});
// @ts-expect-error env is required
createWorkflows({ store, workflows: both });
// @ts-expect-error all that any workflow declares
createWorkflows({ store, workflows: both, env: { mailer: "m" } });
// @ts-expect-error also from a function
createWorkflows({ store, workflows: both, env: () => ({ mailer: "m" }) });

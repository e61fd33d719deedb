// Quoted by docs/workflows.md.
import {
  defineRegistry,
  WorkflowEntrypoint,
  type Bindings,
  type WorkflowEvent,
  type WorkflowStep,
} from "pawl";

interface Env {
  readonly mail: { send(to: string): Promise<void> };
}

class SignupWorkflow extends WorkflowEntrypoint<Env, { readonly email: string }> {
  override async run(event: WorkflowEvent<{ readonly email: string }>, step: WorkflowStep) {
    await step.do("invite", () => this.workflows.REPORT.create({ params: { month: "May" } }));
    return event.payload.email;
  }
}

class ReportWorkflow extends WorkflowEntrypoint<Env, { readonly month: string }> {
  override async run(event: WorkflowEvent<{ readonly month: string }>, _step: WorkflowStep) {
    return event.payload.month;
  }
}

// #region register
export const registry = defineRegistry({
  SIGNUP: { name: "signup", workflow: SignupWorkflow },
  REPORT: { name: "report", workflow: ReportWorkflow },
});

declare module "pawl" {
  interface Register {
    workflows: Bindings<typeof registry>;
    env: Env;
  }
}
// #endregion

import type { RegisteredBindings, RegisteredEnv } from "./register.js";
import type { WorkflowStep } from "./step.js";
import type { types } from "./types.js";

export type WorkflowEvent<Params = unknown> = {
  readonly payload: Readonly<Params>;
  /** When the instance was created, by the database's clock. */
  readonly timestamp: Date;
  readonly instanceId: string;
  readonly workflowName: string;
  /** 1, and one more after every restart. */
  readonly runNumber: number;
};

/**
 * A workflow written as a class. Every turn that has to replay makes a new object, so fields are no place to
 * keep state: return it from steps.
 */
export abstract class WorkflowEntrypoint<
  Env = RegisteredEnv,
  Params = unknown,
  B = RegisteredBindings,
> {
  declare readonly [types]: { readonly env: Env; readonly params: Params };

  protected env: Env;
  /** The host's bindings, for children. */
  protected workflows: B;

  /** `ctx` is the engine's: a class with a constructor of its own hands it on. */
  constructor(ctx: object, env: Env) {
    this.env = env;
    this.workflows = (ctx as { workflows: B }).workflows;
  }

  abstract run(event: WorkflowEvent<Params>, step: WorkflowStep): Promise<unknown>;
}

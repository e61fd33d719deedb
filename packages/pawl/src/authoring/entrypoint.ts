import type { RegisteredBindings, RegisteredEnv } from "./register.js";
import type { WorkflowStep } from "./step.js";
import type { types } from "./types.js";

/** The event that started a run, the first argument of `run`. */
export type WorkflowEvent<Params = unknown> = {
  /** The params of `create`. */
  readonly payload: Readonly<Params>;
  /** When the instance was created, by the database's clock. */
  readonly timestamp: Date;
  readonly instanceId: string;
  readonly workflowName: string;
  /** 1 for the first run of an instance, and one more after each restart. */
  readonly runNumber: number;
};

/**
 * The base of a workflow that is written as a class. Each replay makes a new object, so fields are no place to keep
 * state: return it from steps.
 *
 * @example
 * ```ts
 * class SignupWorkflow extends WorkflowEntrypoint<Env, { email: string }> {
 *   async run(event: WorkflowEvent<{ email: string }>, step: WorkflowStep) {
 *     const user = await step.do("create the user", () => this.env.users.add(event.payload.email));
 *     await step.sleep("first day", "1 day");
 *     await step.do("send tips", () => this.env.mail.send(user.email, "tips"));
 *     return user.id;
 *   }
 * }
 * ```
 */
export abstract class WorkflowEntrypoint<
  Env = RegisteredEnv,
  Params = unknown,
  B = RegisteredBindings,
> {
  declare readonly [types]: { readonly env: Env; readonly params: Params };

  /** The `env` that was given to `createWorkflows`. */
  protected env: Env;
  /** The bindings of all registered workflows, to start and find other instances from here. */
  protected workflows: B;

  /** The engine calls this. A class with a constructor of its own passes `ctx` on to `super`. */
  constructor(ctx: object, env: Env) {
    this.env = env;
    this.workflows = (ctx as { workflows: B }).workflows;
  }

  /** The workflow's code. It is called again for every replay, so effects belong in steps. */
  abstract run(event: WorkflowEvent<Params>, step: WorkflowStep): Promise<unknown>;
}

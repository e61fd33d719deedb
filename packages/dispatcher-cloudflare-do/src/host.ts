import { DurableObject } from "cloudflare:workers";
import { ValidationError, type Registry, type WorkflowsOptions } from "pawl";
import { answer, type Answer, type Call } from "./calls.js";
import { Engine } from "./engine.js";
import type { WorkflowsObject } from "./namespace.js";

/** What `createWorkflows` takes, without `store`. */
export type WorkflowsObjectOptions<R extends Registry> = Omit<WorkflowsOptions<R>, "env"> & {
  /** What the workflows see as `env`; default the worker's own. */
  readonly env?: unknown;
  /** Objects over which instances are spread. There is one. */
  readonly shards?: 1;
};

export type WorkflowsObjectClass<Env> = new (
  ctx: DurableObjectState,
  env: Env,
) => DurableObject<Env> & WorkflowsObject;

/**
 * The class of a Durable Object that runs these workflows on its own storage. Options may be a function of the worker's
 * `env`, for what is secret.
 */
export function workflowsDurableObject<const R extends Registry, Env = unknown>(
  given: WorkflowsObjectOptions<R> | ((env: Env) => WorkflowsObjectOptions<R>),
): WorkflowsObjectClass<Env> {
  return class extends DurableObject<Env> implements WorkflowsObject {
    readonly #engine: Engine;

    constructor(ctx: DurableObjectState, env: Env) {
      super(ctx, env);
      const { shards = 1, ...options } = typeof given === "function" ? given(env) : given;
      if (shards !== 1) throw new ValidationError("shards must be 1: one object holds everything");
      this.#engine = new Engine(ctx.storage, { env, ...options });
    }

    override async fetch(request: Request): Promise<Response> {
      // Without tables the API says so itself.
      await this.#engine.ready().catch(() => {});
      return this.#engine.pawl.fetch(request);
    }

    override alarm(): Promise<void> {
      return this.#engine.alarmed();
    }

    /** A call of `workflowsBinding`. */
    async call(call: Call): Promise<Answer> {
      await this.#engine.ready();
      const { workflows, runner } = this.#engine.pawl;
      return answer(workflows, call, runner.logger);
    }
  };
}

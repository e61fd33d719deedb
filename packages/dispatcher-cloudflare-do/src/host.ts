import { DurableObject } from "cloudflare:workers";
import {
  checkOptions,
  IncompatibleDatabaseError,
  type Known,
  type Registry,
  type WorkflowsOptions,
} from "pawl";
import { encodeError, workflowsOptions } from "pawl/durable-object";
import { answerCall, type RpcAnswer, type RpcCall } from "./calls.js";
import { Engine } from "./engine.js";
import { layoutOf, type Sharding } from "./layout.js";
import type { WorkflowsNamespace, WorkflowsObject } from "./namespace.js";
import { Shard } from "./shard.js";
import { answerSibling, type SiblingAnswer, type SiblingCall } from "./siblings.js";

/** The options of `createWorkflows`, without `store`. */
export type WorkflowsObjectOptions<R extends Registry> = Omit<WorkflowsOptions<R>, "env"> &
  Sharding & {
    /** The `env` of the workflows; that of the worker by default. */
    readonly env?: unknown;
    /** The binding that leads to this class. It is needed where there are several objects, which ask each other. */
    readonly namespace?: WorkflowsNamespace | undefined;
  };

const objectOptions: Known<WorkflowsObjectOptions<Registry>> = {
  ...workflowsOptions,
  shards: true,
  shardBy: true,
  namespace: true,
};

/** The class of the object. A class that extends it with an `alarm` of its own calls this one first. */
export type WorkflowsObjectClass<Env> = new (
  ctx: DurableObjectState,
  env: Env,
) => DurableObject<Env> & WorkflowsObject & { alarm(): Promise<void> };

/**
 * Makes the class of a Durable Object that runs these workflows on its own storage. For secrets, the options may be a
 * function of the worker's `env`.
 */
export function workflowsDurableObject<const R extends Registry, Env = unknown>(
  given: WorkflowsObjectOptions<R> | ((env: Env) => WorkflowsObjectOptions<R>),
): WorkflowsObjectClass<Env> {
  // Options that are given as such are checked when the module loads.
  if (typeof given !== "function") checked(given);
  return class extends DurableObject<Env> implements WorkflowsObject {
    readonly #engine: Engine;
    readonly #place: Shard;

    constructor(ctx: DurableObjectState, env: Env) {
      super(ctx, env);
      const { layout, namespace, options } = checked(
        typeof given === "function" ? given(env) : given,
      );
      this.#place = new Shard(layout, ctx.id, namespace);
      this.#engine = new Engine(ctx.storage, { env, ...options }, this.#place);
    }

    override async fetch(request: Request): Promise<Response> {
      const refusal = await this.#refusal().catch(() => null);
      if (refusal !== null) {
        const body = { code: "STORE_UNAVAILABLE", message: refusal.message };
        return Response.json(body, { status: 503 });
      }
      // An API without tables says so itself.
      return this.#engine.pawl.fetch(request);
    }

    override alarm(): Promise<void> {
      return this.#engine.alarmed();
    }

    async call(call: RpcCall): Promise<RpcAnswer> {
      const refusal = await this.#refusal();
      if (refusal !== null) return { error: encodeError(refusal) };
      const { workflows, runner } = this.#engine.pawl;
      return answerCall(workflows, call, runner.logger);
    }

    async sibling(call: SiblingCall): Promise<SiblingAnswer> {
      const refusal = await this.#refusal();
      if (refusal !== null) return { error: encodeError(refusal) };
      if (call?.verb === "spread") return { value: this.#place.spread };
      return answerSibling(this.#engine.here, call, this.#engine.pawl.runner.logger);
    }

    /** Returns null when the object serves, or else what must be put right before it will. */
    async #refusal(): Promise<IncompatibleDatabaseError | null> {
      try {
        await this.#engine.ready();
        return null;
      } catch (error) {
        if (error instanceof IncompatibleDatabaseError) return error;
        throw error;
      }
    }
  };
}

function checked<R extends Registry>(given: WorkflowsObjectOptions<R>) {
  checkOptions("workflowsDurableObject", given, objectOptions);
  const { shards, shardBy, namespace, ...options } = given;
  return {
    layout: layoutOf({ shards, shardBy, workflows: options.workflows }),
    namespace,
    options,
  };
}

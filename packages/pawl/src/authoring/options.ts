import type { Codec } from "../model/codec.js";
import type { Hooks } from "../model/hooks.js";
import type { Known } from "../model/known-options.js";
import type { Limits } from "../model/limits.js";
import type { Logger } from "../model/logger.js";
import type { Bindings, EnvOfRegistry } from "./bindings.js";
import type { HttpOptions } from "./policies.js";
import type { Checked, Registry } from "./registry.js";
import type { WorkflowStepConfig } from "./step.js";

/** A step called under a name that the run has used before: the same step, the next of that name, or a mistake. */
export type RepeatedStepNames = "cached" | "counted" | "error";

/** What becomes of a run whose code no longer fits its history. */
export type OnDivergence = "continue" | "hold";

/** What `createWorkflows` takes, without `store`: its port is not known here. */
export type WorkflowsOptions<R extends Registry, Tx = never> = {
  readonly workflows: R & Checked<R>;
  readonly limits?: Partial<Limits> | undefined;
  /** For steps without a config of their own. */
  readonly stepDefaults?: WorkflowStepConfig | undefined;
  /** Default "cached". */
  readonly repeatedStepNames?: RepeatedStepNames | undefined;
  /** Default "continue". */
  readonly onDivergence?: OnDivergence | undefined;
  readonly codec?: Codec | undefined;
  readonly logger?: Logger | undefined;
  /** Called after a commit, at least once, by some process that has them. */
  readonly hooks?: Hooks | undefined;
} & HttpOptions &
  EnvOption<EnvOfRegistry<R>, Bindings<R, Tx>>;

/** What there is of them. */
export const workflowsOptions: Known<WorkflowsOptions<Registry>> = {
  workflows: true,
  env: true,
  limits: true,
  stepDefaults: true,
  repeatedStepNames: true,
  onDivergence: true,
  codec: true,
  logger: true,
  hooks: true,
  basePath: true,
  authorize: true,
  tick: true,
};

/** Required as soon as one workflow declares an `env`. */
type EnvOption<Env, B> = undefined extends Env
  ? { readonly env?: Env | ((workflows: B) => Env) }
  : { readonly env: Env | ((workflows: B) => Env) };

import type { Codec } from "../model/codec.js";
import type { Hooks } from "../model/hooks.js";
import type { Known } from "../model/known-options.js";
import type { Limits } from "../model/limits.js";
import type { Logger } from "../model/logger.js";
import type { Bindings, EnvOfRegistry } from "./bindings.js";
import type { HttpOptions } from "./policies.js";
import type { Checked, Registry } from "./registry.js";
import type { WorkflowStepConfig } from "./step.js";

/**
 * The meaning of calling a step under a name that the run has used before. Under `"cached"` it is the same step, whose
 * result is given again. Under `"counted"` it is the next step of that name, as on Cloudflare. Under `"error"` it is a
 * mistake that throws `DuplicateStepError`.
 */
export type RepeatedStepNames = "cached" | "counted" | "error";

/**
 * The fate of a run whose code no longer fits its history. Under `"continue"` it goes on with the steps that it
 * calls now. Under `"hold"` it stops without ending, and is tried again a minute later, until code comes that fits.
 */
export type OnDivergence = "continue" | "hold";

/** The options of `createWorkflows`, without `store`: the port of stores is not known here. */
export type WorkflowsOptions<R extends Registry, Tx = never> = {
  /** The workflows by binding key: what `defineWorkflow` returned, or `{ name, workflow }` for a class. */
  readonly workflows: R & Checked<R>;
  /** The limits that differ from `defaultLimits`. */
  readonly limits?: Partial<Limits> | undefined;
  /**
   * The config of steps, as far as they have none of their own. Default: 5 retries, and 10 minutes for each attempt.
   */
  readonly stepDefaults?: WorkflowStepConfig | undefined;
  /**
   * The meaning of a repeated step name. Default `"cached"`. Stored steps are found by it: do not change it while there
   * are live runs.
   */
  readonly repeatedStepNames?: RepeatedStepNames | undefined;
  /** The fate of a run whose code no longer fits its history. Default `"continue"`. */
  readonly onDivergence?: OnDivergence | undefined;
  /** How params, results, payloads and outputs are stored. Default `jsonPlusCodec`. */
  readonly codec?: Codec | undefined;
  /** Receives the log; `console` fits. Without it nothing is logged. */
  readonly logger?: Logger | undefined;
  /** Functions to call after something was committed, at least once each, by a process that has them. */
  readonly hooks?: Hooks | undefined;
} & HttpOptions &
  EnvOption<EnvOfRegistry<R>, Bindings<R, Tx>>;

/** The names of these options. */
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

/** `env` is required as soon as one workflow declares its type. */
type EnvOption<Env, B> = undefined extends Env
  ? {
      /** The clients and settings that workflows need, or a function of the bindings that returns them. */
      readonly env?: Env | ((workflows: B) => Env);
    }
  : {
      /** The clients and settings that workflows need, or a function of the bindings that returns them. */
      readonly env: Env | ((workflows: B) => Env);
    };

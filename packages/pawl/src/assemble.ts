import type { Bindings } from "./authoring/bindings.js";
import { entriesOf } from "./authoring/entry.js";
import type { RepeatedStepNames, WorkflowsOptions } from "./authoring/options.js";
import type { Registry } from "./authoring/registry.js";
import type { WorkflowStepConfig } from "./authoring/step.js";
import type { StepOverrides } from "./engine/overrides.js";
import type { EngineContext, EngineTiming } from "./engine/context.js";
import { stepPolicies } from "./engine/step-config.js";
import { hookAdministration, type HookAdministration } from "./hooks/administration.js";
import { Deliverer } from "./hooks/deliverer.js";
import { validHooks } from "./hooks/handlers.js";
import { BASE_PATH, httpHandler } from "./http/handler.js";
import { Watchers } from "./http/watchers.js";
import type { WebRequest, WebResponse } from "./model/web.js";
import { bindingsMaker, rounds } from "./instances/workflow.js";
import { LocalStore } from "./instances/local-store.js";
import type { InstancesContext } from "./instances/ports.js";
import { Invariants } from "./model/invariants.js";
import { jsonPlusCodec, type Codec } from "./model/codec.js";
import { validCursor, validPageSize } from "./instances/requests.js";
import { resolveLimits, type Limits } from "./model/limits.js";
import { guardedLogger } from "./model/logger.js";
import type { Runtime } from "./model/seams.js";
import type { RunnerOptions, TickOptions, TickResult } from "./runner/options.js";
import { Runner } from "./runner/runner.js";
import { sha256 } from "./runtime.js";
import { Notices } from "./store/notices.js";
import type { Store } from "./store/store.js";

/** The parts of an engine that a test can replace and a user cannot. */
type Workings = {
  readonly runtime: Runtime;
  readonly timing: EngineTiming;
  readonly runner: RunnerOptions;
  readonly overrides?: StepOverrides;
};

/** The options that an engine was made with, with defaults filled in. */
export type MadeWith = {
  readonly workflows: Registry;
  readonly store: Store<never>;
  readonly env: unknown;
  readonly limits: Limits;
  readonly codec: Codec;
  readonly stepDefaults: WorkflowStepConfig | undefined;
  readonly repeatedStepNames: RepeatedStepNames;
  readonly basePath: string;
};

export type Assembled<R extends Registry, Tx> = {
  readonly madeWith: MadeWith;
  readonly workflows: Bindings<R, Tx>;
  readonly instances: InstancesContext<Tx>;
  readonly runner: Runner;
  readonly http: Http;
  readonly deliverer: Deliverer;
  readonly hooks: HookAdministration;
};

interface Http {
  fetch(request: WebRequest): Promise<WebResponse>;
  /** Ends the event streams. */
  close(): void;
}

/** Assembles an engine. This is the one place where its parts meet. */
export function assemble<const R extends Registry, Tx>(
  options: WorkflowsOptions<R, Tx> & { readonly store: Store<Tx> },
  { runtime, timing, runner: runnerOptions, overrides }: Workings,
): Assembled<R, Tx> {
  const { codec = jsonPlusCodec } = options;
  const logger = guardedLogger(options.logger);
  const limits = resolveLimits(options.limits);
  const entries = entriesOf(options.workflows, limits);
  const { store } = options;
  const invariants = new Invariants(logger);
  const notices = new Notices(logger);
  const hooks = new Deliverer(store, validHooks(options.hooks), runtime, logger, notices);
  const shared = { runtime, logger, invariants };
  // Runs are given bindings, and bindings lead to the runner. So the runner asks for the context of its runs only when
  // it makes one.
  const runnerContext = { ...shared, notices, hooks, engine: () => context };
  const runner = new Runner(store, entries, runnerContext, runnerOptions);
  const here = new LocalStore(store, runner.starts, hooks, notices);
  const all = store.spread?.(here) ?? here;
  const instances: InstancesContext<Tx> = {
    store: all,
    entries,
    codec,
    limits,
    runtime,
    thisRound: rounds(runtime.scheduler),
    ends: runner.ends,
  };
  const watchers = new Watchers({ store: all, codec, runtime, ends: runner.ends, notices });
  const makeBindings = bindingsMaker(instances);
  const workflows = makeBindings() as Bindings<R, Tx>;
  const context: EngineContext = {
    ...shared,
    codec,
    limits,
    policies: stepPolicies(options.stepDefaults, limits.maxSleepMs),
    repeatedStepNames: options.repeatedStepNames ?? "cached",
    onDivergence: options.onDivergence ?? "continue",
    env: envOf(options.env, workflows),
    databaseNow: () => runner.databaseNow,
    bindingsFor: makeBindings,
    timing,
    overrides: overrides ?? null,
  };
  const tick = (bounds: TickOptions): Promise<TickResult> => runner.tick(bounds);
  const fetch = httpHandler(options, { instances, watchers, logger, fingerprint, tick });
  return {
    madeWith: madeWith(options, store, context),
    workflows,
    instances,
    runner,
    http: { fetch, close: () => watchers.close() },
    deliverer: hooks,
    hooks: hookAdministration(store, hooks, ({ pageSize, cursor }) => ({
      pageSize: validPageSize(pageSize, limits),
      ...validCursor(cursor),
    })),
  };
}

function madeWith<R extends Registry>(
  { workflows, stepDefaults, basePath = BASE_PATH }: WorkflowsOptions<R>,
  store: Store<never>,
  { env, limits, codec, repeatedStepNames }: EngineContext,
): MadeWith {
  return { workflows, store, env, limits, codec, stepDefaults, repeatedStepNames, basePath };
}

const PRINT_BYTES = 16;

async function fingerprint(text: string): Promise<string> {
  const digest = await sha256(text);
  const bytes = Array.from(digest.subarray(0, PRINT_BYTES));
  return bytes.map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

function envOf(given: unknown, workflows: unknown): unknown {
  return typeof given === "function" ? given(workflows) : given;
}

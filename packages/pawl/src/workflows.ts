import { assemble, type MadeWith } from "./assemble.js";
import type { Bindings } from "./authoring/bindings.js";
import { workflowsOptions, type WorkflowsOptions } from "./authoring/options.js";
import type { Registry } from "./authoring/registry.js";
import { defaultTiming } from "./engine/context.js";
import type { HookAdministration } from "./hooks/administration.js";
import { checkOptions } from "./model/known-options.js";
import type { RuntimeResponse, WebRequest } from "./model/web.js";
import { history, type History, type HistoryOptions } from "./instances/history.js";
import { listInstances, type InstanceList, type ListOptions } from "./instances/list.js";
import { validBounds } from "./instances/requests.js";
import { defaultRunnerOptions, type TickOptions, type TickResult } from "./runner/options.js";
import type { DispatchedRunner } from "./runner/runner.js";
import { newWebRuntime } from "./runtime.js";
import type { Store } from "./store/store.js";

/** A set of workflows on a database: starts instances, runs them, and tells about them. */
export interface Workflows<R extends Registry, Tx> {
  /** One binding per registered workflow: create, find and control its instances. */
  readonly workflows: Bindings<R, Tx>;
  /** Creates or upgrades the tables. It is idempotent, and safe when many processes start at once. */
  migrate(): Promise<void>;
  list(workflow: string, options?: ListOptions): Promise<InstanceList>;
  history(workflow: string, id: string, options?: HistoryOptions): Promise<History>;
  /** Claims due runs, and resolves when each of them has ended, parked or used up the budget. */
  tick(options?: TickOptions): Promise<TickResult>;
  /** Hints that there is work, for instance after committing a transaction that started some. */
  wake(): void;
  /** The HTTP API under `basePath`. The function is bound, so that it can be mounted anywhere. It never rejects. */
  readonly fetch: (request: WebRequest) => Promise<RuntimeResponse>;
  /** Deliveries to `hooks` that were given up, and hooks that the code no longer has. */
  readonly hooks: HookAdministration;
  /** The options that it was made with, for tools. */
  readonly options: MadeWith;
  /** The runner, for dispatchers. They decide when to tick. */
  readonly runner: DispatchedRunner;
  /** Drains the runner, and ends the store's own connections. It never ends the user's pool or handle. */
  close(): Promise<void>;
}

const DRAIN_MS = 10_000;

export function createWorkflows<const R extends Registry, Tx>(
  options: WorkflowsOptions<R, Tx> & { readonly store: Store<Tx> },
): Workflows<R, Tx> {
  checkOptions("createWorkflows", options, { ...workflowsOptions, store: true });
  const { madeWith, workflows, instances, runner, http, hooks, deliverer } = assemble(options, {
    runtime: newWebRuntime(),
    timing: defaultTiming,
    runner: defaultRunnerOptions,
  });
  const { store } = options;
  return {
    workflows,
    options: madeWith,
    runner,
    hooks,
    migrate: async () => {
      await store.migrate();
      await deliverer.registered();
    },
    list: (workflow, query) => listInstances(instances, workflow, query),
    history: (workflow, id, query) => history(instances, workflow, id, query),
    tick: async (bounds = {}) => runner.tick(validBounds(bounds)),
    wake: () => runner.starts.wake(),
    fetch: (request) => http.fetch(request),
    close: async () => {
      http.close();
      try {
        await runner.close(DRAIN_MS);
      } finally {
        deliverer.close();
        await store.close();
      }
    },
  };
}

import type { Bindings, Registry, Store, WorkflowsOptions } from "pawl";

/** Typed as the engine's `createWorkflows`. */
export declare function createWorkflows<const R extends Registry, Tx>(
  options: WorkflowsOptions<R, Tx> & { readonly store: Store<Tx> },
): { readonly workflows: Bindings<R, Tx> };

export interface Handle {
  exec(sql: string): void;
}
export declare const store: Store<Handle>;

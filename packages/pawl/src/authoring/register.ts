import type { Workflow } from "./bindings.js";

/**
 * Declares once for a program which workflows and which `env` it has, so that `this.workflows` and `this.env` are typed
 * in every workflow class.
 *
 * @example
 * ```ts
 * declare module "pawl" {
 *   interface Register {
 *     workflows: Bindings<typeof registry>;
 *     env: Env;
 *   }
 * }
 * ```
 */
export interface Register {}

/** The `env` that the program has registered, or unknown. */
export type RegisteredEnv = Register extends { env: infer Env } ? Env : unknown;

// This is an interface because its base is computed when used: the registered classes themselves are declared with it.
/** The bindings that the program has registered, or `Workflow` under any key. */
export interface RegisteredBindings extends BindingsIn<Register> {}

type BindingsIn<R> = R extends { workflows: infer Registered }
  ? Registered
  : Readonly<Record<string, Workflow>>;

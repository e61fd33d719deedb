import type { Workflow } from "./bindings.js";

/**
 * What a program says about itself once, so that every workflow class knows its siblings and its `env`:
 *
 *     declare module "pawl" {
 *       interface Register {
 *         workflows: Bindings<typeof registry>;
 *         env: Env;
 *       }
 *     }
 */
export interface Register {}

export type RegisteredEnv = Register extends { env: infer Env } ? Env : unknown;

// An interface because its base is computed when used: the registered classes themselves are declared with it.
export interface RegisteredBindings extends BindingsIn<Register> {}

type BindingsIn<R> = R extends { workflows: infer Registered }
  ? Registered
  : Readonly<Record<string, Workflow>>;

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

export type RegisteredBindings = Register extends { workflows: infer Registered }
  ? Registered
  : Readonly<Record<string, Workflow>>;

import { ValidationError } from "../model/errors.js";
import { hookNames, isHookName, type HookName, type Hooks } from "../model/hooks.js";
import { plainObject } from "../model/known-options.js";
import { quote } from "../model/quote.js";

/** Returns the given hooks. Throws `ValidationError` for an unknown name: a misspelt hook would never be called. */
export function validHooks(given: Hooks | undefined): Hooks {
  if (given === undefined) return {};
  const hooks = plainObject("hooks", given, "{ onInstanceFinished }");
  for (const [name, hook] of Object.entries(hooks)) {
    if (!isHookName(name)) {
      throw new ValidationError(
        `hooks: ${quote(name)} is not a hook; the hooks are ${hookNames.join(", ")}`,
      );
    }
    if (hook !== undefined && typeof hook !== "function") {
      throw new ValidationError(`hooks.${name} must be a function, got ${quote(hook)}`);
    }
  }
  return hooks;
}

/** Returns the names of the hooks that are given. */
export function namesOf(hooks: Hooks): readonly HookName[] {
  return hookNames.filter((name) => hooks[name] !== undefined);
}

import { ValidationError } from "../model/errors.js";
import { hookNames, isHookName, type HookName, type Hooks } from "../model/hooks.js";
import { quote } from "../model/quote.js";

/** The given hooks, checked: a misspelt name would never be called. */
export function validHooks(given: Hooks | undefined): Hooks {
  if (given === undefined) return {};
  if (typeof given !== "object" || given === null) {
    throw new ValidationError(`hooks must be an object, got ${quote(given)}`);
  }
  for (const [name, hook] of Object.entries(given)) {
    if (!isHookName(name)) {
      throw new ValidationError(
        `hooks: ${quote(name)} is no hook; there are ${hookNames.join(", ")}`,
      );
    }
    if (hook !== undefined && typeof hook !== "function") {
      throw new ValidationError(`hooks.${name} must be a function, got ${quote(hook)}`);
    }
  }
  return given;
}

export function namesOf(hooks: Hooks): readonly HookName[] {
  return hookNames.filter((name) => hooks[name] !== undefined);
}

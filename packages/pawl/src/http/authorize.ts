import type {
  Authorize,
  AuthorizeRequest,
  Policy,
  PolicyGroup,
  TickRoute,
} from "../authoring/policies.js";
import { ValidationError, WorkflowError } from "../model/errors.js";
import { checkOptions, plainObject, type Known } from "../model/known-options.js";
import type { Logger } from "../model/logger.js";
import { quote } from "../model/quote.js";
import { isResponse, type WebResponse } from "../model/web.js";

const groups: readonly string[] = ["all", "create", "manage", "sendEvent", "read", "tick"];

const tickOptions: Known<TickRoute> = { enabled: true, insecure: true };

/** Checks the settings, and refuses any that would leave open a route that was meant to be closed. */
export function checkedAuthorize(given: Authorize = {}, tick?: TickRoute): Authorize {
  plainObject("authorize", given, "{ all: policy }");
  if (tick !== undefined) {
    checkOptions("tick", plainObject("tick", tick, "{ enabled: true }"), tickOptions);
  }
  for (const [group, policy] of Object.entries(given)) {
    if (!groups.includes(group)) {
      throw new ValidationError(`authorize: ${quote(group)} is none of ${groups.join(", ")}`);
    }
    if (policy !== undefined && typeof policy !== "function") {
      throw new ValidationError(`authorize.${group} must be a function, got ${quote(policy)}`);
    }
  }
  const isGuarded = given.tick !== undefined || given.all !== undefined;
  if (tick?.enabled === true && !isGuarded && tick.insecure !== true) {
    throw new ValidationError(
      "tick.enabled needs a policy in authorize.tick or authorize.all; " +
        "to let anyone tick, say tick: { enabled: true, insecure: true }",
    );
  }
  return given;
}

/** Asks the policies. Returns the response to a request that they deny, or null. */
export async function denial(
  authorize: Authorize,
  group: PolicyGroup | null,
  request: AuthorizeRequest,
  logger: Logger,
): Promise<WebResponse | null> {
  const policies = [authorize.all, group === null ? undefined : authorize[group]];
  for (const policy of policies.filter((each) => each !== undefined)) {
    const answer: unknown = await ask(policy, request, logger);
    if (answer === undefined) continue;
    if (isResponse(answer)) return answer;
    logger.error("authorize.unclear", { route: request.route, answer: quote(answer) });
    throw forbidden();
  }
  return null;
}

async function ask(policy: Policy, request: AuthorizeRequest, logger: Logger): Promise<unknown> {
  try {
    return await policy(request);
  } catch (error) {
    if (error instanceof WorkflowError || isResponse(error)) return denied(error);
    logger.warn("authorize.threw", { route: request.route, error: String(error) });
    throw forbidden();
  }
}

function denied(error: WorkflowError | WebResponse): WebResponse {
  if (isResponse(error)) return error;
  throw error;
}

function forbidden(): WorkflowError {
  return new WorkflowError("FORBIDDEN", "this request is not allowed");
}

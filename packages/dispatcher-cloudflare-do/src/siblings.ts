import { WorkflowError, type Logger } from "pawl";
import {
  controlCommands,
  encodeError,
  type ControlRequest,
  type InstanceStore,
  type Target,
} from "pawl/durable-object";
import { isForCallers, thrownThere } from "./calls.js";
import type { WorkflowsObject } from "./namespace.js";

// The objects of one namespace ask each other about their instances. Every verb may be sent twice, and applies once.

/** The verbs of a store that travel as they are. */
const verbs = {
  create: true,
  sendEvent: true,
  get: true,
  list: true,
  history: true,
} as const satisfies { [V in Exclude<keyof InstanceStore, "fits" | "control">]: true };

type PlainVerb = keyof typeof verbs;
type ControlVerb = ControlRequest["command"];

/**
 * A control request travels under the name of its command, with the target and its operation id first. Objects that still
 * run older code during a deployment know no other form, and ignore the request itself, which comes third.
 */
export type SiblingCall = {
  readonly verb: PlainVerb | ControlVerb | "spread";
  readonly args: readonly unknown[];
};

/** Plain data, or the text of the error that the caller is to be thrown. */
export type SiblingAnswer = { readonly value: unknown } | { readonly error: string };

const RETRIES = 4;
const FIRST_RETRY_MS = 100;

/** The instances in another object. */
export function siblingStore(object: () => WorkflowsObject): InstanceStore<never> {
  const ask = (verb: PlainVerb | ControlVerb, args: readonly unknown[]): Promise<never> =>
    askSibling(object, { verb, args }) as Promise<never>;
  const plain = Object.fromEntries(
    Object.keys(verbs).map((verb) => [verb, (...args: unknown[]) => ask(verb as PlainVerb, args)]),
  ) as unknown as Pick<InstanceStore<never>, PlainVerb>;
  return {
    ...plain,
    control: (target, request) =>
      ask(request.command, [
        target,
        "operationId" in request ? request.operationId : undefined,
        request,
      ]),
  };
}

export async function askSibling(
  object: () => WorkflowsObject,
  call: SiblingCall,
): Promise<unknown> {
  const answer = await reached(object, call);
  if ("error" in answer) throw thrownThere(answer.error);
  return answer.value;
}

/** Tries again for a while: an object that moves or starts anew is away for moments. A stub that failed stays broken. */
async function reached(object: () => WorkflowsObject, call: SiblingCall): Promise<SiblingAnswer> {
  for (let n = 0; ; n++) {
    try {
      return await object().sibling(call);
    } catch (error) {
      if (n === RETRIES || (error as { overloaded?: boolean }).overloaded === true) {
        const options = { cause: error };
        throw new WorkflowError("STORE_UNAVAILABLE", "another object cannot be reached", options);
      }
      await scheduler.wait(FIRST_RETRY_MS * 2 ** n);
    }
  }
}

/** Answers another object. It never rejects. */
export async function answerSibling(
  here: InstanceStore<never>,
  call: SiblingCall,
  logger: Logger,
): Promise<SiblingAnswer> {
  try {
    return { value: await performed(here, call) };
  } catch (error) {
    if (isForCallers(error)) return { error: encodeError(error) };
    logger.error("call.failed", { method: call.verb, error: String(error) });
    return { error: encodeError(new WorkflowError("INTERNAL_ERROR", "something went wrong")) };
  }
}

async function performed(
  here: InstanceStore<never>,
  { verb, args }: SiblingCall,
): Promise<unknown> {
  if (Array.isArray(args) && isCommand(verb)) {
    const [target, operationId, given] = args;
    const request = operationId === undefined ? { command: verb } : { command: verb, operationId };
    return here.control(target as Target, (given ?? request) as ControlRequest);
  }
  if (Array.isArray(args) && Object.hasOwn(verbs, verb)) {
    const perform = here[verb as PlainVerb] as (...given: readonly unknown[]) => Promise<unknown>;
    return perform.apply(here, args);
  }
  throw new WorkflowError("INVALID_REQUEST", "there is no such verb");
}

function isCommand(verb: string): verb is ControlVerb {
  return (controlCommands as readonly string[]).includes(verb);
}

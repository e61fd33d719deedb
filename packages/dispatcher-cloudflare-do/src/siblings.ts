import { WorkflowError, type Logger } from "pawl";
import {
  encodeError,
  type ControlRequest,
  type InstanceStore,
  type Target,
} from "pawl/durable-object";
import { isForCallers, thrownThere } from "./calls.js";
import type { WorkflowsObject } from "./namespace.js";

// Objects of one namespace ask each other about their instances. Every verb may be sent twice, and applies once.

/** The verbs that travel as they are. `control` travels as its command: objects still call that which run older code. */
const verbs = {
  create: true,
  sendEvent: true,
  get: true,
  list: true,
  history: true,
} as const satisfies { [V in Exclude<keyof InstanceStore, "fits" | "control">]: true };

const commands = {
  pause: true,
  resume: true,
  terminate: true,
  restart: true,
} as const satisfies { [C in ControlRequest["command"]]: true };

type SiblingVerb = keyof typeof verbs | keyof typeof commands;

export type SiblingCall = {
  readonly verb: SiblingVerb | "spread";
  readonly args: readonly unknown[];
};

/** Plain data, or the text of what the caller is to be thrown. */
export type SiblingAnswer = { readonly value: unknown } | { readonly error: string };

const RETRIES = 4;
const FIRST_RETRY_MS = 100;

/** The instances in another object. */
export function siblingStore(object: () => WorkflowsObject): InstanceStore<never> {
  const ask =
    (verb: SiblingVerb) =>
    (...args: unknown[]): Promise<never> =>
      askSibling(object, { verb, args }) as Promise<never>;
  return {
    ...Object.fromEntries(Object.keys(verbs).map((verb) => [verb, ask(verb as SiblingVerb)])),
    control: (target: Target, request: ControlRequest) =>
      ask(request.command)(target, "operationId" in request ? request.operationId : undefined),
  } as unknown as InstanceStore<never>;
}

export async function askSibling(
  object: () => WorkflowsObject,
  call: SiblingCall,
): Promise<unknown> {
  const answer = await reached(object, call);
  if ("error" in answer) throw thrownThere(answer.error);
  return answer.value;
}

/** An object that moves or starts anew is away for moments. A stub that has failed once stays broken. */
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

/** Never rejects. */
export async function answerSibling(
  here: InstanceStore<never>,
  { verb, args }: SiblingCall,
  logger: Logger,
): Promise<SiblingAnswer> {
  try {
    if (Object.hasOwn(commands, verb) && Array.isArray(args)) {
      const [target, operationId] = args;
      const request = { command: verb, ...(operationId === undefined ? {} : { operationId }) };
      return { value: await here.control(target as Target, request as ControlRequest) };
    }
    if (!Object.hasOwn(verbs, verb) || !Array.isArray(args)) {
      throw new WorkflowError("INVALID_REQUEST", "there is no such verb");
    }
    const perform = here[verb as keyof typeof verbs] as (
      ...given: readonly unknown[]
    ) => Promise<unknown>;
    return { value: await perform(...args) };
  } catch (error) {
    if (isForCallers(error)) return { error: encodeError(error) };
    logger.error("call.failed", { method: verb, error: String(error) });
    return { error: encodeError(new WorkflowError("INTERNAL_ERROR", "something went wrong")) };
  }
}

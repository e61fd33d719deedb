import { validEvent, validTx, validWait } from "../authoring/binding-options.js";
import type {
  InstanceTypes,
  ResultOptions,
  SentEvent,
  TxOptions,
  WorkflowInstance,
} from "../authoring/bindings.js";
import type { WorkflowEntry } from "../authoring/entry.js";
import { WorkflowError } from "../model/errors.js";
import { validEventId, validEventType } from "../model/names.js";
import { quote } from "../model/quote.js";
import { carry, InstanceHandle } from "./methods.js";
import { checkedInput, type OperationName } from "./operations.js";
import { instanceTerminal, performNamed } from "./perform.js";
import type { InstancesContext, ParentRun } from "./ports.js";
import { instanceNotFound } from "./requests.js";
import { awaitResult } from "./result.js";
import { encodePayload } from "./values.js";

/** The context that the handles of all instances of one workflow share. */
export type InstanceScope<Tx> = {
  readonly context: InstancesContext<Tx>;
  readonly entry: WorkflowEntry;
  readonly parent: ParentRun | undefined;
  readonly newId: () => string;
};

/**
 * The in-process handle of an instance. It holds the id and reads everything else when asked. Inside a run, each call
 * first waits at the parent's barrier: nothing leaves a run before everything that led to it is durable.
 */
export class Instance<Tx> extends InstanceHandle implements WorkflowInstance<InstanceTypes, Tx> {
  readonly id: string;
  readonly #scope: InstanceScope<Tx>;
  readonly #isNew: () => boolean;

  /** `isNew` answers whether the instance was created just now. */
  constructor(scope: InstanceScope<Tx>, id: string, isNew = (): boolean => false) {
    super();
    this.#scope = scope;
    this.id = id;
    this.#isNew = isNew;
  }

  async [carry](name: OperationName, given: unknown): Promise<unknown> {
    const { context, entry, parent, newId } = this.#scope;
    const input = checkedInput(name, given);
    if (parent !== undefined) await parent.barrier();
    const target = { workflow: entry.name, id: this.id };
    return performNamed(name, { context, target, newOperationId: newId }, input);
  }

  async sendEvent(event: SentEvent, options?: TxOptions<Tx>): Promise<void> {
    const { context, entry, parent, newId } = this.#scope;
    const tx = options === undefined ? undefined : validTx("sendEvent", options);
    const { type, id, payload } = validEvent(event);
    declared(validEventType(type, context.limits), entry);
    const eventId = id === undefined ? newId() : validEventId(id, context.limits);
    if (parent !== undefined) await parent.barrier();
    const encoded = encodePayload(context, entry, { type, payload });
    const text = encoded instanceof Promise ? await encoded : encoded;

    const target = { workflow: entry.name, id: this.id };
    const answer = await context.store.sendEvent(target, { eventId, type, payload: text }, { tx });
    switch (answer.kind) {
      case "accepted":
      case "duplicate":
        return;
      case "notFound":
        throw instanceNotFound(target);
      case "terminal":
        throw instanceTerminal(target, answer.status);
    }
  }

  async result(options: ResultOptions = {}): Promise<unknown> {
    const { context, entry, parent } = this.#scope;
    const wanted = validWait(options);
    if (parent !== undefined) await parent.barrier();
    return awaitResult(context, { workflow: entry.name, id: this.id }, wanted, this.#isNew());
  }
}

/**
 * Refuses event types that the workflow does not declare. It waits for no others, so that the sender has misspelt the
 * type.
 */
function declared(type: string, { name, events }: WorkflowEntry): void {
  if (events === undefined || Object.hasOwn(events, type)) return;
  const types = Object.keys(events);
  throw new WorkflowError(
    "INVALID_EVENT_TYPE",
    `workflow ${quote(name)} has no event ${quote(type)}; it declares ${types.join(", ") || "none"}`,
  );
}

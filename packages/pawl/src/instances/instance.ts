import type {
  InstanceStatus,
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
import type { InstanceStatusName } from "../model/status.js";
import type { Target } from "../store/records.js";
import type { ControlAnswer } from "../store/store.js";
import type { InstancesContext, ParentRun } from "./ports.js";
import { instanceNotFound, validObject } from "./requests.js";
import { awaitResult } from "./result.js";
import { statusOf } from "./status.js";
import { encodePayload } from "./values.js";

/** What all instances of one workflow share. */
export type InstanceScope<Tx> = {
  readonly context: InstancesContext<Tx>;
  readonly entry: WorkflowEntry;
  readonly parent: ParentRun | undefined;
  readonly newId: () => string;
};

/** A handle: it holds the id and reads everything else when asked. */
export class Instance<Tx> implements WorkflowInstance<InstanceTypes, Tx> {
  readonly id: string;
  readonly #scope: InstanceScope<Tx>;

  constructor(scope: InstanceScope<Tx>, id: string) {
    this.#scope = scope;
    this.id = id;
  }

  async status(): Promise<InstanceStatus> {
    const { store, codec } = await this.#ready();
    const record = await store.get(this.#target);
    if (record === null) throw instanceNotFound(this.#target);
    return statusOf(record, codec);
  }

  async pause(): Promise<void> {
    const { store } = await this.#ready();
    this.#follow(await store.pause(this.#target));
  }

  async resume(): Promise<void> {
    const { store, hints } = await this.#registered();
    this.#follow(await store.resume(this.#target));
    hints.wake();
  }

  async terminate(): Promise<void> {
    const { store, hints, hooks } = await this.#registered();
    this.#follow(await store.terminate(this.#target, this.#scope.newId()));
    hints.tellEnd(this.#target);
    hooks.posted("onInstanceFinished");
  }

  async restart(): Promise<void> {
    const { store, hints } = await this.#registered();
    this.#follow(await store.restart(this.#target, this.#scope.newId()));
    hints.wake();
  }

  async sendEvent(event: SentEvent, options: TxOptions<Tx> = {}): Promise<void> {
    const { context, entry, newId } = this.#scope;
    const { tx } = validObject("options of sendEvent", options);
    const { type, id, payload } = validObject("an event", event);
    declared(validEventType(type, context.limits), entry);
    const eventId = id === undefined ? newId() : validEventId(id, context.limits);
    const { store, hints, hooks } = await (tx === undefined ? this.#registered() : this.#ready());
    const text = await encodePayload(context, entry, { type, payload });

    const sent = { eventId, type, payload: text };
    const within = tx === undefined ? {} : { tx, hooked: hooks.has("onWorkflowEnqueued") };
    const answer = await store.sendEvent(this.#target, sent, within);
    switch (answer.kind) {
      case "accepted":
        // Neither in a transaction, where nothing has happened yet: the caller wakes after the commit.
        if (answer.woken) hints.wake();
        if (answer.owner !== null) hints.poke(answer.owner, this.#target);
        return;
      case "duplicate":
        return;
      case "notFound":
        throw instanceNotFound(this.#target);
      case "terminal":
        throw terminal(this.#target, answer.status);
    }
  }

  async result(options: ResultOptions = {}): Promise<unknown> {
    validObject("options of result", options);
    return awaitResult(await this.#ready(), this.#target, options);
  }

  get #target(): Target {
    return { workflow: this.#scope.entry.name, id: this.id };
  }

  /** Nothing leaves a run before what led to it is durable. */
  async #ready(): Promise<InstancesContext<Tx>> {
    await this.#scope.parent?.barrier();
    return this.#scope.context;
  }

  /** The same, for what hooks of this process are to be told. */
  async #registered(): Promise<InstancesContext<Tx>> {
    const context = await this.#ready();
    await context.hooks.registered();
    return context;
  }

  #follow(answer: ControlAnswer): void {
    if (answer.kind === "notFound") throw instanceNotFound(this.#target);
    if (answer.kind === "terminal") throw terminal(this.#target, answer.status);
    if (answer.owner !== null) this.#scope.context.hints.poke(answer.owner, this.#target);
  }
}

/** A workflow that declares its events waits for no others: whoever sends one has misspelt it. */
function declared(type: string, { name, events }: WorkflowEntry): void {
  if (events === undefined || Object.hasOwn(events, type)) return;
  const types = Object.keys(events);
  throw new WorkflowError(
    "INVALID_EVENT_TYPE",
    `workflow ${quote(name)} has no event ${quote(type)}; it declares ${types.join(", ") || "none"}`,
  );
}

function terminal({ id }: Target, status: InstanceStatusName): WorkflowError {
  return new WorkflowError("INSTANCE_TERMINAL", `instance ${quote(id)} has ended: ${status}`);
}

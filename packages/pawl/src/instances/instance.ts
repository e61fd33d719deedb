import { validEvent, validTx, validWait } from "../authoring/binding-options.js";
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
import { instanceNotFound } from "./requests.js";
import { awaitResult } from "./result.js";
import { instanceStatusOf } from "./status.js";
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
  readonly #isNew: () => boolean;

  /** `isNew`: it was created just now. */
  constructor(scope: InstanceScope<Tx>, id: string, isNew = (): boolean => false) {
    this.#scope = scope;
    this.id = id;
    this.#isNew = isNew;
  }

  async status(): Promise<InstanceStatus> {
    const { store, codec } = await this.#ready();
    const record = await store.get(this.#target);
    if (record === null) throw instanceNotFound(this.#target);
    return instanceStatusOf(record, codec);
  }

  async pause(): Promise<void> {
    const { store } = await this.#ready();
    this.#check(await store.control(this.#target, { command: "pause" }));
  }

  async resume(): Promise<void> {
    const { store } = await this.#ready();
    this.#check(await store.control(this.#target, { command: "resume" }));
  }

  async terminate(): Promise<void> {
    const { store } = await this.#ready();
    const operationId = this.#scope.newId();
    this.#check(await store.control(this.#target, { command: "terminate", operationId }));
  }

  async restart(): Promise<void> {
    const { store } = await this.#ready();
    const operationId = this.#scope.newId();
    this.#check(await store.control(this.#target, { command: "restart", operationId }));
  }

  async sendEvent(event: SentEvent, options: TxOptions<Tx> = {}): Promise<void> {
    const { context, entry, newId } = this.#scope;
    const tx = validTx("sendEvent", options);
    const { type, id, payload } = validEvent(event);
    declared(validEventType(type, context.limits), entry);
    const eventId = id === undefined ? newId() : validEventId(id, context.limits);
    const { store } = await this.#ready();
    const text = await encodePayload(context, entry, { type, payload });

    const answer = await store.sendEvent(this.#target, { eventId, type, payload: text }, { tx });
    switch (answer.kind) {
      case "accepted":
      case "duplicate":
        return;
      case "notFound":
        throw instanceNotFound(this.#target);
      case "terminal":
        throw terminal(this.#target, answer.status);
    }
  }

  async result(options: ResultOptions = {}): Promise<unknown> {
    const wanted = validWait(options);
    return awaitResult(await this.#ready(), this.#target, wanted, this.#isNew());
  }

  get #target(): Target {
    return { workflow: this.#scope.entry.name, id: this.id };
  }

  /** Nothing leaves a run before what led to it is durable. */
  async #ready(): Promise<InstancesContext<Tx>> {
    await this.#scope.parent?.barrier();
    return this.#scope.context;
  }

  #check(answer: ControlAnswer): void {
    if (answer.kind === "notFound") throw instanceNotFound(this.#target);
    if (answer.kind === "terminal") throw terminal(this.#target, answer.status);
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

import type { ResultOptions } from "../authoring/bindings.js";
import type { streamedStatus } from "../http/answer-schemas.js";
import type { TypeOf } from "../model/schema.js";
import {
  membersOf,
  newAborter,
  throwIfAborted,
  type Signal,
  type SignalMembers,
} from "../model/abort.js";
import { fromTagged } from "../model/codec.js";
import { requestedMs } from "../model/duration.js";
import { InstanceTerminatedError, ResultTimeoutError, WorkflowError } from "../model/errors.js";
import { quote } from "../model/quote.js";
import type { Cancel } from "../model/seams.js";
import { isTerminal } from "../model/status.js";
import { serverSentEvents } from "./server-sent-events.js";
import { isAway, type Transport } from "./transport.js";

const FIRST_BACKOFF_MS = 250;
const MAX_BACKOFF_MS = 5_000;
/** The server gives a sign of life every 15 seconds. After two that did not come, the connection is dead. */
const SILENCE_MS = 40_000;

type Status = TypeOf<typeof streamedStatus>;
export type RemoteTarget = { readonly workflowName: string; readonly instanceId: string };

/** Follows the event stream to the end of the current run, through as many connections as it takes. */
export async function awaitRemoteResult(
  transport: Transport,
  target: RemoteTarget,
  { timeout, signal }: ResultOptions,
): Promise<unknown> {
  const ms = timeout === undefined ? null : requestedMs("timeout", timeout);
  const deadline = new Deadline(transport, ms, signal);
  try {
    return outcomeOf(target, await lastStatus(transport, target, deadline.signal));
  } catch (error) {
    throwIfAborted(signal);
    if (!deadline.isOver) throw error;
    throw new ResultTimeoutError(`instance ${quote(target.instanceId)} did not end in time`);
  } finally {
    deadline.clear();
  }
}

async function lastStatus(
  transport: Transport,
  params: RemoteTarget,
  signal: Signal | undefined,
): Promise<Status> {
  let cursor: string | undefined;
  for (let failures = 0; ;) {
    const silence = new Deadline(transport, SILENCE_MS, signal);
    try {
      const response = await transport.open("streamEvents", {
        params,
        signal: silence.signal,
        headers: {
          accept: "text/event-stream",
          ...(cursor === undefined ? {} : { "last-event-id": cursor }),
        },
      });
      const messages = serverSentEvents(response, silence.signal, () => silence.restart());
      for await (const { event, data, id } of messages) {
        failures = 0;
        cursor = id;
        const status = event === "status" ? (JSON.parse(data) as Status) : null;
        if (status !== null && isTerminal(status.status)) return status;
      }
    } catch (error) {
      throwIfAborted(signal);
      // A connection that breaks throws whatever the runtime likes, and is opened again.
      if (error instanceof WorkflowError && !isAway(error)) throw error;
    } finally {
      silence.clear();
    }
    const backoffMs = Math.min(MAX_BACKOFF_MS, FIRST_BACKOFF_MS * 2 ** failures++);
    await transport.sleep(backoffMs * (0.5 + transport.runtime.random.next() / 2), signal);
  }
}

function outcomeOf(
  { instanceId }: RemoteTarget,
  { status, output, error, thrown }: Status,
): unknown {
  switch (status) {
    case "complete":
      return output === undefined ? undefined : fromTagged(output);
    case "errored":
      throw thrown === undefined ? new Error(error?.message ?? "errored") : fromTagged(thrown);
    default:
      throw new InstanceTerminatedError(`instance ${quote(instanceId)} was terminated`);
  }
}

/** A signal that fires with the given one, and when the time is over. Without a time it is never over. */
class Deadline {
  readonly signal: Signal;
  readonly #aborter = newAborter();
  readonly #given: SignalMembers | null;
  readonly #onAbort = (): void => this.#aborter.abort(this.#given?.reason);
  readonly #plan: () => Cancel;
  #cancel: Cancel;
  #isOver = false;

  constructor({ runtime }: Transport, ms: number | null, signal: Signal | undefined) {
    this.signal = this.#aborter.signal;
    this.#given = signal === undefined ? null : membersOf(signal);
    this.#plan = () => (ms === null ? () => {} : runtime.scheduler.after(ms, () => this.#end()));
    this.#cancel = this.#plan();
    if (this.#given?.aborted === true) this.#onAbort();
    this.#given?.addEventListener("abort", this.#onAbort);
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  #end(): void {
    this.#isOver = true;
    this.#aborter.abort(new Error("the time is over"));
  }

  /** Starts the time anew. */
  restart(): void {
    this.#cancel();
    this.#cancel = this.#plan();
  }

  clear(): void {
    this.#cancel();
    this.#given?.removeEventListener("abort", this.#onAbort);
  }
}

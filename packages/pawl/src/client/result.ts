import type { ResultOptions } from "../authoring/bindings.js";
import type { streamedStatus } from "../http/contract.js";
import type { TypeOf } from "../http/schema.js";
import { membersOf, newAborter, throwIfAborted, type Signal } from "../model/abort.js";
import { fromTagged } from "../model/codec.js";
import { requestedMs, type WorkflowDuration } from "../model/duration.js";
import { InstanceTerminatedError, ResultTimeoutError, WorkflowError } from "../model/errors.js";
import { quote } from "../model/quote.js";
import { isTerminal } from "../model/status.js";
import { serverSentEvents } from "./server-sent-events.js";
import { isAway, type Transport } from "./transport.js";

const FIRST_BACKOFF_MS = 250;
const MAX_BACKOFF_MS = 5_000;

type Status = TypeOf<typeof streamedStatus>;
type Target = { readonly workflowName: string; readonly instanceId: string };

/** Follows the event stream to the end of the current run, through as many connections as it takes. */
export async function awaitResult(
  transport: Transport,
  target: Target,
  { timeout, signal }: ResultOptions,
): Promise<unknown> {
  const deadline = deadlineOf(transport, timeout, signal);
  try {
    return outcomeOf(target, await lastStatus(transport, target, deadline.signal));
  } catch (error) {
    throwIfAborted(signal);
    if (!deadline.isOver()) throw error;
    throw new ResultTimeoutError(`instance ${quote(target.instanceId)} did not end in time`);
  } finally {
    deadline.clear();
  }
}

async function lastStatus(
  transport: Transport,
  params: Target,
  signal: Signal | undefined,
): Promise<Status> {
  let cursor: string | undefined;
  for (let failures = 0; ;) {
    try {
      const response = await transport.open("streamEvents", {
        params,
        signal,
        headers: {
          accept: "text/event-stream",
          ...(cursor === undefined ? {} : { "last-event-id": cursor }),
        },
      });
      for await (const { event, data, id } of serverSentEvents(response)) {
        failures = 0;
        cursor = id;
        const status = event === "status" ? (JSON.parse(data) as Status) : null;
        if (status !== null && isTerminal(status.status)) return status;
      }
    } catch (error) {
      throwIfAborted(signal);
      // A connection that broke throws what the runtime likes.
      if (error instanceof WorkflowError && !isAway(error)) throw error;
    }
    const backoffMs = Math.min(MAX_BACKOFF_MS, FIRST_BACKOFF_MS * 2 ** failures++);
    await transport.sleep(backoffMs * (0.5 + transport.runtime.random.next() / 2), signal);
  }
}

function outcomeOf({ instanceId }: Target, { status, output, error, thrown }: Status): unknown {
  switch (status) {
    case "complete":
      return output === undefined ? undefined : fromTagged(output);
    case "errored":
      throw thrown === undefined ? new Error(error?.message ?? "errored") : fromTagged(thrown);
    default:
      throw new InstanceTerminatedError(`instance ${quote(instanceId)} was terminated`);
  }
}

type Deadline = { readonly signal: Signal | undefined; isOver(): boolean; clear(): void };

/** A signal that fires with the given one, and when the time is over. */
function deadlineOf(
  { runtime }: Transport,
  timeout: WorkflowDuration | undefined,
  signal: Signal | undefined,
): Deadline {
  if (timeout === undefined) return { signal, isOver: () => false, clear: () => {} };
  const ms = requestedMs("timeout", timeout);
  const aborter = newAborter();
  const given = signal === undefined ? null : membersOf(signal);
  let isOver = false;
  const onAbort = (): void => aborter.abort(given?.reason);
  const cancel = runtime.scheduler.after(ms, () => {
    isOver = true;
    aborter.abort(new Error("the time is over"));
  });
  if (given?.aborted === true) onAbort();
  given?.addEventListener("abort", onAbort);
  return {
    signal: aborter.signal,
    isOver: () => isOver,
    clear: () => {
      cancel();
      given?.removeEventListener("abort", onAbort);
    },
  };
}

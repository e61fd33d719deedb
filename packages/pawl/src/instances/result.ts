import type { ResultOptions } from "../authoring/bindings.js";
import { throwIfAborted } from "../model/abort.js";
import { requestedMs } from "../model/duration.js";
import { decodeError } from "../model/error-codec.js";
import { InstanceTerminatedError, ResultTimeoutError } from "../model/errors.js";
import { quote } from "../model/quote.js";
import type { Ended } from "../store/records.js";
import type { Target } from "../model/target.js";
import type { InstancesContext } from "./ports.js";
import { instanceNotFound } from "./requests.js";
import { decodeStored } from "./values.js";

const FIRST_WAIT_MS = 25;
const LONGEST_WAIT_MS = 2_000;
/**
 * A caller that waits for a run in this process is told when the run leaves. This limit is only in case that was
 * missed.
 */
const LONGEST_STAY_MS = 10_000;
/** A caller that will be told of the end still reads now and then, because hints get lost. */
const WHEN_TOLD = { soonMs: 100, thenMs: 1_000, longestMs: 10_000 };

type Waiting = Pick<InstancesContext<never>, "codec" | "ends" | "runtime"> & {
  readonly store: Pick<InstancesContext<never>["store"], "get">;
};

/**
 * Waits until the current run has ended, and returns its result. After a restart, the new run is the current one.
 *
 * Where other processes tell of ends, a run that was created just now is not read before its end is told. That read was
 * a fifth of what a client did for a workflow.
 */
export async function awaitResult(
  context: Waiting,
  target: Target,
  { timeout, signal }: ResultOptions,
  isNew = false,
): Promise<unknown> {
  const { store, ends, runtime } = context;
  const endsAt = runtime.clock.now() + requestedMs("timeout", timeout);
  const leftMs = (): number => Math.max(0, endsAt - runtime.clock.now());
  let mayWaitFirst = isNew;
  for (let waitMs = 0; ;) {
    throwIfAborted(signal);
    // Most runs that are here end here. They bring their outcome, so no read is needed.
    while (ends.isHere(target) && leftMs() > 0) {
      mayWaitFirst = false;
      const ended = await ends.left(target, Math.min(LONGEST_STAY_MS, leftMs()), signal);
      if (ended !== null) return outcomeOf(target, ended, context)?.value;
      throwIfAborted(signal);
    }
    // The listener opens before the read, because an end that is told while the read is on its way is not told again.
    const listener = ends.listen(target);
    try {
      const isTold = mayWaitFirst && leftMs() > 0 && ends.ask(target);
      mayWaitFirst = false;
      if (!isTold) {
        const record = await store.get(target);
        if (record === null) throw instanceNotFound(target);
        const outcome = outcomeOf(target, record, context);
        if (outcome !== undefined) return outcome.value;
        if (leftMs() === 0) {
          throw new ResultTimeoutError(
            `instance ${quote(target.id)} did not end in time: it is ${record.status}`,
          );
        }
      }
      waitMs = nextWaitMs(waitMs, isTold || ends.ask(target));
      const ended = await listener.heard(Math.min(waitMs, leftMs()), signal);
      if (ended !== null) return outcomeOf(target, ended, context)?.value;
    } finally {
      listener.close();
    }
  }
}

function nextWaitMs(lastMs: number, isTold: boolean): number {
  if (!isTold) return Math.min(Math.max(lastMs * 2, FIRST_WAIT_MS), LONGEST_WAIT_MS);
  const { soonMs, thenMs, longestMs } = WHEN_TOLD;
  return lastMs < soonMs ? soonMs : Math.min(Math.max(lastMs * 2, thenMs), longestMs);
}

/** Returns the run's output, or throws its error. It is undefined while the run goes on. */
function outcomeOf(
  { id }: Target,
  { status, output, error }: Ended,
  { codec }: Waiting,
): { readonly value: unknown } | undefined {
  switch (status) {
    case "complete":
      return { value: decodeStored(codec, output) };
    case "errored":
      throw error === null ? new Error(`instance ${quote(id)} errored`) : decodeError(error);
    case "terminated":
      throw new InstanceTerminatedError(`instance ${quote(id)} was terminated`);
    default:
      return undefined;
  }
}

import type { Runtime } from "../model/seams.js";
import type { InstanceRecord } from "../store/records.js";
import type { Target } from "../model/target.js";

export type Reads = {
  readonly together: (targets: readonly Target[]) => Promise<(InstanceRecord | null)[]>;
  readonly alone: (target: Target) => Promise<InstanceRecord | null>;
  /** Whether a single target made `together` fail; the others must not fail with it. */
  readonly isOfOne: (error: unknown) => boolean;
};

type Request = {
  readonly target: Target;
  readonly resolve: (record: InstanceRecord | null) => void;
  readonly reject: (error: unknown) => void;
};

const MAX_TARGETS = 500;
/** With more groups on their way, each would only be smaller. */
const MAX_ON_THEIR_WAY = 2;

/**
 * Reads instances together that are asked for at the same time. A process that waits for the ends of many instances
 * reads each of them, and a read of its own costs 100 µs of the process's time and the database's.
 */
export function getsTogether(
  { scheduler }: Runtime,
  { together, alone, isOfOne }: Reads,
): (target: Target) => Promise<InstanceRecord | null> {
  let waiting: Request[] = [];
  let sendIsDue = false;
  let onTheirWay = 0;

  /** Sends in the next round, so that callers that move together are answered together. */
  const scheduleSend = (): void => {
    if (sendIsDue || waiting.length === 0 || onTheirWay === MAX_ON_THEIR_WAY) return;
    sendIsDue = true;
    scheduler.round(() => {
      sendIsDue = false;
      const group = waiting.slice(0, MAX_TARGETS);
      waiting = waiting.slice(MAX_TARGETS);
      onTheirWay += 1;
      void read(group).then(() => {
        onTheirWay -= 1;
        scheduleSend();
      });
      scheduleSend();
    });
  };

  const read = async (group: readonly Request[]): Promise<void> => {
    const [first] = group as [Request];
    try {
      if (group.length === 1) return first.resolve(await alone(first.target));
      const records = await together(group.map(({ target }) => target));
      for (const [n, { resolve }] of group.entries()) resolve(records[n] ?? null);
    } catch (error) {
      const mayBeOfOne = group.length > 1 && isOfOne(error);
      for (const { target, resolve, reject } of group) {
        if (mayBeOfOne) alone(target).then(resolve, reject);
        else reject(error);
      }
    }
  };

  return (target) =>
    new Promise((resolve, reject) => {
      waiting.push({ target, resolve, reject });
      scheduleSend();
    });
}

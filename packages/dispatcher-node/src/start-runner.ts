import { checkOptions, ValidationError, type Known, type Runner } from "pawl";
import { Dispatcher, type PollBounds } from "./dispatcher.js";
import { checkTimeout } from "./timeout.js";

export type StartRunnerOptions = {
  /** How many runs are worked on at a time. Default 100. A parked run takes no slot. */
  readonly concurrency?: number | undefined;
  /**
   * How often to look for work without a hint, as a safety net. The pause gets shorter while there is work and longer
   * while there is none, between `minMs` (default 500) and `maxMs` (default 30,000).
   */
  readonly poll?: Partial<PollBounds> | undefined;
  /**
   * How long after its last heartbeat this process counts as dead and others take over its runs, in milliseconds: 1,000
   * to 3,600,000, default 30,000. While it has work it sends a heartbeat every third of that.
   */
  readonly leaseMs?: number | undefined;
  /** Whether hints from other processes wake it, on a database that carries them (PostgreSQL). Default true. */
  readonly listen?: boolean | undefined;
};

export type StopOptions = {
  /** How long running bodies may take to end, in milliseconds. Default 10 seconds. Then they are cut off. */
  readonly timeoutMs?: number | undefined;
};

/** A runner that looks for work until it is stopped. */
export interface RunningRunner {
  /**
   * Starts no more bodies, lets the running ones end, and gives all runs back to the queue. Never rejects because of
   * the store: runs that could not be given back are taken over after the lease. A stop costs a step no attempt; only a
   * step with `retries: { limit: 0 }` that is cut off has had its only one.
   */
  stop(options?: StopOptions): Promise<void>;
}

const runnerOptions: Known<StartRunnerOptions> = {
  concurrency: true,
  poll: true,
  leaseMs: true,
  listen: true,
};
const pollOptions: Known<PollBounds> = { minMs: true, maxMs: true };

const CONCURRENCY = 100;
const POLL: PollBounds = { minMs: 500, maxMs: 30_000 };
const DRAIN_MS = 10_000;
const LEASE = { ms: 30_000, minMs: 1_000, maxMs: 3_600_000 };

/**
 * Runs workflows in this process until the returned runner is stopped. Throws `ValidationError` for an option that is
 * not allowed, or if another runner of the same `pawl` has not stopped yet, and `StoreClosedError` if `pawl` was closed.
 *
 * @example
 * ```ts
 * const runner = startRunner(pawl, { concurrency: 50 });
 * ```
 */
export function startRunner(
  { runner }: { readonly runner: Runner },
  options: StartRunnerOptions = {},
): RunningRunner {
  checkOptions("startRunner", options, runnerOptions);
  if (options.poll !== undefined) checkOptions("startRunner: poll", options.poll, pollOptions);
  const concurrency = options.concurrency ?? CONCURRENCY;
  const { leaseMs = LEASE.ms, listen = true } = options;
  const poll = {
    minMs: options.poll?.minMs ?? POLL.minMs,
    maxMs: options.poll?.maxMs ?? POLL.maxMs,
  };
  check(
    Number.isInteger(concurrency) && concurrency >= 1,
    "concurrency must be a whole number from 1",
  );
  check(
    Number.isInteger(leaseMs) && leaseMs >= LEASE.minMs && leaseMs <= LEASE.maxMs,
    `leaseMs must be a whole number from ${LEASE.minMs} to ${LEASE.maxMs}`,
  );
  check(typeof listen === "boolean", "listen must be true or false");
  check(
    poll.minMs >= 1 && poll.maxMs >= poll.minMs && poll.maxMs < Infinity,
    "poll must have 1 <= minMs <= maxMs",
  );
  const dispatcher = new Dispatcher(runner, poll);
  runner.serve(dispatcher.wake, {
    concurrency,
    leaseMs,
    listen,
    asking: () => dispatcher.asking(),
    stopped: () => dispatcher.stop(),
  });
  const over = dispatcher.run();
  let stopping: Promise<void> | null = null;
  return {
    stop: async ({ timeoutMs = DRAIN_MS } = {}) => {
      checkTimeout("stop", timeoutMs);
      await (stopping ??= stop(timeoutMs));
    },
  };

  async function stop(timeoutMs: number): Promise<void> {
    dispatcher.stop();
    try {
      await runner.stop(timeoutMs);
      await over;
    } catch (error) {
      // Runs that could not be given back are taken over when the lease has run out.
      runner.logger.warn("stop.failed", { error: String(error) });
    }
  }
}

function check(isRight: boolean, message: string): void {
  if (!isRight) throw new ValidationError(`startRunner: ${message}`);
}

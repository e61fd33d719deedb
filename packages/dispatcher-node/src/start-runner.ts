import { checkOptions, ValidationError, type Known, type Runner } from "pawl";
import { Dispatcher, type PollBounds } from "./dispatcher.js";
import { checkTimeout } from "./timeout.js";

export type StartRunnerOptions = {
  /** Runs that are worked on at a time; default 100. A parked run takes no place. */
  readonly concurrency?: number | undefined;
  /** How often to look without a reason, as a safety net: default every 500 ms to 30 s, as there is work or not. */
  readonly poll?: Partial<PollBounds> | undefined;
  /**
   * How long after its last sign of life this process counts as dead, and others take its runs over; default 30
   * seconds. It gives one three times as often.
   */
  readonly leaseMs?: number | undefined;
  /** Whether other processes' hints wake it at once, on a database that carries them (PostgreSQL); default true. */
  readonly listen?: boolean | undefined;
};

export type StopOptions = {
  /** How long bodies that run may take to end; default 10 seconds. Then they are cut off and given back. */
  readonly timeoutMs?: number | undefined;
};

export interface RunningRunner {
  /** Starts no more bodies, lets those that run end, and gives all runs back. It costs no attempt. */
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

/** Runs workflows in this process until it is stopped. */
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
  runner.serve((inMs) => dispatcher.wake(inMs), {
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
      // What could not be given back is taken over when the lease has run out.
      runner.logger.warn("stop.failed", { error: String(error) });
    }
  }
}

function check(isRight: boolean, message: string): void {
  if (!isRight) throw new ValidationError(`startRunner: ${message}`);
}

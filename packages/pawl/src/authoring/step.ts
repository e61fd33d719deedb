import type { Signal } from "../model/abort.js";
import type { WorkflowDuration } from "../model/duration.js";
import type { Backoff } from "../model/limits.js";
import type { EventSchemas, SchemaOutput } from "./schema.js";

/**
 * How the delay grows from one retry to the next. `"constant"` keeps it, `"linear"` makes it 1, 2, 3 … times as long,
 * and `"exponential"` doubles it each time.
 */
export type WorkflowBackoff = Backoff;

/**
 * Spreads retries at random. A number from 0 to 1 is a share of the delay by which it may grow or shrink; `true` means
 * 0.5. Of a range, a random part is added to the delay.
 */
export type WorkflowJitter =
  | boolean
  | number
  | { readonly min: WorkflowDuration; readonly max: WorkflowDuration };

/** How a step is retried. Fields that are left out come from `stepDefaults`, and else have the defaults given here. */
export type WorkflowRetries = {
  /** How many retries may follow the first attempt: 2 means up to 3 attempts. May be `Infinity`. Default 5. */
  readonly limit?: number | undefined;
  /** How long to wait before the first retry, counted from when the failure is stored. Default 10 seconds. */
  readonly delay?: WorkflowDuration | undefined;
  /** How the delay grows from one retry to the next. Default `"exponential"`. */
  readonly backoff?: WorkflowBackoff | undefined;
  /** Spreads retries at random. Default: none. */
  readonly jitter?: WorkflowJitter | undefined;
  /** The longest delay, with jitter and `retryAfter` included. Default `limits.maxSleepMs`, 365 days. */
  readonly maxDelay?: WorkflowDuration | undefined;
  /**
   * Returns whether an error is worth another attempt. Without it, an error whose `status` is 400 to 499 is not, except
   * for 408, 425 and 429; any other error is. It is not asked about a `NonRetryableError` or after the last attempt.
   */
  retryable?(error: unknown): boolean;
};

/** The second argument of `step.do`. Fields that are left out come from `stepDefaults`. */
export type WorkflowStepConfig = {
  /** How the step is retried after an attempt that failed. */
  readonly retries?: WorkflowRetries | undefined;
  /** How long each attempt may take before it fails with `StepTimeoutError`. Default 10 minutes. */
  readonly timeout?: WorkflowDuration | undefined;
};

/** A step's config with the defaults filled in. Durations are in milliseconds. */
export type EffectiveStepConfig = {
  readonly retries: {
    readonly limit: number;
    readonly delay: WorkflowDuration;
    readonly backoff: WorkflowBackoff;
  };
  readonly timeout: WorkflowDuration;
};

/** The argument of a step's body. */
export type StepContext = {
  /** `count` is 1, or under `repeatedStepNames: "counted"` how often this name was called so far. */
  readonly step: { readonly name: string; readonly count: number };
  /** Counts the attempts of the step, from 1. */
  readonly attempt: number;
  readonly config: EffectiveStepConfig;
  readonly instanceId: string;
  /**
   * Fires when nobody wants the attempt's result any more: it took longer than its timeout, its run has ended or was
   * terminated or restarted, its runner lost the lease, or a stop cut it off.
   */
  readonly signal: Signal;
};

/** An event that `waitForEvent` received. */
export type WorkflowStepEvent<Payload = unknown> = {
  readonly type: string;
  readonly payload: Readonly<Payload>;
  /** When the event was stored for the run, by the database's clock. */
  readonly timestamp: Date;
};

export type WaitForEventOptions<Type extends string = string> = {
  /** The type of event to wait for. */
  readonly type: Type;
  /** How long to wait, from 1 second to 365 days. Default 24 hours. */
  readonly timeout?: WorkflowDuration | undefined;
};

/**
 * The durable operations of a run. Each has a name, by which a replay finds its recorded outcome. `Events` are the
 * schemas of the workflow's declared events, which type the payloads.
 */
export interface WorkflowStep<Events = unknown> {
  /**
   * Calls the callback until it succeeds once, and resolves to its result. The result is stored; a replay gets it
   * without calling the callback. Rejects with the last error when no attempt is left or the error is not worth a
   * retry.
   *
   * The callback may start more than once even if it succeeds, because a process can die before the result is stored.
   * With `retries: { limit: 0 }` it starts at most once.
   */
  do<T>(name: string, callback: (context: StepContext) => T | Promise<T>): Promise<T>;
  do<T>(
    name: string,
    config: WorkflowStepConfig,
    callback: (context: StepContext) => T | Promise<T>,
  ): Promise<T>;

  /** Resolves after this long, counted from the commit that stores the sleep. */
  sleep(name: string, duration: WorkflowDuration): Promise<void>;
  /** Resolves at this time, a `Date` or milliseconds since 1970; at once if it has passed. */
  sleepUntil(name: string, when: Date | number): Promise<void>;

  /**
   * Resolves to the oldest event of the type that no other wait has taken, even one sent before the wait began. Rejects
   * with `WaitTimeoutError` if none comes in time.
   */
  waitForEvent<Type extends keyof Events & string>(
    name: string,
    options: WaitForEventOptions<Type>,
  ): Promise<WorkflowStepEvent<EventOutput<Events, Type>>>;
  waitForEvent<Payload = unknown>(
    name: string,
    options: WaitForEventOptions,
  ): Promise<WorkflowStepEvent<Payload>>;
}

type EventOutput<Events, Type extends keyof Events> = Events extends EventSchemas
  ? SchemaOutput<Events[Type]>
  : unknown;

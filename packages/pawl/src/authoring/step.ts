import type { Signal } from "../model/abort.js";
import type { WorkflowDuration } from "../model/duration.js";
import type { Backoff } from "../model/limits.js";
import type { EventSchemas, SchemaOutput } from "./schema.js";

export type WorkflowBackoff = Backoff;

/**
 * Spreads retries: a number is a fraction (0 to 1) of the delay, up to which the delay grows or shrinks; `true`
 * is 0.5. A range is added to the delay.
 */
export type WorkflowJitter =
  | boolean
  | number
  | { readonly min: WorkflowDuration; readonly max: WorkflowDuration };

export type WorkflowRetries = {
  /** Retries after the first attempt: 2 means up to 3 attempts. May be `Infinity`. */
  readonly limit?: number | undefined;
  /** Before the first retry, counted from the failure. */
  readonly delay?: WorkflowDuration | undefined;
  readonly backoff?: WorkflowBackoff | undefined;
  readonly jitter?: WorkflowJitter | undefined;
  /** No delay is longer, however many attempts there were. */
  readonly maxDelay?: WorkflowDuration | undefined;
  /** Decides instead of the built-in rules whether an error is worth another attempt. */
  retryable?(error: unknown): boolean;
};

export type WorkflowStepConfig = {
  readonly retries?: WorkflowRetries | undefined;
  /** Of each attempt. */
  readonly timeout?: WorkflowDuration | undefined;
};

/** A step's config with the defaults filled in. */
export type EffectiveStepConfig = {
  readonly retries: {
    readonly limit: number;
    readonly delay: WorkflowDuration;
    readonly backoff: WorkflowBackoff;
  };
  readonly timeout: WorkflowDuration;
};

export type StepContext = {
  /** `count` says how often this name was called, from 1. */
  readonly step: { readonly name: string; readonly count: number };
  /** From 1. */
  readonly attempt: number;
  readonly config: EffectiveStepConfig;
  readonly instanceId: string;
  /** Fires when the attempt's result is not wanted any more: timeout, terminate, restart, a lost lease. */
  readonly signal: Signal;
};

export type WorkflowStepEvent<Payload = unknown> = {
  readonly type: string;
  readonly payload: Readonly<Payload>;
  readonly timestamp: Date;
};

export type WaitForEventOptions<Type extends string = string> = {
  readonly type: Type;
  /** Default 24 hours. */
  readonly timeout?: WorkflowDuration | undefined;
};

/** `Events` are the schemas of the workflow's declared events: they type the payloads. */
export interface WorkflowStep<Events = unknown> {
  /** Runs the callback until it succeeded once; from then on its recorded result is the answer. */
  do<T>(name: string, callback: (context: StepContext) => T | Promise<T>): Promise<T>;
  do<T>(
    name: string,
    config: WorkflowStepConfig,
    callback: (context: StepContext) => T | Promise<T>,
  ): Promise<T>;

  sleep(name: string, duration: WorkflowDuration): Promise<void>;
  /** A time that has passed continues at once. */
  sleepUntil(name: string, when: Date | number): Promise<void>;

  /** The oldest event of that type which nobody took yet; throws `WaitTimeoutError` if none comes in time. */
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

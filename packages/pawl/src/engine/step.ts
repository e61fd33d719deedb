import { encodeError } from "../model/error-codec.js";
import type { DbTime, LoadedStep, StepStatus } from "../store/records.js";
import type { Wake } from "../store/store.js";
import type { Attempt } from "./attempt.js";
import type { StepPolicy } from "./step-config.js";
import type { StepContext } from "../authoring/step.js";

export type StepType = "do" | "sleep" | "waitForEvent";

/** The text of a result or of an error, and its place in the order of settlements. */
export type Settlement = { readonly seq: number; readonly ok: boolean; readonly text: string };

/** What the code gets. */
export type Delivered = { readonly value: unknown } | { readonly error: unknown };

type Identity = Pick<Step, "ord" | "name" | "count" | "type" | "calledAfter">;

/** One named durable operation of a run, as this process knows it. */
export class Step {
  readonly ord: number;
  readonly name: string;
  readonly count: number;
  readonly type: StepType;
  /** As recorded: the last settlement delivered when it was first called. */
  readonly calledAfter: number;

  settled: Settlement | null = null;
  isCalled = false;
  /** Whose body called it last. */
  caller: Attempt | null = null;
  /** The step that it is nested in, if its key needs that. */
  outer: Step | null = null;
  /** Called before, by an attempt that is over. */
  isShared = false;
  isDelivered = false;
  /** Recorded, and not called any more by changed code. */
  isGone = false;
  /** The settlement that must be durable before its body starts. */
  barrier = 0;
  /** When its first body began here, by the process's clock. */
  beganAtMs: number | null = null;

  /** Attempts that count: those that failed, and those that a dead owner may have begun. */
  attempts = 0;
  /** The last attempt's error, as text. */
  lastError: string | null = null;
  /** What the database's row says; null while there is none. */
  recordedAs: StepStatus | null = null;
  recordedAttempts = 0;
  /** The start that its row tells, if it was loaded. */
  recordedAt: DbTime | null = null;
  /** When its wait ends, by the database; null before the wait is registered. */
  wakeAt: DbTime | null = null;
  /** When its wait shall end, until it is registered. */
  wake: Wake | null = null;
  /** Its wait will not end before this, whenever it is registered. */
  endsNotBefore: DbTime = 0;
  eventType: string | null = null;
  /** Why its wait fails. */
  refusal: string | null = null;
  /** A test wants its wait for an event to fail. */
  timesOutAtOnce = false;
  body: Body | null = null;
  /** Its row must say that it is running before its body starts. */
  needsStartRow = false;
  hasStartRow = false;

  /** Mostly one. */
  #waiting: Waiting | Waiting[] | null = null;

  constructor(identity: Identity) {
    this.ord = identity.ord;
    this.name = identity.name;
    this.count = identity.count;
    this.type = identity.type;
    this.calledAfter = identity.calledAfter;
  }

  static recorded(record: LoadedStep): Step {
    const step = new Step(record as LoadedStep & { readonly type: StepType });
    const { status, seq, result, error, open } = record;
    step.recordedAs = status;
    if (seq !== null) {
      const ok = status === "completed";
      step.settled = { seq, ok, text: (ok ? result : error) ?? "null" };
    }
    if (open === null) return step;
    step.attempts = open.attempts;
    step.recordedAttempts = open.attempts;
    step.recordedAt = open.startedAt;
    step.wakeAt = open.wakeAt;
    step.eventType = open.waitKey;
    step.lastError = error;
    return step;
  }

  called(delivered: number, caller: Attempt | null): void {
    this.isCalled = true;
    this.caller = caller;
    this.barrier = delivered;
  }

  /** By the next attempt of the step that it is nested in. */
  calledAgain(caller: Attempt): void {
    this.caller = caller;
    this.isShared = true;
  }

  /** A wait that cannot be: it ends at once. What is far from now is not far for ever, so its end is recorded. */
  refuse(error: unknown): void {
    this.refusal = encodeError(error);
    this.wake = { inMs: 0 };
  }

  /** The promise that the code gets. */
  promise(): Promise<unknown> {
    const waiting = new Waiting();
    this.#waiting = this.#waiting === null ? waiting : [this.#waiting, waiting].flat();
    return waiting.promise;
  }

  deliver(decode: (step: Step, settlement: Settlement) => Delivered): void {
    this.isDelivered = true;
    this.body = null;
    const waiting = this.#waiting;
    this.#waiting = null;
    if (this.settled === null || waiting === null) return;
    if (waiting instanceof Waiting) waiting.settle(decode(this, this.settled));
    else for (const each of waiting) each.settle(decode(this, this.settled));
  }
}

class Waiting {
  readonly promise: Promise<unknown>;
  #resolve!: (value: unknown) => void;
  #reject!: (error: unknown) => void;

  constructor() {
    this.promise = new Promise<unknown>((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
  }

  settle(outcome: Delivered): void {
    if ("value" in outcome) return this.#resolve(outcome.value);
    this.#reject(outcome.error);
    void mayBeUnheard(this.promise);
  }
}

/** A failing step that nobody awaits must not end the process. */
export function mayBeUnheard<T>(promise: Promise<T>): Promise<T> {
  promise.catch(() => {});
  return promise;
}

/** What a `do` step runs. */
export type Body = {
  readonly callback: (context: StepContext) => unknown;
  readonly policy: StepPolicy;
  readonly isNested: boolean;
};

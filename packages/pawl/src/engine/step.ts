import type { Codec } from "../model/codec.js";
import { decodeError } from "../model/error-codec.js";
import type { DbTime, LoadedStep } from "../store/records.js";
import type { StepStatus } from "../model/step-types.js";
import type { Wake } from "../model/wake.js";
import type { Attempt } from "./attempt.js";
import type { Body, StepKind } from "./kinds/kind.js";

/** A step's result or final error as text. */
export type Settled = { readonly ok: boolean; readonly text: string };

/** A settlement with its number, in the order in which settlements happened. */
type Settlement = Settled & { readonly seq: number };

/** The value or error that the code is given when a settlement is delivered. */
type Delivered = { readonly value: unknown } | { readonly error: unknown };

/**
 * One named durable operation of a run, as this process knows it. `call` tells how the code called it. `open` tells how
 * it stands while it has no settlement.
 */
export class Step {
  /** The step's place in the order in which the run's code first called its steps, from 1. */
  readonly ord: number;
  readonly name: string;
  readonly count: number;
  readonly kind: StepKind;
  /**
   * The number of the last settlement that had been delivered when the step was first called. A nested step has the
   * negative order of its outer step instead.
   */
  readonly calledAfter: number;

  /** The status in the database's row; null while there is no row. */
  recordedAs: StepStatus | null = null;
  settled: Settlement | null = null;
  /** Null until the code in memory calls the step. */
  call: StepCall | null = null;
  /** Null before a new step is called, and again once the step's settlement is in the database. */
  open: OpenStep | null = null;
  /** The step is recorded, but changed code does not call it any more. */
  isGone = false;

  constructor(ord: number, name: string, count: number, kind: StepKind, calledAfter: number) {
    this.ord = ord;
    this.name = name;
    this.count = count;
    this.kind = kind;
    this.calledAfter = calledAfter;
  }

  static recorded(record: LoadedStep, kind: StepKind): Step {
    const { ord, name, count, calledAfter, status, seq, result, error } = record;
    const step = new Step(ord, name, count, kind, calledAfter);
    step.recordedAs = status;
    if (seq !== null) {
      const ok = status === "completed";
      step.settled = { seq, ok, text: (ok ? result : error) ?? "null" };
    }
    if (record.open !== null) step.open = OpenStep.recorded(record.open, error);
    return step;
  }
}

/** How the code called a step, and the promises that it was given for it. */
export class StepCall {
  /** The attempt whose body called the step last; null outside of bodies. */
  caller: Attempt | null;
  /** The outer step, if this step's row needs the outer one's row; otherwise null. */
  readonly outer: Step | null;
  /** The settlement that must be durable before the step's body starts. */
  readonly barrier: number;
  /** An attempt that is over called the step before, and the next attempt calls it again. */
  isShared = false;
  isDelivered = false;
  /** The promises that are not settled yet. Mostly there is one, and no array is needed. */
  #promises: StepPromise | StepPromise[] | null = null;

  constructor(caller: Attempt | null, outer: Step | null, barrier: number) {
    this.caller = caller;
    this.outer = outer;
    this.barrier = barrier;
  }

  promise(): Promise<unknown> {
    const promise = new StepPromise();
    this.#promises = this.#promises === null ? promise : [this.#promises, promise].flat();
    return promise.promise;
  }

  /** Decodes the settlement once for each promise, so that no two of them share a value. */
  deliver(step: Step, codec: Codec): void {
    this.isDelivered = true;
    const promises = this.#promises;
    this.#promises = null;
    if (promises === null) return;
    if (promises instanceof StepPromise) promises.settle(decodeSettlement(step, codec));
    else for (const each of promises) each.settle(decodeSettlement(step, codec));
  }
}

class StepPromise {
  readonly promise: Promise<unknown>;
  #resolve!: (value: unknown) => void;
  #reject!: (error: unknown) => void;

  constructor() {
    this.promise = new Promise<unknown>((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
  }

  settle(delivered: Delivered): void {
    if ("value" in delivered) return this.#resolve(delivered.value);
    this.#reject(delivered.error);
    void mayBeUnheard(this.promise);
  }
}

/** Returns a settlement as the code is given it. */
export function decodeSettlement({ settled, kind }: Step, codec: Codec): Delivered {
  const { ok, text } = settled as Settlement;
  try {
    return ok ? { value: kind.decode(text, codec) } : { error: decodeError(text) };
  } catch (error) {
    return { error };
  }
}

/** Keeps a rejection that nobody handles from ending the process, because authors need not await a step. */
export function mayBeUnheard<T>(promise: Promise<T>): Promise<T> {
  promise.catch(() => {});
  return promise;
}

/** The state of a step that has no settlement in the database yet: its body and attempts, or its wait. */
export class OpenStep {
  /** The attempts that count: the failed ones, and those that a dead owner may have begun. */
  attempts = 0;
  /** The attempts that the database's row counts. */
  recordedAttempts = 0;
  /** The start time in the loaded row. */
  recordedAt: DbTime | null = null;
  /** The last attempt's error as text. */
  lastError: string | null = null;
  /** When the step's first body began in this process, by the process's clock. */
  beganAtMs: number | null = null;

  body: Body | null = null;
  /** The body of another step called this step, and cannot end before this step does. */
  isNested = false;
  /** Whether the row must say that the step is running before its body starts, and whether it already does. */
  startRow: "unneeded" | "needed" | "written" = "unneeded";

  /** When the wait ends, as the database computed it; null before the wait is registered. */
  wakeAt: DbTime | null = null;
  /** When the wait should end. It counts until the wait is registered. */
  wake: Wake | null = null;
  /** The wait will not end before this time, whenever it is registered. */
  endsNotBefore: DbTime = 0;
  /** The type of the event that the wait is for; null if it only waits for a time. */
  waitKey: string | null = null;
  /** How the wait ends if it is over as soon as it begins; otherwise null. */
  endsAs: Settled | null = null;

  static recorded(record: NonNullable<LoadedStep["open"]>, error: string | null): OpenStep {
    const open = new OpenStep();
    open.attempts = record.attempts;
    open.recordedAttempts = record.attempts;
    open.recordedAt = record.startedAt;
    open.wakeAt = record.wakeAt;
    open.waitKey = record.waitKey;
    open.lastError = error;
    return open;
  }

  /** Makes the next attempt write a start row of its own, if this one has written one. */
  forgetStartRow(): void {
    if (this.startRow === "written") this.startRow = "needed";
  }
}

import type { Codec } from "../model/codec.js";
import { decodeError } from "../model/error-codec.js";
import type { DbTime, LoadedStep, StepStatus } from "../store/records.js";
import type { Wake } from "../store/store.js";
import type { Attempt } from "./attempt.js";
import type { Body, StepKind } from "./kinds/kind.js";

/** A step's result or final error as text. */
export type Settled = { readonly ok: boolean; readonly text: string };

/** A settlement with its number in the order in which they happened. */
export type Settlement = Settled & { readonly seq: number };

/** What the code is given when a settlement is delivered. */
export type Delivered = { readonly value: unknown } | { readonly error: unknown };

/**
 * One named durable operation of a run, as this process knows it: what it is, what is recorded of it, how the code called
 * it (`call`), and how it stands while it has no settlement (`open`).
 */
export class Step {
  /** The order in which the run's code first called its steps, from 1. */
  readonly ord: number;
  readonly name: string;
  readonly count: number;
  readonly kind: StepKind;
  /** As recorded: the last settlement that had been delivered when the step was first called. */
  readonly calledAfter: number;

  /** The status in the database's row; null while there is no row. */
  recordedAs: StepStatus | null = null;
  settled: Settlement | null = null;
  /** Null until the code in memory calls it. */
  call: StepCall | null = null;
  /** Null before a new step is called, and again once its settlement is in the database. */
  open: OpenStep | null = null;
  /** The step is recorded, and changed code does not call it any more. */
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
  /** The step that this one is nested in, if its key needs that. */
  readonly outer: Step | null;
  /** The settlement that must be durable before the step's body starts. */
  readonly barrier: number;
  /** An attempt that is over called the step before, and its successor calls it again. */
  isShared = false;
  isDelivered = false;
  /** Mostly there is one promise. */
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

/** A settlement as the code is given it. */
export function decodeSettlement({ settled, kind }: Step, codec: Codec): Delivered {
  const { ok, text } = settled as Settlement;
  try {
    return ok ? { value: kind.decode(text, codec) } : { error: decodeError(text) };
  } catch (error) {
    return { error };
  }
}

/** Keeps a rejection that nobody handles from ending the process: the author may not await a step. */
export function mayBeUnheard<T>(promise: Promise<T>): Promise<T> {
  promise.catch(() => {});
  return promise;
}

/** How a step stands that has no settlement in the database yet: its body and attempts, or its wait. */
export class OpenStep {
  /** The attempts that count: those that failed, and those that a dead owner may have begun. */
  attempts = 0;
  /** The attempts that the database's row counts. */
  recordedAttempts = 0;
  /** The start that the loaded row tells. */
  recordedAt: DbTime | null = null;
  /** The last attempt's error as text. */
  lastError: string | null = null;
  /** When its first body began here, by the process's clock. */
  beganAtMs: number | null = null;

  body: Body | null = null;
  /** Another step's body called it: that one cannot end before this one does. */
  isNested = false;
  /** Whether the row must say that the step is running before its body starts, and whether it does. */
  startRow: "unneeded" | "needed" | "written" = "unneeded";

  /** When its wait ends, by the database; null before the wait is registered. */
  wakeAt: DbTime | null = null;
  /** When its wait shall end, until it is registered. */
  wake: Wake | null = null;
  /** Its wait will not end before this, whenever it is registered. */
  endsNotBefore: DbTime = 0;
  /** What its wait is for besides time: the type of an event. */
  waitKey: string | null = null;
  /** The wait is over as soon as it begins, and this is how. */
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

  /** A new start row is needed for each attempt. */
  forgetStartRow(): void {
    if (this.startRow === "written") this.startRow = "needed";
  }
}

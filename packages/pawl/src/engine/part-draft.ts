import type { DbTime } from "../store/records.js";
import type { Wake } from "../model/wake.js";
import type { AttemptWrite, Next, Part, StepWrite } from "../store/part.js";
import { wakeTime } from "../model/wake.js";
import type { OpenSteps } from "./open-steps.js";
import type { OpenStep, Step } from "./step.js";

const none: readonly never[] = [];

/**
 * The activity of a step without a settlement. A "resting" step was called, has not begun, and is given back like that.
 * A step that neither waits, starts nor rests is "running".
 */
type Doing = "waiting" | "starting" | "resting" | "running";

/** A part on its way. It is sent again unchanged until its fate is known. */
export class FrozenPart {
  /** "leaving" if the part gives the ticket up. */
  readonly is: "sending" | "leaving";
  readonly part: Part;
  readonly steps: readonly Step[];
  /** The steps whose rows say that they are about to start. */
  readonly starting: readonly Step[];
  /** The number of the last settlement when the part was frozen. */
  readonly seq: number;
  /** The approximate size of the part on its way. */
  readonly bytes: number;
  /** The code called a step while the part was leaving, so the run needs its ticket again. */
  wantsReopen = false;
  /**
   * A poll did not find the ticket ours while the part was leaving. The answer to the part tells whether it still was.
   */
  isMissed = false;

  constructor(
    part: Part,
    steps: readonly Step[],
    starting: readonly Step[],
    seq: number,
    bytes: number,
  ) {
    this.is = part.next.kind === "continue" ? "sending" : "leaving";
    this.part = part;
    this.steps = steps;
    this.starting = starting;
    this.seq = seq;
    this.bytes = bytes;
  }
}

type PartHeader = {
  readonly iid: string;
  readonly runNumber: number;
  readonly claimNumber: number;
};

/**
 * The part that a run will send next: everything that it has not yet written. At most one part is on its way, and it is
 * frozen. Whatever comes meanwhile is for the next one.
 */
export class PartDraft {
  /** The approximate size of the run's history, including the part on its way. */
  historyBytes: number;
  readonly #dirty = new Set<Step>();
  /** The dirty steps whose start rows are written before their bodies start. */
  readonly #starting = new Set<Step>();
  #attempts: AttemptWrite[] = [];
  #consumed: { readonly number: number; readonly ord: number }[] = [];
  #partNumber: number;
  #frozen: FrozenPart | null = null;
  /** The number of the last settlement that is certainly in the database. */
  #durable: number;
  #barriers: { readonly seq: number; readonly resolve: () => void }[] = [];
  /**
   * The run was taken over, and no progress has been written since. The next part with a settlement tells that there
   * was some.
   */
  #mustForgive: boolean;

  constructor(durable: number, historyBytes: number, wasTakenOver: boolean, partsSent: number) {
    this.#durable = durable;
    this.historyBytes = historyBytes;
    this.#mustForgive = wasTakenOver;
    this.#partNumber = partsSent;
  }

  get isEmpty(): boolean {
    return this.#dirty.size === 0 && this.#attempts.length === 0;
  }

  /** Adds the step's row to the part. It is written as the step stands when the part is frozen. */
  add(step: Step): void {
    this.#starting.delete(step);
    this.#dirty.add(step);
    if (step.call !== null && step.call.outer !== null) this.#addOuter(step.call.outer);
  }

  /**
   * Adds the row of the outer step, if it has none. A nested step's row needs it, because its key contains the order of
   * the outer step.
   */
  #addOuter(outer: Step): void {
    if (outer.recordedAs !== null) return;
    this.#dirty.add(outer);
    if (outer.call !== null && outer.call.outer !== null) this.#addOuter(outer.call.outer);
  }

  /**
   * Adds the step's start row, unless it is on its way. Every pass asks for the row until it is there. Written twice,
   * it would outlive the attempt that it is for.
   */
  addStart(step: Step): void {
    if (this.#frozen?.starting.includes(step) === true) return;
    this.add(step);
    this.#starting.add(step);
  }

  addAttempt(write: AttemptWrite): void {
    this.#attempts.push(write);
  }

  consume(number: number, ord: number): void {
    this.#consumed.push({ number, ord });
  }

  /** Returns whether the database says that the step runs, or soon will. */
  tellsOf(step: Step): boolean {
    return step.recordedAs === "running" || this.#frozen?.steps.includes(step) === true;
  }

  isDurable(seq: number): boolean {
    return seq <= this.#durable;
  }

  whenDurable(seq: number): Promise<void> {
    if (this.isDurable(seq)) return Promise.resolve();
    return new Promise((resolve) => void this.#barriers.push({ seq, resolve }));
  }

  /** Begins a new claim. Parts are counted from the claim on. */
  newClaim(): void {
    this.#partNumber = 0;
  }

  /**
   * Takes back the starts of steps that do not start now, because they must not count. An attempt that a dead owner
   * used up does count, and is written.
   */
  takeBackStarts(ready: Iterable<Step>): void {
    this.#starting.clear();
    for (const step of ready) {
      const open = step.open as OpenStep;
      if (open.startRow !== "written" && open.attempts === open.recordedAttempts) continue;
      open.forgetStartRow();
      this.#dirty.add(step);
    }
  }

  /**
   * Makes one part of everything that is new. It is written property by property: rest and spread made this the most
   * expensive function of a step.
   */
  freeze(
    run: PartHeader,
    next: Next,
    seq: number,
    openSteps: OpenSteps,
    nowMs: number,
  ): FrozenPart {
    const steps = [...this.#dirty];
    const isForgiven = this.#mustForgive && steps.some(({ settled }) => settled !== null);
    this.#partNumber += 1;
    const part: Part = {
      iid: run.iid,
      runNumber: run.runNumber,
      claimNumber: run.claimNumber,
      partNumber: this.#partNumber,
      seenEvents: openSteps.seenEvents,
      next,
      steps: steps.map((step) =>
        stepWrite(step, this.#starting.has(step) ? "starting" : openSteps.doing(step), nowMs),
      ),
      attempts: this.#attempts.length === 0 ? none : this.#attempts,
      consumed: this.#consumed.length === 0 ? none : this.#consumed,
      spawns: none,
      deliveries: none,
      takeovers: isForgiven ? 0 : undefined,
    };
    const starting = this.#starting.size === 0 ? none : [...this.#starting];
    const stepBytes = bytesOfAll(part.steps);
    this.#frozen = new FrozenPart(part, steps, starting, seq, stepBytes + bytesOfEnd(next));
    this.#mustForgive &&= !isForgiven;
    this.#dirty.clear();
    // Most parts have none of these, and then nothing new needs to be allocated.
    if (starting.length > 0) this.#starting.clear();
    if (part.attempts.length > 0) this.#attempts = [];
    if (part.consumed.length > 0) this.#consumed = [];
    this.historyBytes += stepBytes;
    return this.#frozen;
  }

  /** Notes that the part on its way was written to the database at `now`. */
  applied({ part, steps, starting, seq }: FrozenPart, now: DbTime): void {
    this.#frozen = null;
    this.#durable = seq;
    for (let n = 0; n < steps.length; n++) {
      const step = steps[n] as Step;
      const { status, attempts, wake } = part.steps[n] as StepWrite;
      step.recordedAs = status;
      const { open } = step;
      if (open === null) continue;
      open.recordedAttempts = attempts;
      if (status === "waiting" && wake !== null) open.wakeAt ??= wakeTime(wake, now);
      else if (status === "completed" || status === "errored") {
        step.open = null;
        // A nested step may have marked its outer step again while that one's settlement was on its way: it has a row now.
        this.#dirty.delete(step);
      }
    }
    for (const { open } of starting) if (open !== null) open.startRow = "written";
    if (this.#barriers.length === 0) return;
    for (const barrier of this.#barriers) if (this.isDurable(barrier.seq)) barrier.resolve();
    this.#barriers = this.#barriers.filter((barrier) => !this.isDurable(barrier.seq));
  }
}

/** The approximate size of a row without its texts, in the database and on its way there. */
const ROW_BYTES = 200;

/** Returns about how many bytes these steps add to their run's history. */
export function bytesOfAll(steps: readonly Pick<StepWrite, "result" | "error">[]): number {
  let bytes = 0;
  for (const { result, error } of steps) {
    bytes +=
      ROW_BYTES + (result === null ? 0 : result.length) + (error === null ? 0 : error.length);
  }
  return bytes;
}

function bytesOfEnd(next: Next): number {
  const text = next.kind === "complete" ? next.output : next.kind === "fail" ? next.error : null;
  return ROW_BYTES + (text === null ? 0 : text.length);
}

function stepWrite(step: Step, doing: Doing, nowMs: number): StepWrite {
  const { settled, kind } = step;
  const open = step.open as OpenStep;
  return {
    ord: step.ord,
    name: step.name,
    count: step.count,
    type: kind.type,
    status: statusOf(step, doing),
    seq: settled === null ? null : settled.seq,
    calledAfter: step.calledAfter,
    // A step with a single attempt spends it when its start is written, not when it fails.
    attempts: doing === "starting" && open.body?.policy.maxAttempts === 1 ? 1 : open.attempts,
    // The time counts from the start of the first body. A body starts only after all that it has to wait for, so no
    // step seems to start before the one that it follows has ended.
    tookMs: open.beganAtMs === null ? 0 : Math.max(0, nowMs - open.beganAtMs),
    wake: kind.body !== null && settled !== null ? null : wakeOf(step, open, doing),
    waitKey: open.waitKey,
    result: settled !== null && settled.ok && kind.keepsResult ? settled.text : null,
    error: settled === null ? open.lastError : settled.ok ? null : settled.text,
    isNew: step.recordedAs === null,
  };
}

function statusOf({ settled }: Step, doing: Doing): StepWrite["status"] {
  if (settled !== null) return settled.ok ? "completed" : "errored";
  return doing === "waiting" || doing === "resting" ? "waiting" : "running";
}

/**
 * Returns the wake time for the step's row. A wait keeps its end, for people who look later. A step with a body keeps
 * the end of its pause while the next attempt runs.
 */
function wakeOf({ kind, settled }: Step, { wakeAt, wake }: OpenStep, doing: Doing): Wake | null {
  if (kind.body !== null && doing === "resting") return null;
  if (wakeAt !== null) return { at: wakeAt };
  return settled === null && (kind.body === null || doing === "waiting") ? wake : null;
}

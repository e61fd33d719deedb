import type { DbTime } from "../store/records.js";
import type { AttemptWrite, Part, StepWrite, Wake } from "../store/store.js";
import { wakeTime } from "../store/wake.js";
import type { Step } from "./step.js";

/** About what a row takes besides its texts. */
const ROW_BYTES = 100;

const none: readonly never[] = [];

/** "resting": called, not begun, and given back so. Anything else that is not settled runs. */
export type Doing = "waiting" | "starting" | "resting" | "running";

/** A part on its way, and what it stands for. */
type Frozen = {
  readonly part: Part;
  readonly steps: readonly Step[];
  readonly starting: readonly Step[];
  readonly seq: number;
};

type Header = Pick<Part, "iid" | "runNumber" | "claimNumber" | "seenEvents" | "next"> & {
  /** The highest settlement so far. */
  readonly seq: number;
  readonly nowMs: number;
  readonly doing: (step: Step) => Exclude<Doing, "starting">;
};

/**
 * What a run has not yet written. One part is on its way at a time, frozen; what comes meanwhile is for the next.
 */
export class PartDraft {
  readonly #dirty = new Set<Step>();
  /** Of these, the ones whose start is written before their bodies. */
  readonly #starting = new Set<Step>();
  #attempts: AttemptWrite[] = [];
  #consumed: { readonly number: number; readonly ord: number }[] = [];
  #partNumber: number;
  #frozen: Frozen | null = null;
  /** The highest settlement that is certainly in the database. */
  #durable: number;
  #barriers: { readonly seq: number; readonly resolve: () => void }[] = [];
  /** The next settlement that is written tells that there was progress since the takeover. */
  #mustForgive: boolean;

  constructor(durable: number, wasTakenOver: boolean, parts: number) {
    this.#durable = durable;
    this.#partNumber = parts;
    this.#mustForgive = wasTakenOver;
  }

  add(step: Step): void {
    this.#starting.delete(step);
    this.#mark(step);
  }

  /** With the one that it is nested in, if that has no row yet: where there is an inner one, the outer one is known. */
  #mark(step: Step): void {
    this.#dirty.add(step);
    const { outer } = step;
    if (outer !== null && outer.recordedAs === null) this.#mark(outer);
  }

  /** Asked for at every pass until the row is there: once more while it is on its way would outlive the attempt. */
  start(step: Step): void {
    if (this.#frozen?.starting.includes(step) === true) return;
    this.#starting.add(step);
    this.#mark(step);
  }

  attempt(write: AttemptWrite): void {
    this.#attempts.push(write);
  }

  consume(number: number, ord: number): void {
    this.#consumed.push({ number, ord });
  }

  get isEmpty(): boolean {
    return this.#dirty.size === 0 && this.#attempts.length === 0;
  }

  get partOnItsWay(): Part | null {
    return this.#frozen?.part ?? null;
  }

  /** Whether the database says, or soon will, that the step runs. */
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

  /** Parts are counted from the claim. */
  newClaim(): void {
    this.#partNumber = 0;
  }

  /** A start that does not happen now must not count. What a dead owner used up must, and is written all the same. */
  takeBackStarts(ready: Iterable<Step>): void {
    this.#starting.clear();
    for (const step of ready) {
      if (!step.hasStartRow && step.attempts === step.recordedAttempts) continue;
      step.hasStartRow = false;
      this.#dirty.add(step);
    }
  }

  /** All that is new, as one part. */
  // Property by property: with rest and spread this was the dearest function of a step.
  freeze({ iid, runNumber, claimNumber, seenEvents, next, seq, nowMs, doing }: Header): Part {
    const steps = [...this.#dirty];
    const settles = this.#mustForgive && steps.some(({ settled }) => settled !== null);
    this.#partNumber += 1;
    const part: Part = {
      iid,
      runNumber,
      claimNumber,
      partNumber: this.#partNumber,
      seenEvents,
      next,
      steps: steps.map((step) =>
        stepWrite(step, this.#starting.has(step) ? "starting" : doing(step), nowMs),
      ),
      attempts: this.#attempts.length === 0 ? none : this.#attempts,
      consumed: this.#consumed.length === 0 ? none : this.#consumed,
      spawns: none,
      deliveries: none,
      takeovers: settles ? 0 : undefined,
    };
    const starting = this.#starting.size === 0 ? none : [...this.#starting];
    this.#frozen = { part, steps, starting, seq };
    this.#mustForgive &&= !settles;
    this.#dirty.clear();
    // Mostly there are none of these, and nothing new needs to be made.
    if (starting.length > 0) this.#starting.clear();
    if (part.attempts.length > 0) this.#attempts = [];
    if (part.consumed.length > 0) this.#consumed = [];
    return part;
  }

  /** The part on its way is in the database since `now`. */
  applied(now: DbTime): void {
    const frozen = this.#frozen;
    if (frozen === null) return;
    this.#frozen = null;
    this.#durable = frozen.seq;
    for (const [n, step] of frozen.steps.entries()) {
      const { status, attempts, wake } = frozen.part.steps[n] as StepWrite;
      step.recordedAs = status;
      step.recordedAttempts = attempts;
      if (status === "waiting" && wake !== null) step.wakeAt ??= wakeTime(wake, now);
    }
    for (const step of frozen.starting) step.hasStartRow = true;
    if (this.#barriers.length === 0) return;
    for (const { seq, resolve } of this.#barriers) if (this.isDurable(seq)) resolve();
    this.#barriers = this.#barriers.filter(({ seq }) => !this.isDurable(seq));
  }
}

function stepWrite(step: Step, doing: Doing, nowMs: number): StepWrite {
  const { settled } = step;
  return {
    ord: step.ord,
    name: step.name,
    count: step.count,
    type: step.type,
    status: statusOf(step, doing),
    seq: settled?.seq ?? null,
    calledAfter: step.calledAfter,
    attempts: attemptsOf(step, doing),
    // Counted from what the step had to wait for: it never starts before the one that it follows has ended.
    tookMs: step.beganAtMs === null ? 0 : Math.max(0, nowMs - step.beganAtMs),
    wake: wakeOf(step, doing),
    waitKey: step.eventType,
    result: settled?.ok === true && step.type !== "sleep" ? settled.text : null,
    error: settled === null ? step.lastError : settled.ok ? null : settled.text,
    isNew: step.recordedAs === null,
  };
}

function statusOf({ settled }: Step, doing: Doing): StepWrite["status"] {
  if (settled !== null) return settled.ok ? "completed" : "errored";
  return doing === "waiting" || doing === "resting" ? "waiting" : "running";
}

/** A step with one attempt only spends it when its start is written, not when it fails. */
function attemptsOf(step: Step, doing: Doing): number {
  return doing === "starting" && step.body?.policy.maxAttempts === 1 ? 1 : step.attempts;
}

/** A sleep or a wait keeps its end for people who look later, a `do` that of its pause while the next attempt runs. */
function wakeOf({ type, settled, wakeAt, wake }: Step, doing: Doing): Wake | null {
  if (type === "do" && (settled !== null || doing === "resting")) return null;
  if (wakeAt !== null) return { at: wakeAt };
  return settled === null && (type !== "do" || doing === "waiting") ? wake : null;
}

/** What a step adds to its run's history. */
export function bytesOf(step: Pick<StepWrite, "result" | "error">): number {
  return ROW_BYTES + (step.result?.length ?? 0) + (step.error?.length ?? 0);
}

export function bytesOfAll(steps: readonly Pick<StepWrite, "result" | "error">[]): number {
  return steps.reduce((sum, step) => sum + bytesOf(step), 0);
}

import { decodeError } from "../model/error-codec.js";
import { toTagged, type Codec } from "../model/codec.js";
import { isInstanceStatusName, isTerminal, type InstanceStatusName } from "../model/status.js";
import { dateOrNull } from "../instances/list.js";
import { attemptNumber, errorOf, waitOf } from "../instances/history.js";
import { instanceStatusOf } from "../instances/status.js";
import { decodeCursor, encodeCursor } from "../store/cursor.js";
import { type AttemptRecord, type RunRecord, type StepRecord } from "../store/records.js";
import { isSettled } from "../model/step-types.js";
import { type Target } from "../model/target.js";
import type { streamedStatus, streamedStep } from "./answer-schemas.js";
import type { TypeOf } from "../model/schema.js";
import { wireStatus } from "../instances/wire-forms.js";
import { iso, wireWait } from "./wire.js";

export type StreamMessage = {
  /** The cursor from which a reader goes on after this message. */
  readonly id: string;
  readonly event: "status" | "step";
  readonly data: TypeOf<typeof streamedStatus> | TypeOf<typeof streamedStep>;
};

export type TrackedStep = {
  readonly step: StepRecord;
  readonly attempts: readonly AttemptRecord[];
};

/**
 * Remembers what a reader of an instance has been told, and turns what the store shows into what is new to that reader.
 */
export class Tracker {
  readonly #about: string;
  #runNumber = 0;
  /** The cursor from which the store's history is read. All steps before it are settled and were told. */
  #page: string | undefined;
  /** All steps up to this one are settled and were told. */
  #settledOrd = 0;
  #status: InstanceStatusName | null = null;
  /** How each of the steps after that one was told last. */
  readonly #told = new Map<number, string>();

  constructor({ workflow, id }: Target, cursor?: string) {
    this.#about = JSON.stringify(["events-stream", workflow, id]);
    if (cursor !== undefined) this.#goOnFrom(cursor);
  }

  #goOnFrom(cursor: string): void {
    const shape = ["int32", "int32", "string", "string"] as const;
    const [run, ord, status, page] = decodeCursor(cursor, this.#about, shape);
    this.#runNumber = run as number;
    this.#settledOrd = ord as number;
    this.#status = isInstanceStatusName(status) ? status : null;
    this.#page = page === "" ? undefined : (page as string);
  }

  get runNumber(): number {
    return this.#runNumber;
  }

  get page(): string | undefined {
    return this.#page;
  }

  /** True if nothing more will come, unless the instance is restarted. */
  get isOver(): boolean {
    return this.#status !== null && isTerminal(this.#status);
  }

  /** Starts over if this is a new run. */
  enter(runNumber: number): void {
    if (runNumber === this.#runNumber) return;
    this.#runNumber = runNumber;
    this.#page = undefined;
    this.#settledOrd = 0;
    this.#status = null;
    this.#told.clear();
  }

  /** Returns what is new about the steps of one page. `next` is the cursor of the following page. */
  steps(steps: readonly TrackedStep[], next: string | undefined): StreamMessage[] {
    const messages: StreamMessage[] = [];
    for (const { step, attempts } of steps) {
      if (step.ord <= this.#settledOrd) continue;
      const version = `${step.status} ${step.attempts} ${step.wakeAt}`;
      if (this.#told.get(step.ord) === version) continue;
      this.#told.set(step.ord, version);
      const isNext = step.ord === this.#settledOrd + 1;
      if (isNext && isSettled(step.status)) this.#settle();
      messages.push({ id: this.#cursor(), event: "step", data: this.#stepData(step, attempts) });
    }
    const last = steps.at(-1)?.step.ord ?? 0;
    if (next !== undefined && last <= this.#settledOrd) this.#page = next;
    return messages;
  }

  /**
   * Moves past settled steps. A step may be written before one that was called earlier, so only an unbroken row of
   * settled steps is done with.
   */
  #settle(): void {
    for (;;) {
      const version = this.#told.get(this.#settledOrd + 1);
      if (version === undefined || !isSettled(version.split(" ")[0])) return;
      this.#settledOrd += 1;
      this.#told.delete(this.#settledOrd);
    }
  }

  status(run: RunRecord, codec: Codec): StreamMessage[] {
    if (run.runNumber !== this.#runNumber || run.status === this.#status) return [];
    this.#status = run.status;
    return [{ id: this.#cursor(), event: "status", data: this.#statusData(run, codec) }];
  }

  #cursor(): string {
    const position = [this.#runNumber, this.#settledOrd, this.#status ?? "", this.#page ?? ""];
    return encodeCursor(this.#about, position);
  }

  #statusData(run: RunRecord, codec: Codec): TypeOf<typeof streamedStatus> {
    return {
      runNumber: run.runNumber,
      ...wireStatus(instanceStatusOf(run, codec)),
      ...(run.error === null ? {} : { thrown: toTagged(decodeError(run.error), "error") }),
    };
  }

  #stepData(step: StepRecord, attempts: readonly AttemptRecord[]): TypeOf<typeof streamedStep> {
    return {
      runNumber: this.#runNumber,
      ord: step.ord,
      name: step.name,
      count: step.count,
      type: step.type,
      status: step.status,
      startedAt: new Date(step.startedAt).toISOString(),
      endedAt: iso(dateOrNull(step.endedAt)),
      attempt: attemptNumber(step, attempts),
      ...errorOf(step),
      ...(step.status === "waiting" ? { wait: wireWait(waitOf(step)) } : {}),
    };
  }
}

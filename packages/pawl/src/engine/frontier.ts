import type { DbTime } from "../store/records.js";
import type { RunName } from "./attempt.js";
import { Bodies } from "./bodies.js";
import { charge, mayHaveBegun, type TakenOver } from "./charge.js";
import type { EngineContext } from "./context.js";
import {
  noAttemptsLeft,
  received,
  sleptOrRefused,
  timedOut,
  type Unnumbered,
} from "./settlements.js";
import type { Body, Step } from "./step.js";
import type { Waits } from "./waits.js";
import type { Doing, PartDraft } from "./part-draft.js";

/** What the run says about starting bodies, asked before each. */
export interface Gate {
  /** Only a body that another one awaits may still start. */
  isStopping(): boolean;
  /** Whether the lease is certain enough. */
  mayStart(): boolean;
  started(): void;
}

export interface FrontierEvents {
  settled(step: Step, settlement: Unnumbered): void;
  /** A body ended: there is something to do. */
  changed(): void;
}

/** The steps that were called and are not settled: ready to start, running, or waiting for time or an event. */
export class Frontier {
  readonly waits: Waits;
  readonly bodies: Bodies;
  /** In the order of their calls. */
  readonly #ready = new Set<Step>();
  readonly #context: EngineContext;
  readonly #writes: PartDraft;
  readonly #takenOver: TakenOver | null;
  readonly #events: FrontierEvents;

  constructor(
    run: RunName,
    context: EngineContext,
    waits: Waits,
    writes: PartDraft,
    takenOver: TakenOver | null,
    events: FrontierEvents,
  ) {
    this.waits = waits;
    this.#context = context;
    this.#writes = writes;
    this.#takenOver = takenOver;
    this.#events = events;
    this.bodies = new Bodies(run, context, writes, {
      settled: (step, settlement) => {
        events.settled(step, settlement);
        events.changed();
      },
      retries: (step) => {
        waits.add(step);
        writes.add(step);
        events.changed();
      },
    });
  }

  get isEmpty(): boolean {
    return this.bodies.count === 0 && this.waits.count === 0 && this.#ready.size === 0;
  }

  /** Called, and not begun. */
  get ready(): ReadonlySet<Step> {
    return this.#ready;
  }

  doing(step: Step): Exclude<Doing, "starting"> {
    if (this.waits.has(step)) return "waiting";
    return this.#ready.has(step) ? "resting" : "running";
  }

  /** When the first wait ends, as far as that is registered; now, if there is something to start. */
  get wakeAt(): DbTime | null {
    if (this.#ready.size > 0) return this.waits.now;
    const { wake } = this.waits;
    return wake !== null && "at" in wake ? wake.at : null;
  }

  add(step: Step, isInStride: boolean): void {
    // Called at its own time, after something that is no step: only its row can tell a later owner that it began.
    step.needsStartRow ||= !isInStride && step.body?.policy.maxAttempts !== Infinity;
    if (mayHaveBegun(step, this.#takenOver)) {
      this.#writes.attempt(charge(step, this.waits.now));
    }
    if (step.type !== "do") {
      this.waits.add(step);
      if (step.wakeAt === null) this.#writes.add(step);
    } else if (step.recordedAs === "waiting" && step.wakeAt !== null) {
      this.waits.add(step);
    } else {
      this.#ready.add(step);
    }
  }

  /** Whether any wait is over. */
  endWaits(): boolean {
    const ended = this.waits.end();
    for (const { step, event } of ended) {
      if (event !== null) {
        this.#writes.consume(event.number, step.ord);
        this.#events.settled(step, received(event, this.#context));
      } else if (step.type === "do") this.#ready.add(step);
      else
        this.#events.settled(step, step.type === "sleep" ? sleptOrRefused(step) : timedOut(step));
    }
    return ended.length > 0;
  }

  startBodies(gate: Gate): void {
    for (const step of this.#ready) {
      const body = step.body as Body;
      if (step.attempts >= body.policy.maxAttempts) {
        this.#ready.delete(step);
        this.#events.settled(step, noAttemptsLeft(step));
        this.#events.changed();
        continue;
      }
      // A body that another one awaits must start, or that one never ends.
      if (gate.isStopping() && !body.isNested) continue;
      if (!this.#writes.isDurable(step.barrier)) continue;
      if (step.needsStartRow && !step.hasStartRow) {
        this.#writes.start(step);
        continue;
      }
      if (!gate.mayStart()) return;
      this.#ready.delete(step);
      gate.started();
      this.bodies.start(step, body);
    }
  }

  /** Cuts the running bodies off. It costs them no attempt. */
  interrupt(reason: string): void {
    for (const { step, body } of this.bodies.attempts) {
      if (body.policy.maxAttempts === 1) continue; // begun is begun
      this.#ready.add(step);
      if (this.#writes.tellsOf(step)) this.#writes.add(step);
    }
    this.bodies.abandon(reason);
  }
}

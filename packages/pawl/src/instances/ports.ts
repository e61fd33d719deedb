import type { WorkflowEntry } from "../authoring/entry.js";
import type { Signal } from "../model/abort.js";
import type { Deliverer } from "../hooks/deliverer.js";
import type { Codec } from "../model/codec.js";
import type { Limits } from "../model/limits.js";
import type { Runtime } from "../model/seams.js";
import type { DbTime, Ended, EventRecord } from "../store/records.js";
import type { ChildOrigin, Target } from "../model/target.js";
import type { InstanceStore } from "../store/instance-store.js";
import type { Claimed, EventPlace, LeaseOnWake } from "../store/store.js";

/** Everything that instances need of the rest of the engine. */
export type InstancesContext<Tx> = {
  readonly store: InstanceStore<Tx>;
  /** The registered workflows, by name. */
  readonly entries: ReadonlyMap<string, WorkflowEntry>;
  readonly codec: Codec;
  readonly limits: Limits;
  readonly runtime: Runtime;
  /** Returns a function that tells whether it is still the same round of the event loop. */
  readonly thisRound: () => () => boolean;
  readonly ends: RunEnds;
};

/** The hooks of this process as callers need them. */
export type HooksOfProcess = Pick<Deliverer, "registered" | "names">;

/**
 * The runner of this process, for callers that start or change runs. All calls but reservations are hints: they may get
 * lost.
 */
export interface RunStarts {
  /**
   * Reserves slots for `count` new runs, so that they start here and now. Returns null if there is no room for so many.
   */
  reserve(count: number): Reservation | null;
  /** Work became due, and the runner should claim it soon. */
  wake(): void;
  /** Reserves a slot for a parked run that is in the memory of this process, in case an event wakes it. */
  reserveFor(target: Target): WakeReservation | null;
  /**
   * An event was added to a run. Returns true if the run is here and has the event now. Then nobody needs to fetch it.
   */
  sent(event: EventRecord, place: EventPlace): boolean;
  /** A run that `owner` holds was changed by an event, pause, terminate or restart. */
  poke(owner: string, target: Target): void;
}

/** How callers of this process learn of the ends of runs. */
export interface RunEnds {
  /** Returns whether the run has a slot in this process. As far as the process knows, such a run has not ended. */
  isHere(target: Target): boolean;
  /**
   * Resolves when a run that is here has ended or left its slot (parked or lost). It resolves at the latest after `ms`,
   * or when the signal fires.
   */
  left(target: Target, ms: number, signal?: Signal): Promise<Ended | null>;
  listen(target: Target): EndListener;
  /** Sees to it that listeners hear of the run's end, wherever it runs. Returns false if they may not hear of it. */
  ask(target: Target): boolean;
}

/** Hears once of a run's end, from its opening on. A caller that opens it before reading misses no end. */
export interface EndListener {
  /**
   * Resolves when the run may have ended since the opening, and closes the listener. It resolves at the latest after
   * `ms`, or when the signal fires. Returns how the run ended, if that was in this process.
   */
  heard(ms: number, signal?: Signal): Promise<Ended | null>;
  close(): void;
}

/** Reserved slots. Each of them is either started or released. */
export interface Reservation {
  /** The runner that the new runs are leased to. */
  readonly runner: string;
  started(runs: readonly StartedInstance[]): void;
  release(count: number): void;
}

/** A slot that is reserved for a parked run. It is either started or released. */
export interface WakeReservation {
  readonly lease: LeaseOnWake;
  started(claimed: Claimed): void;
  release(): void;
}

/** A run that was created already leased. Its first turn needs no claim and no read. */
export type StartedInstance = {
  readonly iid: string;
  readonly workflow: string;
  readonly id: string;
  readonly params: string | null;
  readonly createdAt: DbTime;
};

/** The run whose code uses the bindings, if they are inside a run. */
export interface ParentRun {
  /** Resolves when all that the code has seen is durable. */
  barrier(): Promise<void>;
  /**
   * Returns the origin of the next child, and a default id derived from that. `named` is its workflow and id, if an id
   * is given.
   */
  nextOrigin(named: string | null): ChildOrigin;
}

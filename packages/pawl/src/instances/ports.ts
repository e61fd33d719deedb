import type { WorkflowEntry } from "../authoring/entry.js";
import type { Signal } from "../model/abort.js";
import type { Deliverer } from "../hooks/deliverer.js";
import type { Codec } from "../model/codec.js";
import type { Limits } from "../model/limits.js";
import type { Runtime } from "../model/seams.js";
import type { DbTime, Ended, EventRecord, Target } from "../store/records.js";
import type { InstanceStore } from "../store/instance-store.js";
import type { Claimed, EventPlace, LeaseOnWake } from "../store/store.js";

/** All that instances need of the rest. */
export type InstancesContext<Tx> = {
  readonly store: InstanceStore<Tx>;
  /** By workflow name. */
  readonly entries: ReadonlyMap<string, WorkflowEntry>;
  readonly codec: Codec;
  readonly limits: Limits;
  readonly runtime: Runtime;
  /** Answers whether it is still the same round of the event loop. */
  readonly thisRound: () => () => boolean;
  readonly hints: Pick<RunnerHints, "isHere" | "left" | "ear" | "askOthers">;
};

/** What instances tell the hooks of this process. */
export type HooksOfProcess = Pick<Deliverer, "registered" | "has" | "posted">;

/** What instances tell the runners of this process. Hints may get lost: nothing is decided by them. */
export interface RunnerHints {
  /** Room for `count` new runs here and now (eager start), or null. */
  reserve(count: number): Reservation | null;
  /** Work became due: look soon. */
  wake(): void;
  /** Room for a parked run that is in the memory of this process, if what is sent wakes it. */
  reserveFor(target: Target): WakeReservation | null;
  /** An event was added to a run. True if that is here, and has it now: then nobody needs to look for it. */
  sent(event: EventRecord, place: EventPlace): boolean;
  /** A run that `owner` holds was changed: an event, pause, terminate, restart … */
  poke(owner: string, target: Target): void;
  /** That run is in the memory of this process: it has not ended, as far as it knows. */
  isHere(target: Target): boolean;
  /** Resolves when that run, which is here, has ended or left, parked or lost; at the latest after `ms` or when the signal fires. */
  left(target: Target, ms: number, signal?: Signal): Promise<Ended | null>;
  /** Opens an ear for that run's end. */
  ear(target: Target): EndListener;
  /** Sees to it that ears hear of that run's end, wherever it runs; false if they may not. */
  askOthers(target: Target): boolean;
  /** A caller ended that run. */
  tellEnd(target: Target): void;
}

/** Hears once of a run's end, from its opening on: none is missed by who looks before it waits. */
export interface EndListener {
  /**
   * Resolves when that run may have ended since the opening, at the latest after `ms` or when the signal fires, and closes.
   * Answers how, if it ended in this process.
   */
  heard(ms: number, signal?: Signal): Promise<Ended | null>;
  close(): void;
}

/** Every reserved place is either started or released. */
export interface Reservation {
  /** Whom to lease the new runs to. */
  readonly runner: string;
  started(runs: readonly StartedInstance[]): void;
  release(count: number): void;
}

/** Either started or released. */
export interface WakeReservation {
  readonly lease: LeaseOnWake;
  started(claimed: Claimed): void;
  release(): void;
}

/** A run that was born leased: its first turn needs no claim and no read. */
export type StartedInstance = {
  readonly iid: string;
  readonly workflow: string;
  readonly id: string;
  readonly params: string | null;
  readonly createdAt: DbTime;
};

/** Set for bindings inside a run. */
export interface ParentRun {
  /** Resolves when all that the code has seen is durable. */
  barrier(): Promise<void>;
  /** Of the next child: where it comes from, and a default id derived from that. `named`: its workflow and id, if given. */
  nextOrigin(named: string | null): ChildOrigin;
}

export type ChildOrigin = { readonly origin: string; readonly id: string };

import type { Wake } from "../model/wake.js";
import type { DbTime, EventRecord, StepRecord } from "./records.js";
import type { NewInstance } from "./store.js";

/** A step's row as a part writes it. */
export type StepWrite = Pick<
  StepRecord,
  | "ord"
  | "name"
  | "count"
  | "type"
  | "status"
  | "seq"
  | "calledAfter"
  | "attempts"
  | "waitKey"
  | "result"
  | "error"
> & {
  /** How long ago the step started. The row keeps the start of its first write. */
  readonly tookMs: number;
  readonly wake: Wake | null;
  /** The step has no row yet, as far as the sender knows, so that a plain insert will mostly do. */
  readonly isNew?: boolean;
};

export type AttemptWrite = {
  readonly ord: number;
  readonly n: number;
  readonly tookMs: number;
  readonly error: string | null;
};

/** An event for another run, from inside a commit. It passes through the inbox, so that no second ticket is locked. */
export type RunMessage = {
  readonly eventId: string;
  readonly iid: string;
  readonly runNumber: number;
  readonly kind: string;
  readonly type: string;
  readonly payload: string | null;
};

/** How a part leaves the run's ticket. */
export type Next =
  /** The run stays leased: its ticket is locked but not written. */
  | { readonly kind: "continue" }
  /**
   * Gives the ticket up until the wake or an event of an awaited type. It is refused, as a value, if events arrived.
   */
  | {
      readonly kind: "park";
      readonly waitMask: number;
      readonly wake: Wake | null;
      readonly historyBytes: number;
    }
  /** Gives the ticket back to the queue. */
  | { readonly kind: "release"; readonly inMs: number; readonly historyBytes: number }
  | { readonly kind: "complete"; readonly output: string | null }
  | { readonly kind: "fail"; readonly error: string };

/** Everything that one run writes in one commit. A part is frozen once it is sent: a resend is the identical part. */
export type Part = {
  readonly iid: string;
  readonly runNumber: number;
  readonly claimNumber: number;
  /** Counts the parts of a claim, from 1. A step's row is written only by a newer (claim, part). */
  readonly partNumber: number;
  /** The highest event number the run has been given. */
  readonly seenEvents: number;
  readonly steps: readonly StepWrite[];
  readonly attempts: readonly AttemptWrite[];
  readonly consumed: readonly { readonly number: number; readonly ord: number }[];
  readonly spawns: readonly NewInstance[];
  readonly deliveries: readonly RunMessage[];
  /** Set only by the commit that follows a takeover. */
  readonly takeovers?: number | undefined;
  readonly next: Next;
};

export type PartAnswer =
  | {
      readonly kind: "ok";
      readonly now: DbTime;
      /** After a park, "leased" means that events arrived first: the run goes on with them. */
      readonly state: "leased" | "parked" | "paused" | "finished";
      readonly pauseRequested: boolean;
      /** Events beyond `seenEvents`, in order. */
      readonly events: EventRecord[];
    }
  /** Another session holds the ticket's lock: the same part has to be sent again. */
  | { readonly kind: "busy" }
  /** The claim is not this runner's any more: the runner has to forget the run. */
  | { readonly kind: "lost" }
  /** The database refuses this part's data. The other parts are committed. */
  | { readonly kind: "bad"; readonly message: string };

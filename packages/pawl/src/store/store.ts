import type { HookName } from "../model/hooks.js";
import type { InstanceStatusName } from "../model/status.js";
import type { ControlCommand } from "../model/transitions.js";
import type { HintChannel } from "./hints.js";
import type {
  FailedHookRow,
  FailedHooksQuery,
  HookClaimRequest,
  HookRow,
  HookSettlement,
} from "./outbox.js";
import type { Part, PartAnswer } from "./part.js";
import type { InstanceStore } from "./instance-store.js";
import type {
  AttemptRecord,
  DbTime,
  EventRecord,
  InstanceRecord,
  RunRecord,
  LoadedStep,
  StepRecord,
} from "./records.js";
import type { Target } from "../model/target.js";

/**
 * Everything that the engine asks of a database, in domain words.
 *
 * Every verb is one atomic write or one consistent read. Expected races are values in the answer. A thrown error is a
 * caller's mistake (`WorkflowError`), a store that stayed away longer than the retry budget (`STORE_UNAVAILABLE`), or a
 * bug. Every time is the database's.
 *
 * `iid` is the internal id of an instance, made by the caller's side so that a resend is recognised. The claim number
 * is the fence: it grows at every claim, restart and terminate, and a write that carries an older one is refused.
 */
export interface Store<Tx = unknown> {
  /** Creates or upgrades the schema. Idempotent; safe when many processes start at once. */
  migrate(): Promise<void>;
  /** Tells what `migrate` would do, and changes nothing. */
  planMigration(): Promise<MigrationPlan>;
  /** Ends the store's own connections, never the user's pool or handle. */
  close(): Promise<void>;
  now(): Promise<DbTime>;
  /** Present where the database can carry hints between processes. */
  readonly hints?: HintChannel;
  /** The database is another process: while it writes, this one can do something else. */
  readonly isRemote?: boolean;
  /** Present where instances may live in several stores: makes one store for callers of all of them, given this one. */
  readonly spread?: (here: InstanceStore<Tx>) => InstanceStore<Tx>;

  /**
   * Inserts instances with their tickets, all or none, in one commit. A taken id is an answer, not an error, and leaves
   * the other items in place. An existing row with the same `iid` is this very write sent again, and answers "created".
   * With `tx`, rows live and die with the caller's transaction and nothing is retried. With `lease`, the tickets are
   * born leased to that runner (eager start).
   */
  create(
    instances: readonly NewInstance[],
    options?: InTransaction<Tx> & { readonly lease?: { readonly runner: string } },
  ): Promise<CreateAnswer[]>;

  /**
   * Adds an event to the current run, numbered and timed under the ticket's lock, and makes a parked run due if it may
   * be waiting for that type. With `tx` it only inserts into the inbox; the event gets its number and time when a tick
   * moves it in. An event that the current run has is a duplicate, even after that run has ended; so is one in the
   * inbox. A tick drops events in the inbox that are for an ended run: they reached no run, and are unknown from then
   * on.
   *
   * With `lease`, a parked run that becomes due is leased to that runner in the same write, if its claim number is
   * still the given one: a runner that has the run in memory needs no claim.
   */
  sendEvent(
    target: Target,
    event: NewEvent,
    options?: InTransaction<Tx> & { readonly lease?: LeaseOnWake | undefined },
  ): Promise<SendEventAnswer>;

  /**
   * Carries out a caller's command on an instance, as the transition table says:
   * - pause: a run that is queued or parked is paused at once. A leased one is flagged, and pauses at its next step boundary.
   * - resume: a paused run is queued and due now, and a pending pause is cancelled. Otherwise it has no effect.
   * - terminate: the run ends and its ticket is deleted.
   * - restart: a new run replaces the current one and is due now. The old run stays readable.
   */
  control(target: Target, request: ControlRequest): Promise<ControlAnswer>;

  /**
   * Inserts a runner's row, which must exist before it claims. An id is used once: a retired or dead one never returns.
   */
  register(runner: string, leaseMs: number): Promise<void>;
  /** Extends the lease and reads back everything the runner owns. Touches one row. */
  heartbeat(runner: string, leaseMs: number): Promise<HeartbeatAnswer>;
  /** Marks runners whose lease has expired as dead, for good, and answers their ids. */
  declareDead(): Promise<string[]>;
  /**
   * Marks a runner as dead that has stopped cleanly. Tickets that it still owns can be claimed like a dead runner's.
   */
  retire(runner: string): Promise<void>;
  /** Milliseconds until the first lease of another runner that holds tickets runs out; null if none does. */
  nextExpiryInMs(runner: string): Promise<number | null>;

  /**
   * Takes up to `limit` tickets for a runner: those of dead runners, then due ones that resume, then new ones, oldest
   * first. Of the tickets, `reservedForNew` go to new runs if there are any. A dead owner's run that was asked to pause
   * becomes paused instead.
   */
  claim(request: ClaimRequest): Promise<ClaimAnswer>;
  /**
   * Answers tickets that this runner owns without knowing it, because the reply to its claim was lost: as that claim
   * would have answered them, with their params.
   */
  adopt(runner: string, iids: readonly string[]): Promise<Claimed[]>;
  /**
   * Takes parked tickets back for a runner that has their runs in memory, whether they are due or not, as a claim
   * would. A ticket that is claimed, paused, gone or locked is not in the answer, and none is if the runner is dead.
   * After a lost reply `adopt` finds them.
   */
  reopen(runner: string, runs: readonly ReopenRequest[]): Promise<Claimed[]>;
  /** Reads the histories and undelivered events of claimed runs, after the claim and never with it. */
  load(runs: readonly LoadRequest[]): Promise<LoadedRun[]>;

  /**
   * Writes the parts of many runs in one transaction, at most one part per run. Each part is fenced by its claim number
   * and answers for itself; a part that is sent again applies once. A commit never waits for another session's lock:
   * such a part is "busy".
   */
  commit(parts: readonly Part[]): Promise<PartAnswer[]>;
  /**
   * Polls leased runs under their tickets' locks: the time, the pause flag, and events that they have not seen. An
   * event that arrives later gets a later time, so deadlines can be judged by the answer.
   */
  poll(runs: readonly PollRequest[]): Promise<PollAnswer[]>;

  /** Moves events from the inbox into their runs, and answers how many rows it took. */
  moveInbox(limit: number): Promise<number>;
  /**
   * Milliseconds, by the database's clock, until the next ticket of these lanes or the next row of these hooks is due;
   * null if none is. The answer may be too early, never too late. For a caller that has lanes, an inbox that holds
   * something is due at once.
   */
  nextDueInMs(lanes: readonly Lane[], hooks?: readonly HookName[]): Promise<number | null>;
  /**
   * Other lanes on the queues of `known` in which a claim would find something now: a due ticket or a dead runner's.
   * They come in no order, and at most 100. It is a report for people: where there are very many lanes, some may be
   * missing. The cost depends on the number of lanes, never on that of tickets.
   */
  unknownLanes(known: readonly Lane[]): Promise<Lane[]>;

  /**
   * Records that some process has code for these hooks. From then on `create`, `restart`, `resume`, `sendEvent` and
   * `commit` write a row for each cause, in their own transaction, whichever process calls them.
   */
  registerHooks(hooks: readonly HookName[]): Promise<void>;
  /** Records that no process has code for the hook any more, drops its rows, and answers how many they were. */
  unregisterHook(hook: HookName): Promise<number>;
  /** Takes due rows for delivery, oldest first. A row that is not settled within the lease is due again. */
  claimHooks(request: HookClaimRequest): Promise<HookRow[]>;
  /** Deletes delivered rows; the others wait or are given up. A row that was claimed again since is left alone. */
  settleHooks(settlements: readonly HookSettlement[]): Promise<void>;
  /** Lists rows that were given up, the latest first. */
  failedHooks(query: FailedHooksQuery): Promise<Page<FailedHookRow>>;
  /** Makes a row that was given up due again, with all of its attempts. Answers false if there is no such row. */
  retryHook(id: string): Promise<boolean>;
  /** Hooks other than these that have a row which has been due for longer than `ms`. */
  unknownHooks(known: readonly HookName[], ms: number): Promise<string[]>;

  get(target: Target): Promise<InstanceRecord | null>;
  list(query: ListQuery): Promise<Page<InstanceRecord>>;
  history(target: Target, query: HistoryQuery): Promise<HistoryPage | null>;
}

/** The verbs of a store, each of which answers a promise. */
export type StoreVerb = Exclude<keyof Store, "hints" | "isRemote" | "spread">;

export type InTransaction<Tx> = {
  readonly tx?: Tx;
  /** The caller has code for `onWorkflowEnqueued`, but cannot wait until that is registered. */
  readonly hooked?: boolean;
};

export type MigrationPlan = {
  /** The version of the schema now; 0 if there are no tables. */
  readonly from: number;
  readonly to: number;
  /** The very statements, in order, each of which can be pasted into a SQL prompt; none if there is nothing to do. */
  readonly statements: readonly string[];
};

export type NewInstance = {
  readonly iid: string;
  readonly workflow: string;
  readonly id: string;
  readonly queue: string;
  readonly params: string | null;
  /** The run, step and call that created it, so that the same step creates the same child once. */
  readonly origin?: string;
};

export type CreateAnswer =
  /** `leased` is false if the runner turned out to be dead: the run then waits in the queue like any other. */
  | {
      readonly kind: "created";
      readonly iid: string;
      readonly createdAt: DbTime;
      readonly leased: boolean;
    }
  /** `existing` has the id. It is null if only a unique key told, in a transaction that cannot see the row. */
  | {
      readonly kind: "duplicate";
      readonly existing: { readonly iid: string; readonly origin: string | null } | null;
    };

export type NewEvent = {
  /** Identifies this event: the same id again changes nothing. The caller makes one if the user gave none. */
  readonly eventId: string;
  readonly type: string;
  readonly payload: string | null;
};

export type SendEventAnswer =
  /** `owner` is the runner that holds the run now; `woken` tells that a parked run became due. */
  | {
      readonly kind: "accepted";
      readonly woken: boolean;
      readonly owner: string | null;
      readonly place: EventPlace | null;
      /** The run, if it was leased in the same write. */
      readonly claimed: Claimed | null;
    }
  | { readonly kind: "duplicate" }
  | { readonly kind: "notFound" }
  | { readonly kind: "terminal"; readonly status: InstanceStatusName };

export type LeaseOnWake = { readonly runner: string; readonly claimNumber: number };

/** Where an event stands in its run. An event in the inbox has no place yet. */
export type EventPlace = {
  readonly iid: string;
  readonly runNumber: number;
  readonly number: number;
  readonly createdAt: DbTime;
};

/** A command, with what it carries. */
export type ControlRequest = {
  readonly [C in ControlCommand]: { readonly command: C } & CarriedBy[C];
}[ControlCommand];

/**
 * The values that each command carries. A pause or a resume may arrive twice, since the second changes nothing. A command with an
 * operation id is carried out once per id, whatever was asked in between: sent again, it succeeds and changes nothing.
 */
type CarriedBy = {
  readonly pause: unknown;
  readonly resume: unknown;
  readonly terminate: { readonly operationId: string };
  readonly restart: { readonly operationId: string };
};

export type ControlAnswer =
  | { readonly kind: "ok"; readonly status: InstanceStatusName; readonly owner: string | null }
  | { readonly kind: "notFound" }
  | { readonly kind: "terminal"; readonly status: InstanceStatusName };

/** One kind of work that a runner can execute: a handler (the workflow's name) on a queue. */
export type Lane = { readonly queue: string; readonly handler: string };

export type ClaimRequest = {
  readonly runner: string;
  readonly lanes: readonly Lane[];
  readonly limit: number;
  readonly reservedForNew: number;
};

export type ClaimAnswer =
  /** The runner was declared dead: it must stop all it does and start over under a new id. */
  | { readonly kind: "dead" }
  | { readonly kind: "ok"; readonly now: DbTime; readonly claimed: Claimed[] };

export type Claimed = {
  readonly iid: string;
  readonly workflow: string;
  readonly id: string;
  readonly runNumber: number;
  readonly claimNumber: number;
  /** False for a run whose code never ran: it has no history to load. */
  readonly resuming: boolean;
  /** Taken from a dead runner by this claim. */
  readonly takenOver: boolean;
  /**
   * How many of its owners died in a row without a park between them, counting one whose run was paused before another
   * runner took it. As long as there are any, steps that its owners may have begun must be charged.
   */
  readonly takeovers: number;
  readonly eventCount: number;
  readonly historyBytes: number;
  readonly createdAt: DbTime;
  /** Given for runs that have nothing to load, so that a new run needs no second read. */
  readonly params: string | null;
  readonly now: DbTime;
};

/** A run as its last park left it. */
export type ReopenRequest = {
  readonly iid: string;
  readonly runNumber: number;
  readonly claimNumber: number;
};

export type LoadRequest = {
  readonly iid: string;
  readonly runNumber: number;
  /** The size that the claim told, which is not trusted after a takeover. */
  readonly historyBytes: number;
  readonly takenOver: boolean;
};

export type LoadedRun = {
  readonly iid: string;
  readonly params: string | null;
  readonly steps: LoadedStep[];
  /** The events that are not consumed yet, in order. */
  readonly events: EventRecord[];
};

export type PollRequest = {
  readonly iid: string;
  readonly runNumber: number;
  readonly claimNumber: number;
  readonly seenEvents: number;
};

export type PollAnswer =
  | {
      readonly kind: "ok";
      readonly now: DbTime;
      readonly pauseRequested: boolean;
      readonly events: EventRecord[];
    }
  | { readonly kind: "busy" }
  | { readonly kind: "lost" };

export type HeartbeatAnswer =
  | { readonly kind: "dead" }
  | { readonly kind: "ok"; readonly now: DbTime; readonly owned: OwnedTicket[] };

export type OwnedTicket = {
  readonly iid: string;
  readonly runNumber: number;
  readonly claimNumber: number;
  readonly pauseRequested: boolean;
  readonly eventCount: number;
};

export type ListQuery = {
  readonly workflow: string;
  readonly status?: InstanceStatusName;
  readonly order: "newest" | "oldest";
  readonly pageSize: number;
  readonly cursor?: string;
};

export type HistoryQuery = {
  readonly runNumber?: number;
  readonly order: "newest" | "oldest";
  readonly pageSize: number;
  readonly cursor?: string;
};

export type Page<T> = {
  readonly items: T[];
  readonly cursor?: string;
  readonly hasNextPage: boolean;
};

export type HistoryRow =
  | { readonly kind: "step"; readonly step: StepRecord; readonly attempts: AttemptRecord[] }
  | { readonly kind: "event"; readonly event: EventRecord };

export type HistoryPage = Page<HistoryRow> & {
  readonly runNumber: number;
  /** The latest 100 runs, newest first. */
  readonly runs: RunRecord[];
};

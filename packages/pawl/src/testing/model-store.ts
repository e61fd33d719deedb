import type { Clock } from "../model/seams.js";
import { isTerminal, type InstanceState } from "../model/status.js";
import { transition, type Command, type UserCommand } from "../model/transitions.js";
import { decodeCursor, encodeCursor } from "../store/cursor.js";
import type {
  AttemptRecord,
  DbTime,
  EventRecord,
  InstanceRecord,
  RunRecord,
  StepRecord,
  Target,
} from "../store/records.js";
import type {
  Claimed,
  ClaimAnswer,
  ClaimRequest,
  ControlAnswer,
  CreateAnswer,
  Delivery,
  HeartbeatAnswer,
  HistoryEntry,
  HistoryPage,
  HistoryQuery,
  Lane,
  ListQuery,
  LoadedRun,
  LoadRequest,
  NewEvent,
  NewInstance,
  OutboxWrite,
  Page,
  Part,
  PartAnswer,
  PollAnswer,
  PollRequest,
  SendEventAnswer,
  StepWrite,
  Store,
  Wake,
} from "../store/store.js";
import { waitMaskOf } from "../store/wait-mask.js";

const RUNS_LISTED = 100;

/** One generation of an instance. From `owner` on it is the ticket: how a live run is queued or held. */
type Run = {
  readonly runNumber: number;
  status: InstanceState;
  output: string | null;
  error: string | null;
  startedAt: DbTime | null;
  finishedAt: DbTime | null;
  /** By `ord`, each with the part that wrote it. */
  readonly steps: Map<number, { readonly step: StepRecord; readonly partNumber: number }>;
  readonly attempts: AttemptRecord[];
  /** The one numbered n stands at n - 1. */
  readonly events: { record: EventRecord; readonly eventId: string }[];

  owner: string | null;
  /** Its code ran before. */
  resuming: boolean;
  /** When a runner should look next; null while leased, paused or ended, or without a timer. */
  dueAt: DbTime | null;
  waitMask: number;
  /** The next wait of a leased run. */
  wakeAt: DbTime | null;
  /** When its owner last looked. Never goes back. */
  seenAt: DbTime;
  /** The last part of this claim that wrote the ticket. */
  partNumber: number;
  takeovers: number;
  historyBytes: number;
};

type Instance = {
  readonly iid: string;
  readonly workflow: string;
  readonly id: string;
  readonly queue: string;
  readonly params: string | null;
  readonly origin: string | null;
  readonly createdAt: DbTime;
  /** The fence. */
  claimNumber: number;
  lastOperation: string | null;
  /** The last one is the current one. */
  readonly runs: [Run, ...Run[]];
};

type Runner = { readonly id: string; leaseUntil: DbTime; dead: boolean };

/**
 * The store as plain arrays: what the port promises, said a second time and as simply as possible, for
 * comparison with the real ones. One caller at a time. It answers exactly what a real store answers, and
 * where the port leaves a choice:
 *
 * - orphans are claimed in the order of their `iid`, and all that were asked to pause are paused, whatever
 *   the limit;
 * - `owned` and `adopt` go by `iid`;
 * - a create sent again answers `leased: false`;
 * - a park of a run with both unseen events and a pause request is paused.
 */
export class ModelStore implements Store<object> {
  readonly #instances: Instance[] = [];
  readonly #runners: Runner[] = [];
  readonly #inbox: Delivery[] = [];
  readonly #outbox: OutboxWrite[] = [];

  constructor(private readonly clock: Clock) {}

  async migrate(): Promise<void> {}
  async close(): Promise<void> {}

  async now(): Promise<DbTime> {
    return this.clock.now();
  }

  /** A user's transaction only inserts, so a rollback forgets what came last. Nothing else may run meanwhile. */
  begin(): { readonly tx: object; rollback(): void } {
    const [instances, inbox] = [this.#instances.length, this.#inbox.length];
    return {
      tx: {},
      rollback: () => {
        this.#instances.length = instances;
        this.#inbox.length = inbox;
      },
    };
  }

  // What people ask -----------------------------------------------------------------------------------------------

  async create(
    items: readonly NewInstance[],
    options: { readonly tx?: object; readonly lease?: { readonly runner: string } } = {},
  ): Promise<CreateAnswer[]> {
    const at = this.clock.now();
    const runner = options.tx === undefined ? this.#alive(options.lease?.runner) : undefined;
    return items.map((item) => {
      const existing = this.#find(item);
      if (existing === undefined) {
        const { runs } = this.#add(item, at);
        if (runner !== undefined) this.#lease(this.#add.last(), runner.id, at);
        return { kind: "created", iid: item.iid, createdAt: at, leased: runner !== undefined };
      }
      const { iid, origin, createdAt } = existing;
      return iid === item.iid
        ? { kind: "created", iid, createdAt, leased: false }
        : { kind: "duplicate", existing: { iid, origin } };
    });
  }
}

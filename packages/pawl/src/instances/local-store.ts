import { isLongerInUtf8 } from "../model/codec/utf8.js";
import type { ControlCommand } from "../model/transitions.js";
import type { EventRecord, InstanceRecord } from "../store/records.js";
import type { Target } from "../model/target.js";
import type { InstanceStore, ListedRecord } from "../store/instance-store.js";
import type {
  Claimed,
  ControlAnswer,
  ControlRequest,
  CreateAnswer,
  EventPlace,
  HistoryPage,
  HistoryQuery,
  ListQuery,
  NewEvent,
  NewInstance,
  Page,
  SendEventAnswer,
  Store,
} from "../store/store.js";
import type { Notices } from "../store/notices.js";
import type { HooksOfProcess, RunStarts, StartedInstance } from "./ports.js";

/** A list leaves out longer outputs, so that a page of a hundred instances stays small. */
const OUTPUT_LISTED_MAX_BYTES = 4_096;

/** Whether a command makes a run due, ends it, or neither. The first two may post to hooks, which are registered first. */
const effects: { readonly [C in ControlCommand]: "due" | "ended" | "none" } = {
  pause: "none",
  resume: "due",
  terminate: "ended",
  restart: "due",
};

/**
 * The store as callers of this process use it. It tells the runner, hooks and readers of the process what they should see
 * to. A call in a user's transaction must not wait for another connection. It also tells nobody, because nothing has happened
 * yet.
 */
export class LocalStore<Tx> implements InstanceStore<Tx> {
  readonly #store: Store<Tx>;
  readonly #starts: RunStarts;
  readonly #hooks: HooksOfProcess;
  readonly #notices: Notices;

  constructor(store: Store<Tx>, starts: RunStarts, hooks: HooksOfProcess, notices: Notices) {
    this.#store = store;
    this.#starts = starts;
    this.#hooks = hooks;
    this.#notices = notices;
  }

  /** Leases the new runs to the runner of this process, if it has room. Such runs need no claim. */
  async create(
    rows: readonly NewInstance[],
    { tx }: { readonly tx?: Tx | undefined } = {},
  ): Promise<CreateAnswer[]> {
    if (tx !== undefined) return this.#store.create(rows, { tx, hooked: this.#isEnqueuedHooked });
    if (this.#hooks.names.length > 0) await this.#hooks.registered();
    const room = this.#starts.reserve(rows.length);
    let started: StartedInstance[] = [];
    try {
      const lease = room === null ? {} : { lease: { runner: room.runner } };
      const answers = await this.#store.create(rows, lease);
      started = rows.flatMap((row, i) => startedFrom(row, answers[i]));
      const created = answers.filter(({ kind }) => kind === "created");
      if (created.length > started.length) this.#starts.wake();
      const { posted } = this.#notices;
      if (created.length > 0 && posted.isHeard) posted.tell("onWorkflowEnqueued", undefined);
      return answers;
    } finally {
      if (started.length > 0) room?.started(started);
      if (started.length < rows.length) room?.release(rows.length - started.length);
    }
  }

  /** A parked run that is in memory here goes on at once, without a claim and without a poll for the event. */
  async sendEvent(
    target: Target,
    event: NewEvent,
    { tx }: { readonly tx?: Tx | undefined } = {},
  ): Promise<SendEventAnswer> {
    const hooked = this.#isEnqueuedHooked;
    if (tx !== undefined) return this.#store.sendEvent(target, event, { tx, hooked });
    if (this.#hooks.names.length > 0) await this.#hooks.registered();
    const room = this.#starts.reserveFor(target);
    let claimed: Claimed | null = null;
    try {
      const answer = await this.#store.sendEvent(target, event, { lease: room?.lease });
      if (answer.kind !== "accepted") return answer;
      claimed = answer.claimed;
      const { woken, owner, place } = answer;
      const isTold = place !== null && this.#starts.sent(recordOf(event, place), place);
      if (woken && claimed === null) this.#starts.wake();
      if (owner !== null && !isTold) this.#starts.poke(owner, target);
      return answer;
    } finally {
      if (claimed === null) room?.release();
      else room?.started(claimed);
    }
  }

  /** The run's owner, if it has one, should poll its ticket after the change. */
  async control(target: Target, request: ControlRequest): Promise<ControlAnswer> {
    const effect = effects[request.command];
    if (effect !== "none") await this.#hooks.registered();
    const answer = await this.#store.control(target, request);
    this.#notices.changed.tell(target, undefined);
    if (answer.kind !== "ok") return answer;
    if (answer.owner !== null) this.#starts.poke(answer.owner, target);
    if (effect === "due") this.#starts.wake();
    if (effect === "ended") {
      this.#notices.ended.tell(target, null);
      this.#notices.posted.tell("onInstanceFinished", undefined);
    }
    return answer;
  }

  get(target: Target): Promise<InstanceRecord | null> {
    return this.#store.get(target);
  }

  async list(query: ListQuery): Promise<Page<ListedRecord>> {
    const page = await this.#store.list(query);
    return { ...page, items: page.items.map(listed) };
  }

  history(target: Target, query: HistoryQuery): Promise<HistoryPage | null> {
    return this.#store.history(target, query);
  }

  get #isEnqueuedHooked(): boolean {
    return this.#hooks.names.includes("onWorkflowEnqueued");
  }
}

function recordOf({ type, payload }: NewEvent, { number, createdAt }: EventPlace): EventRecord {
  return { number, kind: "event", type, payload, createdAt, deliveredAt: null, consumedBy: null };
}

function startedFrom(
  { iid, workflow, id, params }: NewInstance,
  answer: CreateAnswer | undefined,
): StartedInstance[] {
  if (answer?.kind !== "created" || !answer.leased) return [];
  return [{ iid, workflow, id, params, createdAt: answer.createdAt }];
}

function listed(record: InstanceRecord): ListedRecord {
  const { output } = record;
  const isTooLong = output !== null && isLongerInUtf8(output, OUTPUT_LISTED_MAX_BYTES);
  return {
    ...record,
    params: null,
    output: isTooLong ? null : output,
    isOutputTooLong: isTooLong,
  };
}

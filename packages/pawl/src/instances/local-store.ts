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
  NewEvent,
  NewInstance,
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
 * Returns the store as callers of this process use it. It tells the runner, hooks and readers of the process what they
 * should see to.
 */
export function localStore<Tx>(
  store: Store<Tx>,
  starts: RunStarts,
  hooks: HooksOfProcess,
  notices: Notices,
): InstanceStore<Tx> {
  /** Changes a run. The run's owner, if it has one, should poll its ticket afterwards. */
  async function control(target: Target, request: ControlRequest): Promise<ControlAnswer> {
    const effect = effects[request.command];
    if (effect !== "none") await hooks.registered();
    const answer = await store.control(target, request);
    notices.changed.tell(target, undefined);
    if (answer.kind !== "ok") return answer;
    if (answer.owner !== null) starts.poke(answer.owner, target);
    if (effect === "due") starts.wake();
    if (effect === "ended") {
      notices.ended.tell(target, null);
      notices.posted.tell("onInstanceFinished", undefined);
    }
    return answer;
  }

  /** Creates runs that are leased to the runner of this process, if it has room. Such runs need no claim. */
  async function createEagerly(rows: readonly NewInstance[]): Promise<CreateAnswer[]> {
    await hooks.registered();
    const room = starts.reserve(rows.length);
    let started: StartedInstance[] = [];
    try {
      const answers = await store.create(rows, room ? { lease: { runner: room.runner } } : {});
      started = rows.flatMap((row, i) => startedFrom(row, answers[i]));
      const created = answers.filter(({ kind }) => kind === "created");
      if (created.length > started.length) starts.wake();
      if (created.length > 0 && notices.posted.isHeard) {
        notices.posted.tell("onWorkflowEnqueued", undefined);
      }
      return answers;
    } finally {
      if (started.length > 0) room?.started(started);
      if (started.length < rows.length) room?.release(rows.length - started.length);
    }
  }

  /**
   * Sends an event. A parked run that is in memory here goes on at once, without a claim and without a poll for the
   * event.
   */
  async function sendEagerly(target: Target, event: NewEvent): Promise<SendEventAnswer> {
    await hooks.registered();
    const room = starts.reserveFor(target);
    let claimed: Claimed | null = null;
    try {
      const answer = await store.sendEvent(target, event, { lease: room?.lease });
      if (answer.kind !== "accepted") return answer;
      claimed = answer.claimed;
      const { woken, owner, place } = answer;
      const isTold = place !== null && starts.sent(recordOf(event, place), place);
      if (woken && claimed === null) starts.wake();
      if (owner !== null && !isTold) starts.poke(owner, target);
      return answer;
    } finally {
      if (claimed === null) room?.release();
      else room?.started(claimed);
    }
  }

  return {
    // A call in a user's transaction must not wait for another connection. It also tells nobody, because nothing has
    // happened yet.
    create: (rows, { tx } = {}) =>
      tx === undefined
        ? createEagerly(rows)
        : store.create(rows, { tx, hooked: hooks.has("onWorkflowEnqueued") }),

    async sendEvent(target, event, { tx } = {}) {
      if (tx !== undefined) {
        return store.sendEvent(target, event, { tx, hooked: hooks.has("onWorkflowEnqueued") });
      }
      return sendEagerly(target, event);
    },

    control,
    get: (target) => store.get(target),
    async list(query) {
      const page = await store.list(query);
      return { ...page, items: page.items.map(listed) };
    },
    history: (target, query) => store.history(target, query),
  };
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

import type { EndListener, InstancesContext, RunEnds } from "../instances/ports.js";
import { instanceNotFound } from "../instances/requests.js";
import { newAborter } from "../model/abort.js";
import type { Cancel } from "../model/seams.js";
import type { Target } from "../model/target.js";
import type { Notices } from "../store/notices.js";
import type { HistoryPage, Store } from "../store/store.js";
import { Tracker, type StreamMessage, type TrackedStep } from "./tracker.js";

/** Steps that change faster than this are told together. */
const SHORTEST_REST_MS = 20;
/** The pauses between reads without a hint, because the instance runs elsewhere. They grow while nothing changes. */
const FIRST_POLL_MS = 100;
const LONGEST_POLL_MS = 5_000;
const SLOWER = 1.5;
/** A read that takes long is made less often, so that reads take a tenth of the time. */
const LOOK_SHARE = 10;
const PAGE_SIZE = 50;
/** A reader that is further behind is sent away. It may come back with the cursor of the last message that it got. */
const MAX_BACKLOG = 20_000;

type Watched = Pick<InstancesContext<never>, "codec" | "runtime"> & {
  /** How the end of a run becomes known, also from other processes. */
  readonly ends: Pick<RunEnds, "listen" | "ask">;
  readonly notices: Pick<Notices, "committed" | "changed">;
  readonly store: Pick<Store<never>, "get" | "history">;
};

/** All instances that somebody watches. The readers of one instance share what is read. */
export class Watchers {
  readonly #context: Watched;
  readonly #byTarget = new Map<string, Watcher>();
  /** The subscriptions to notices. There are none while nobody watches. */
  #subscriptions: readonly Cancel[] = [];
  #isClosed = false;

  constructor(context: Watched) {
    this.#context = context;
  }

  /** Resolves when the first read is done, so that a caller that asks for an unknown instance learns it now. */
  async watch(target: Target, cursor?: string): Promise<Watch> {
    const watch = new Watch(new Tracker(target, cursor), cursor);
    if (this.#isClosed) {
      watch.end();
      return watch;
    }
    await this.#watcher(target).join(watch);
    return watch;
  }

  #watcher(target: Target): Watcher {
    const key = keyOf(target);
    const running = this.#byTarget.get(key);
    if (running !== undefined) return running;
    const watcher = new Watcher(this.#context, target, () => {
      this.#byTarget.delete(key);
      if (this.#byTarget.size === 0) this.#unsubscribe();
    });
    if (this.#byTarget.size === 0) this.#subscribe();
    this.#byTarget.set(key, watcher);
    return watcher;
  }

  #subscribe(): void {
    const { committed, changed } = this.#context.notices;
    this.#subscriptions = [
      committed.subscribe((parts) => this.#committed(parts)),
      changed.subscribe((target) => this.#byTarget.get(keyOf(target))?.wake()),
    ];
  }

  #unsubscribe(): void {
    for (const cancel of this.#subscriptions) cancel();
    this.#subscriptions = [];
  }

  #committed(parts: readonly { readonly iid: string }[]): void {
    const iids = new Set(parts.map(({ iid }) => iid));
    for (const watcher of this.#byTarget.values()) {
      if (watcher.iid !== null && iids.has(watcher.iid)) watcher.wake();
    }
  }

  close(): void {
    this.#isClosed = true;
    for (const watcher of this.#byTarget.values()) watcher.close();
  }
}

function keyOf({ workflow, id }: Target): string {
  return `${id}\n${workflow}`;
}

/** One reader of one instance. */
export class Watch {
  readonly tracker: Tracker;
  /** The cursor with which the reader came. */
  readonly cursor: string | undefined;
  #messages: StreamMessage[] = [];
  #isEnded = false;
  #arrived: (() => void) | null = null;

  constructor(tracker: Tracker, cursor: string | undefined) {
    this.tracker = tracker;
    this.cursor = cursor;
  }

  get isEnded(): boolean {
    return this.#isEnded;
  }

  add(messages: readonly StreamMessage[]): void {
    if (messages.length === 0 || this.#isEnded) return;
    this.#messages.push(...messages);
    if (this.#messages.length > MAX_BACKLOG) this.#isEnded = true;
    this.#arrived?.();
  }

  end(): void {
    this.#isEnded = true;
    this.#arrived?.();
  }

  take(): StreamMessage[] {
    return this.#messages.splice(0);
  }

  /** Calls back when there is something to take, or the end. */
  onArrival(callback: () => void): Cancel {
    this.#arrived = callback;
    if (this.#messages.length > 0 || this.#isEnded) callback();
    return () => (this.#arrived = null);
  }
}

type Joining = {
  readonly watch: Watch;
  readonly done: () => void;
  readonly failed: (error: unknown) => void;
};

/** Reads one instance for all its readers: on a hint, and now and then. */
class Watcher {
  iid: string | null = null;
  readonly #context: Watched;
  readonly #target: Target;
  readonly #leave: () => void;
  /** The position where the common reads begin. Everything before it is settled, and known to every reader. */
  #tail: Tracker;
  readonly #watches = new Set<Watch>();
  #joining: Joining[] = [];
  #isHinted = false;
  #stopRest: (() => void) | null = null;
  #isRunning = false;
  #isClosed = false;

  constructor(context: Watched, target: Target, leave: () => void) {
    this.#context = context;
    this.#target = target;
    this.#leave = leave;
    this.#tail = new Tracker(target);
  }

  join(watch: Watch): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#joining.push({ watch, done: resolve, failed: reject });
      this.wake();
      if (!this.#isRunning) void this.#run();
    });
  }

  wake(): void {
    this.#isHinted = true;
    this.#stopRest?.();
  }

  close(): void {
    this.#isClosed = true;
    for (const watch of this.#watches) watch.end();
    this.wake();
  }

  async #run(): Promise<void> {
    const { clock } = this.#context.runtime;
    this.#isRunning = true;
    let pollMs = FIRST_POLL_MS;
    for (;;) {
      const since = clock.now();
      this.#isHinted = false;
      // The listener opens before the read, because an end that is told while the read is on its way is not told again.
      const listener = this.#context.ends.listen(this.#target);
      const changed = await this.#look();
      this.#forgetEnded();
      if (this.#watches.size === 0 && this.#joining.length === 0) {
        listener.close();
        break;
      }
      pollMs = changed ? FIRST_POLL_MS : Math.min(pollMs * SLOWER, LONGEST_POLL_MS);
      const tookMs = Math.max(0, clock.now() - since);
      await this.#rest(listener, Math.max(pollMs, tookMs * LOOK_SHARE));
      listener.close();
    }
    this.#isRunning = false;
    this.#leave();
  }

  #forgetEnded(): void {
    for (const watch of this.#watches) if (watch.isEnded) this.#watches.delete(watch);
  }

  /** Rests until the next read. Hints come with every commit, and a short rest makes one read of many. */
  async #rest(listener: EndListener, ms: number): Promise<void> {
    const { scheduler } = this.#context.runtime;
    if (this.#joining.length > 0) return;
    await new Promise<void>((resolve) => void scheduler.after(SHORTEST_REST_MS, resolve));
    if (this.#isHinted || this.#joining.length > 0) return;
    const rest = newAborter();
    this.#stopRest = () => rest.abort(undefined);
    this.#context.ends.ask(this.#target);
    await listener.heard(ms, rest.signal);
    this.#stopRest = null;
  }

  /** Reads for the readers that join, and then for all. Returns true if there was something new. Never throws. */
  async #look(): Promise<boolean> {
    // The groups read one after the other. The second must not know less than the first, because the position of the
    // first may become the common one.
    for (const group of byCursor(this.#joining.splice(0))) await this.#catchUp(group);
    if (this.#watches.size === 0) return false;
    try {
      return await this.#read(this.#tail, [...this.#watches]);
    } catch (error) {
      // The store is away, or the instance is gone. Readers of a gone instance ask again, and are told so.
      if (this.#isGone(error)) for (const watch of this.#watches) watch.end();
      return false;
    }
  }

  #isGone(error: unknown): boolean {
    return (error as { code?: unknown } | null)?.code === "INSTANCE_NOT_FOUND";
  }

  /**
   * Reads for new readers, all from the same cursor, what the others know already. They join the others before the next
   * common read. A step that they saw unsettled lies beyond the common position, or they would have seen it settled.
   */
  async #catchUp(group: readonly Joining[]): Promise<void> {
    const watches = group.map(({ watch }) => watch);
    const [first] = watches;
    if (first === undefined) return;
    try {
      this.iid ??= await this.#findIid();
      await this.#read(first.tracker, watches);
    } catch (error) {
      for (const { failed } of group) failed(error);
      return;
    }
    if (this.#isClosed) for (const watch of watches) watch.end();
    if (this.#watches.size === 0) this.#tail = first.tracker;
    for (const watch of watches.filter(({ isEnded }) => !isEnded)) this.#watches.add(watch);
    for (const { done } of group) done();
  }

  async #findIid(): Promise<string> {
    const record = await this.#context.store.get(this.#target);
    if (record === null) throw instanceNotFound(this.#target);
    return record.iid;
  }

  /** Reads on from where `from` stands, and tells each watch what is new to it. */
  async #read(from: Tracker, watches: readonly Watch[]): Promise<boolean> {
    const trackers = new Set([from, ...watches.map(({ tracker }) => tracker)]);
    const first = await this.#enterRun(from, trackers);
    let isNew = false;
    const tell = (tracked: (tracker: Tracker) => StreamMessage[]): void => {
      const news = new Map(Array.from(trackers, (tracker) => [tracker, tracked(tracker)]));
      for (const watch of watches) {
        const messages = news.get(watch.tracker) ?? [];
        isNew ||= messages.length > 0;
        watch.add(messages);
      }
    };
    for (let page = first; ;) {
      const { cursor } = page;
      const steps = stepsAmong(page);
      tell((tracker) => tracker.steps(steps, cursor));
      if (cursor === undefined) break;
      page = await this.#page(from.runNumber, cursor);
    }
    // This is the status that was read first. The steps are no older, so none is missing when the end is told.
    const [run] = first.runs;
    if (run !== undefined) tell((tracker) => tracker.status(run, this.#context.codec));
    for (const watch of watches) if (watch.tracker.isOver) watch.end();
    return isNew;
  }

  /** Returns the first page to read of the current run. All trackers enter that run. */
  async #enterRun(from: Tracker, trackers: ReadonlySet<Tracker>): Promise<HistoryPage> {
    const page = await this.#page(from.runNumber === 0 ? undefined : from.runNumber, from.page);
    const current = page.runs[0]?.runNumber ?? page.runNumber;
    for (const tracker of trackers) tracker.enter(current);
    return page.runNumber === current ? page : this.#page(current, undefined);
  }

  async #page(runNumber: number | undefined, cursor: string | undefined): Promise<HistoryPage> {
    const page = await this.#context.store.history(this.#target, {
      order: "oldest",
      pageSize: PAGE_SIZE,
      ...(runNumber === undefined ? {} : { runNumber }),
      ...(cursor === undefined ? {} : { cursor }),
    });
    if (page === null) throw instanceNotFound(this.#target);
    return page;
  }
}

function byCursor(joining: readonly Joining[]): Iterable<Joining[]> {
  const groups = new Map<string | undefined, Joining[]>();
  for (const each of joining) {
    const { cursor } = each.watch;
    const group = groups.get(cursor);
    if (group === undefined) groups.set(cursor, [each]);
    else group.push(each);
  }
  return groups.values();
}

function stepsAmong(page: HistoryPage): TrackedStep[] {
  return page.items.flatMap((item) => (item.kind === "step" ? [item] : []));
}

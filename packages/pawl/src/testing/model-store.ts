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
  ReopenRequest,
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
  /** Each with the part that wrote it last. */
  readonly steps: { record: StepRecord; partNumber: number }[];
  readonly attempts: AttemptRecord[];
  /** Number n stands at n - 1. */
  readonly events: { record: EventRecord; readonly eventId: string }[];

  owner: string | null;
  /** Its code ran before: claimed ahead of new runs. */
  resuming: boolean;
  /** When a runner should look next; null without a timer, and while leased, paused or ended. */
  dueAt: DbTime | null;
  waitMask: number;
  /** The next wait of a leased run. */
  wakeAt: DbTime | null;
  /** When its owner last looked. Never goes back. */
  seenAt: DbTime;
  /** The last part of this claim that was about the ticket. */
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
  /** Every terminate and restart that was carried out. */
  readonly operations: Set<string>;
  run: Run;
  /** What restarts replaced, newest first. */
  readonly pastRuns: Run[];
};

type Runner = { readonly id: string; leaseUntil: DbTime; dead: boolean };

/**
 * What the port promises, said a second time in plain arrays, to compare real stores with. One caller at a
 * time. Where the port leaves a choice it takes one:
 *
 * - of a dead runner's runs it claims in the order of `iid`, and pauses all that were asked to, whatever the
 *   limit; `owned`, `adopt` and `declareDead` answer in that order too;
 * - a create sent again answers `leased: false`: the run is adopted, if it is still held;
 * - a park of a run with a pause request and unseen events pauses.
 */
export class ModelStore implements Store<object> {
  readonly #clock: Clock;
  readonly #instances: Instance[] = [];
  readonly #runners: Runner[] = [];
  readonly #inbox: Delivery[] = [];
  readonly outbox: OutboxWrite[] = [];

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  async migrate(): Promise<void> {}
  async close(): Promise<void> {}

  async now(): Promise<DbTime> {
    return this.#clock.now();
  }

  /** A user's transaction only inserts: a rollback forgets what came last. Nothing else may run meanwhile. */
  begin(): { readonly tx: object; commit(): Promise<void>; rollback(): Promise<void> } {
    const [instances, inbox] = [this.#instances.length, this.#inbox.length];
    return {
      tx: {},
      commit: async () => {},
      rollback: async () => {
        this.#instances.length = instances;
        this.#inbox.length = inbox;
      },
    };
  }

  // Instances -------------------------------------------------------------------------------------------------------

  async create(
    items: readonly NewInstance[],
    { tx, lease }: { readonly tx?: object; readonly lease?: { readonly runner: string } } = {},
  ): Promise<CreateAnswer[]> {
    const runner = lease !== undefined && tx === undefined ? this.#alive(lease.runner) : undefined;
    return items.map((item) => {
      const known = this.#find(item);
      if (known === undefined) {
        const created = this.#add(item);
        if (runner !== undefined) this.#lease(created, runner);
        const { iid, createdAt } = created;
        return { kind: "created", iid, createdAt, leased: runner !== undefined };
      }
      const { iid, origin, createdAt } = known;
      return iid === item.iid
        ? { kind: "created", iid, createdAt, leased: false }
        : { kind: "duplicate", existing: { iid, origin } };
    });
  }

  /** Queued and due now. */
  #add({ iid, workflow, id, queue, params, origin }: NewInstance): Instance {
    const createdAt = this.#clock.now();
    const instance: Instance = {
      iid,
      workflow,
      id,
      queue,
      params,
      origin: origin ?? null,
      createdAt,
      claimNumber: 0,
      operations: new Set(),
      run: newRun(1, createdAt),
      pastRuns: [],
    };
    this.#instances.push(instance);
    return instance;
  }

  async sendEvent(
    target: Target,
    { eventId, type, payload }: NewEvent,
    { tx }: { readonly tx?: object } = {},
  ): Promise<SendEventAnswer> {
    const instance = this.#find(target);
    if (instance === undefined) return { kind: "notFound" };
    const { iid, run } = instance;
    if (isTerminal(run.status)) return { kind: "terminal", status: run.status };
    const event = { eventId, iid, runNumber: run.runNumber, kind: "event", type, payload };
    if (tx !== undefined) {
      this.#inbox.push(event);
      return { kind: "accepted", woken: false, owner: null };
    }
    if (hasEvent(run, eventId)) return { kind: "duplicate" };
    const woken = this.#receive(run, event);
    return { kind: "accepted", woken, owner: run.owner };
  }

  /** Numbered in the order of arrival; later than all that its owner has seen, whatever the clock says. */
  #receive(run: Run, { eventId, kind, type, payload }: Omit<Delivery, "iid">): boolean {
    const now = this.#clock.now();
    const number = run.events.length + 1;
    const createdAt = Math.max(now, run.seenAt + 1);
    const delivery = { deliveredAt: null, consumedBy: null };
    run.events.push({ eventId, record: { number, kind, type, payload, createdAt, ...delivery } });
    const woken = run.status === "waiting" && masksMeet(run.waitMask, waitMaskOf([type]));
    if (woken) run.dueAt = Math.min(run.dueAt ?? now, now);
    return woken;
  }

  async moveInbox(limit: number): Promise<number> {
    const taken = this.#inbox.splice(0, limit);
    for (const event of taken) {
      const run = this.#instances.find(({ iid }) => iid === event.iid)?.run;
      // What is left of a run that ended or was replaced has nowhere to go.
      if (run === undefined || isTerminal(run.status) || run.runNumber !== event.runNumber)
        continue;
      if (!hasEvent(run, event.eventId)) this.#receive(run, event);
    }
    return taken.length;
  }

  pause(target: Target): Promise<ControlAnswer> {
    return this.#control("pause", target, null, ({ run }, becomes) => {
      run.status = becomes;
      run.dueAt = null;
    });
  }

  resume(target: Target): Promise<ControlAnswer> {
    return this.#control("resume", target, null, ({ run }, becomes) => {
      run.status = becomes;
      if (becomes === "queued") run.dueAt = this.#clock.now();
    });
  }

  terminate(target: Target, operationId: string): Promise<ControlAnswer> {
    return this.#control("terminate", target, operationId, (instance, becomes) => {
      instance.claimNumber += 1;
      this.#end(instance.run, becomes);
    });
  }

  restart(target: Target, operationId: string): Promise<ControlAnswer> {
    return this.#control("restart", target, operationId, (instance) => {
      const { run } = instance;
      instance.claimNumber += 1;
      if (!isTerminal(run.status)) this.#end(run, "terminated");
      instance.pastRuns.unshift(run);
      instance.run = newRun(run.runNumber + 1, this.#clock.now());
    });
  }

  /** The table of transitions decides. Where it leads to the same state nothing happens, but for a restart. */
  async #control(
    command: Exclude<UserCommand, "sendEvent">,
    target: Target,
    operationId: string | null,
    carryOut: (instance: Instance, becomes: InstanceState) => void,
  ): Promise<ControlAnswer> {
    const instance = this.#find(target);
    if (instance === undefined) return { kind: "notFound" };
    const { owner, status } = instance.run;
    const isResend = operationId !== null && instance.operations.has(operationId);
    if (isResend) return { kind: "ok", status, owner };
    const outcome = transition(status, command);
    if ("refused" in outcome) return { kind: "terminal", status };
    if (outcome.state !== status || command === "restart") carryOut(instance, outcome.state);
    if (operationId !== null) instance.operations.add(operationId);
    return { kind: "ok", status: outcome.state, owner };
  }

  #end(run: Run, status: InstanceState): void {
    run.status = status;
    run.finishedAt = this.#clock.now();
    run.owner = null;
    run.dueAt = null;
    run.wakeAt = null;
  }

  // Runners ---------------------------------------------------------------------------------------------------------

  async register(id: string, leaseMs: number): Promise<void> {
    if (this.#runners.some((runner) => runner.id === id)) return;
    this.#runners.push({ id, leaseUntil: this.#clock.now() + leaseMs, dead: false });
  }

  async heartbeat(id: string, leaseMs: number): Promise<HeartbeatAnswer> {
    const runner = this.#alive(id);
    if (runner === undefined) return { kind: "dead" };
    const now = this.#clock.now();
    runner.leaseUntil = now + leaseMs;
    const owned = this.#live()
      .filter(({ run }) => run.owner === id)
      .map(({ iid, claimNumber, run }) => ({
        iid,
        runNumber: run.runNumber,
        claimNumber,
        pauseRequested: pauseRequested(run),
        eventCount: run.events.length,
        wakeAt: run.wakeAt,
      }));
    return { kind: "ok", now, owned };
  }

  async declareDead(): Promise<string[]> {
    const now = this.#clock.now();
    const expired = this.#runners.filter(({ dead, leaseUntil }) => !dead && leaseUntil <= now);
    for (const runner of expired) runner.dead = true;
    return expired.map(({ id }) => id).toSorted();
  }

  async retire(id: string): Promise<void> {
    for (const runner of this.#runners) if (runner.id === id) runner.dead = true;
  }

  /** Undefined also for one that never registered. */
  #alive(id: string): Runner | undefined {
    return this.#runners.find((runner) => runner.id === id && !runner.dead);
  }

  #isOrphan({ run }: Instance): boolean {
    return run.owner !== null && this.#alive(run.owner) === undefined;
  }

  // Turns -----------------------------------------------------------------------------------------------------------

  async claim({ runner: id, lanes, limit, reservedForNew }: ClaimRequest): Promise<ClaimAnswer> {
    const runner = this.#alive(id);
    if (runner === undefined) return { kind: "dead" };
    const now = this.#clock.now();
    const within = this.#live().filter((instance) => isIn(lanes, instance));
    const orphans = within.filter((instance) => this.#isOrphan(instance));
    const due = within
      .filter(({ run }) => run.dueAt !== null && run.dueAt <= now)
      .toSorted((a, b) => (a.run.dueAt ?? 0) - (b.run.dueAt ?? 0)); // equal ones stay in the order of iid
    const old = [
      ...orphans.filter(({ run }) => !pauseRequested(run)),
      ...due.filter(({ run }) => run.resuming),
    ];
    const fresh = due.filter(({ run }) => !run.resuming);

    for (const orphan of orphans.filter(({ run }) => pauseRequested(run))) {
      orphan.claimNumber += 1;
      orphan.run.status = after(orphan.run, "claim");
      orphan.run.owner = null;
      orphan.run.wakeAt = null;
      orphan.run.takeovers += 1;
    }
    const reserved = Math.min(reservedForNew, limit, fresh.length);
    const first = old.slice(0, limit - reserved);
    const taken = [...first, ...fresh.slice(0, limit - first.length)];
    return { kind: "ok", now, claimed: taken.map((instance) => this.#claim(instance, runner)) };
  }

  /** The status of each run of a dead runner that a claim of these lanes finds. */
  orphansIn(lanes: readonly Lane[]): InstanceState[] {
    const within = this.#live().filter((instance) => isIn(lanes, instance));
    return within.filter((each) => this.#isOrphan(each)).map(({ run }) => run.status);
  }

  #claim(instance: Instance, runner: Runner): Claimed {
    const { run } = instance;
    const takenOver = this.#isOrphan(instance);
    const isNew = !run.resuming;
    if (takenOver) run.takeovers += 1;
    this.#lease(instance, runner);
    const { params, ...claimed } = this.#claimed(instance);
    return { ...claimed, takenOver, resuming: !isNew, params: isNew ? params : null };
  }

  #lease(instance: Instance, runner: Runner): void {
    const now = this.#clock.now();
    const { run } = instance;
    instance.claimNumber += 1;
    run.status = after(run, "claim");
    run.owner = runner.id;
    run.resuming = true;
    run.dueAt = null;
    run.wakeAt = null;
    run.partNumber = 0;
    run.seenAt = Math.max(run.seenAt, now);
    run.startedAt ??= now;
  }

  /** Whether an adopted run's code ever ran is not known, so it resumes and brings its params. */
  async adopt(runner: string, iids: readonly string[]): Promise<Claimed[]> {
    return this.#live()
      .filter(({ iid, run }) => iids.includes(iid) && run.owner === runner)
      .map((instance) => this.#claimed(instance));
  }

  async reopen(id: string, requests: readonly ReopenRequest[]): Promise<Claimed[]> {
    const runner = this.#alive(id);
    if (runner === undefined) return [];
    const isAsked = ({ iid, claimNumber, run }: Instance): boolean =>
      requests.some(
        (request) =>
          request.iid === iid &&
          request.runNumber === run.runNumber &&
          request.claimNumber === claimNumber,
      );
    return this.#live()
      .filter(({ run }) => run.status === "waiting" || run.status === "queued")
      .filter(isAsked)
      .map((instance) => {
        this.#lease(instance, runner);
        return { ...this.#claimed(instance), params: null };
      });
  }

  #claimed({ iid, workflow, id, claimNumber, createdAt, params, run }: Instance): Claimed {
    return {
      iid,
      workflow,
      id,
      runNumber: run.runNumber,
      claimNumber,
      resuming: true,
      takenOver: run.takeovers > 0 && run.partNumber === 0,
      takeovers: run.takeovers,
      eventCount: run.events.length,
      historyBytes: run.historyBytes,
      createdAt,
      params,
      now: this.#clock.now(),
    };
  }

  async load(requests: readonly LoadRequest[]): Promise<LoadedRun[]> {
    return requests.map(({ iid, runNumber }) => {
      const instance = this.#instances.find((known) => known.iid === iid);
      const run = instance && runOf(instance, runNumber);
      return {
        iid,
        params: instance?.params ?? null,
        steps: stepsOf(run),
        events: eventsOf(run).filter(({ consumedBy }) => consumedBy === null),
      };
    });
  }

  async commit(parts: readonly Part[]): Promise<PartAnswer[]> {
    return parts.map((part) => this.#commit(part));
  }

  #commit(part: Part): PartAnswer {
    const now = this.#clock.now();
    const instance = this.#instances.find(({ iid }) => iid === part.iid);
    if (instance?.claimNumber !== part.claimNumber) return { kind: "lost" };
    const { run } = instance;
    // Only a part of this very claim can have ended the turn: it was applied before.
    if (!isLeased(run)) return { ...ended(run), now: run.finishedAt ?? now };

    for (const step of part.steps) writeStep(run, part, step, now);
    for (const { ord, n, tookMs, error } of part.attempts) {
      if (run.attempts.some((known) => known.ord === ord && known.n === n)) continue;
      run.attempts.push({ ord, n, startedAt: now - tookMs, endedAt: now, error });
    }
    for (const { number, ord } of part.consumed) {
      const event = run.events[number - 1];
      if (event?.record.consumedBy !== null) continue;
      event.record = { ...event.record, consumedBy: ord, deliveredAt: now };
    }
    for (const spawn of part.spawns) if (this.#find(spawn) === undefined) this.#add(spawn);
    this.#inbox.push(...part.deliveries);
    for (const row of part.outbox) {
      if (!this.outbox.some(({ id }) => id === row.id)) this.outbox.push(row);
    }
    return this.#next(run, part);
  }

  /** What becomes of the ticket. Finish beats pause, pause beats park, an unseen event beats park. */
  #next(run: Run, { next, partNumber, takeovers, seenEvents }: Part): PartAnswer {
    const now = this.#clock.now();
    const isNewer = partNumber > run.partNumber;
    if (isNewer && takeovers !== undefined) run.takeovers = takeovers;
    if (isNewer && (takeovers !== undefined || next.kind !== "continue")) {
      run.partNumber = partNumber;
    }
    switch (next.kind) {
      case "continue":
        break;
      case "watch":
        if (!isNewer) break;
        run.waitMask = next.waitMask;
        run.wakeAt = wakeAt(next.wake, now);
        break;
      case "park":
        if (!isNewer) break; // it was refused before
        if (run.events.length > seenEvents && !pauseRequested(run)) break;
        giveUp(run, "park", wakeAt(next.wake, now), next.waitMask, next.historyBytes);
        break;
      case "release":
        if (!isNewer) break;
        giveUp(run, "release", now + next.inMs, 0, next.historyBytes);
        break;
      case "complete":
        run.output = next.output;
        this.#end(run, after(run, "complete"));
        break;
      case "fail":
        run.error = next.error;
        this.#end(run, after(run, "fail"));
        break;
    }
    if (!isLeased(run)) return { ...ended(run), now };
    const events = eventsOf(run).slice(seenEvents);
    return { kind: "ok", now, state: "leased", pauseRequested: pauseRequested(run), events };
  }

  async poll(requests: readonly PollRequest[]): Promise<PollAnswer[]> {
    return requests.map(({ iid, claimNumber, seenEvents }) => {
      const instance = this.#instances.find((known) => known.iid === iid);
      if (instance?.claimNumber !== claimNumber || !isLeased(instance.run)) return { kind: "lost" };
      const { run } = instance;
      run.seenAt = Math.max(run.seenAt, this.#clock.now());
      const events = eventsOf(run).slice(seenEvents);
      return { kind: "ok", now: run.seenAt, pauseRequested: pauseRequested(run), events };
    });
  }

  /** Work that needs no waiting, an inbox to move or a dead runner's run, is due now. */
  async nextDueInMs(lanes: readonly Lane[]): Promise<number | null> {
    if (this.#inbox.length > 0) return 0;
    const within = this.#live().filter((instance) => isIn(lanes, instance));
    if (within.some((instance) => this.#isOrphan(instance))) return 0;
    const dues = within.flatMap(({ run }) => (run.dueAt === null ? [] : [run.dueAt]));
    return dues.length === 0 ? null : Math.max(0, Math.min(...dues) - this.#clock.now());
  }

  async unknownLanes(known: readonly Lane[]): Promise<Lane[]> {
    const now = this.#clock.now();
    const waiting = this.#live().filter(
      (instance) =>
        known.some(({ queue }) => queue === instance.queue) &&
        !isIn(known, instance) &&
        (this.#isOrphan(instance) || (instance.run.dueAt !== null && instance.run.dueAt <= now)),
    );
    const lanes = waiting.map(({ queue, workflow }) => ({ queue, handler: workflow }));
    return [...new Map(lanes.map((lane) => [JSON.stringify(lane), lane])).values()].slice(0, 100);
  }

  // Reading ---------------------------------------------------------------------------------------------------------

  async get(target: Target): Promise<InstanceRecord | null> {
    const instance = this.#find(target);
    return instance === undefined ? null : toRecord(instance);
  }

  async list({
    workflow,
    status,
    order,
    pageSize,
    cursor,
  }: ListQuery): Promise<Page<InstanceRecord>> {
    const about = JSON.stringify(["list", workflow, status ?? null, order]);
    const oldest = this.#instances
      .filter((instance) => instance.workflow === workflow)
      .map(toRecord)
      .toSorted(byCreation);
    const all = order === "oldest" ? oldest : oldest.toReversed();
    let rest = all.filter((record) => status === undefined || record.status === status);
    if (cursor !== undefined) {
      const [createdAt, iid] = decodeCursor(cursor, about, ["integer", "string"]);
      const sign = order === "oldest" ? 1 : -1;
      const last = { createdAt: createdAt as number, iid: iid as string };
      rest = rest.filter((record) => sign * byCreation(record, last) > 0);
    }
    return pageOf(rest, pageSize, (last) => encodeCursor(about, [last.createdAt, last.iid]));
  }

  async history(target: Target, query: HistoryQuery): Promise<HistoryPage | null> {
    const instance = this.#find(target);
    if (instance === undefined) return null;
    const { runNumber = instance.run.runNumber, order, pageSize, cursor } = query;
    const runs = [instance.run, ...instance.pastRuns].slice(0, RUNS_LISTED).map(toRunRecord);
    const run = runOf(instance, runNumber);

    const about = JSON.stringify(["history", target.workflow, target.id, runNumber, order]);
    const from = cursor === undefined ? [] : decodeCursor(cursor, about, ["integer", "integer"]);
    const [step = null, event = null] = from as number[];
    const isBeyond = (position: number, last: number | null): boolean =>
      last === null || (order === "oldest" ? position > last : position < last);
    const steps = stepsOf(run).filter(({ ord }) => isBeyond(ord, step));
    const events = eventsOf(run).filter(({ number }) => isBeyond(number, event));
    if (order === "newest") for (const entries of [steps, events]) entries.reverse();

    const entries = merged(steps, events, order, run?.attempts ?? []);
    const page = pageOf(entries, pageSize, () => {
      const shown = entries.slice(0, pageSize);
      const lastStep = shown.findLast((entry) => entry.kind === "step")?.step.ord;
      const lastEvent = shown.findLast((entry) => entry.kind === "event")?.event.number;
      const start = order === "oldest" ? 0 : Number.MAX_SAFE_INTEGER;
      return encodeCursor(about, [lastStep ?? step ?? start, lastEvent ?? event ?? start]);
    });
    return { ...page, runNumber, runs };
  }

  #find({ workflow, id }: Target): Instance | undefined {
    return this.#instances.find((known) => known.workflow === workflow && known.id === id);
  }

  /** In the order of `iid`. */
  #live(): Instance[] {
    return this.#instances
      .filter(({ run }) => !isTerminal(run.status))
      .toSorted((a, b) => (a.iid < b.iid ? -1 : 1));
  }
}

function newRun(runNumber: number, dueAt: DbTime): Run {
  return {
    runNumber,
    status: "queued",
    output: null,
    error: null,
    startedAt: null,
    finishedAt: null,
    steps: [],
    attempts: [],
    events: [],
    owner: null,
    resuming: false,
    dueAt,
    waitMask: 0,
    wakeAt: null,
    seenAt: 0,
    partNumber: 0,
    takeovers: 0,
    historyBytes: 0,
  };
}

function after(run: Run, command: Command): InstanceState {
  const outcome = transition(run.status, command);
  if ("refused" in outcome) throw new Error(`${command} of a ${run.status} run`);
  return outcome.state;
}

/** A pause that was asked for wins: the run then waits for its resume alone. */
function giveUp(
  run: Run,
  command: "park" | "release",
  dueAt: DbTime | null,
  waitMask: number,
  historyBytes: number,
): void {
  run.status = after(run, command);
  run.dueAt = run.status === "paused" ? null : dueAt;
  run.owner = null;
  run.wakeAt = null;
  run.waitMask = waitMask;
  run.takeovers = 0;
  run.historyBytes = historyBytes;
}

function isLeased(run: Run): boolean {
  return run.owner !== null;
}

function pauseRequested(run: Run): boolean {
  return run.status === "waitingForPause";
}

function hasEvent(run: Run, eventId: string): boolean {
  return run.events.some((event) => event.eventId === eventId);
}

function isIn(lanes: readonly Lane[], { queue, workflow }: Instance): boolean {
  return lanes.some((lane) => lane.queue === queue && lane.handler === workflow);
}

function masksMeet(a: number, b: number): boolean {
  return (BigInt(a) & BigInt(b)) !== 0n;
}

function wakeAt(wake: Wake | null, now: DbTime): DbTime | null {
  if (wake === null) return null;
  return "at" in wake ? wake.at : now + wake.inMs;
}

/** The answer to a part whose run is leased no more. */
function ended(run: Run): Omit<Extract<PartAnswer, { kind: "ok" }>, "now"> {
  const state = isTerminal(run.status) ? "finished" : run.status === "paused" ? "paused" : "parked";
  return { kind: "ok", state, pauseRequested: false, events: [] };
}

/** Only a newer part overwrites a step; its identity and its start stay. */
function writeStep(
  run: Run,
  { claimNumber, partNumber }: Part,
  step: StepWrite,
  now: DbTime,
): void {
  const { tookMs, wake, ...written } = step;
  const record: StepRecord = {
    ...written,
    startedAt: now - tookMs,
    endedAt: step.status === "completed" || step.status === "errored" ? now : null,
    wakeAt: wakeAt(wake, now),
    claimNumber,
  };
  const known = run.steps.find((other) => other.record.ord === step.ord);
  if (known === undefined) {
    run.steps.push({ record, partNumber });
    return;
  }
  const isNewer =
    claimNumber > known.record.claimNumber ||
    (claimNumber === known.record.claimNumber && partNumber > known.partNumber);
  if (!isNewer) return;
  const { name, count, type, calledAfter, startedAt } = known.record;
  known.record = { ...record, name, count, type, calledAfter, startedAt };
  known.partNumber = partNumber;
}

function runOf(instance: Instance, runNumber: number): Run | undefined {
  return [instance.run, ...instance.pastRuns].find((run) => run.runNumber === runNumber);
}

function stepsOf(run: Run | undefined): StepRecord[] {
  return (run?.steps ?? []).map(({ record }) => record).toSorted((a, b) => a.ord - b.ord);
}

function eventsOf(run: Run | undefined): EventRecord[] {
  return (run?.events ?? []).map(({ record }) => record);
}

function toRunRecord(run: Run): RunRecord {
  const { runNumber, status, output, error, startedAt, finishedAt } = run;
  return { runNumber, status, output, error, startedAt, finishedAt };
}

function toRecord({ iid, workflow, id, params, origin, createdAt, run }: Instance): InstanceRecord {
  return { iid, workflow, id, params, origin, createdAt, ...toRunRecord(run) };
}

type Created = { readonly createdAt: DbTime; readonly iid: string };

function byCreation(a: Created, b: Created): number {
  if (a.createdAt !== b.createdAt) return a.createdAt - b.createdAt;
  return a.iid === b.iid ? 0 : a.iid < b.iid ? -1 : 1;
}

/** Steps in call order and events in arrival order, merged by time; at equal times the step came first. */
function merged(
  steps: readonly StepRecord[],
  events: readonly EventRecord[],
  order: HistoryQuery["order"],
  attempts: readonly AttemptRecord[],
): HistoryEntry[] {
  const entries: HistoryEntry[] = [];
  const [restOfSteps, restOfEvents] = [[...steps], [...events]];
  for (;;) {
    const [step] = restOfSteps;
    const [event] = restOfEvents;
    if (step === undefined && event === undefined) return entries;
    const stepIsEarlier = step && event && step.startedAt <= event.createdAt;
    const takeStep = step && (event === undefined || stepIsEarlier === (order === "oldest"));
    if (takeStep) {
      const own = attempts.filter(({ ord }) => ord === step.ord).toSorted((a, b) => a.n - b.n);
      entries.push({ kind: "step", step, attempts: own });
      restOfSteps.shift();
    } else if (event !== undefined) {
      entries.push({ kind: "event", event });
      restOfEvents.shift();
    }
  }
}

function pageOf<T>(rest: readonly T[], pageSize: number, cursorAt: (last: T) => string): Page<T> {
  const items = rest.slice(0, pageSize);
  const last = items.at(-1);
  return last !== undefined && rest.length > pageSize
    ? { items, cursor: cursorAt(last), hasNextPage: true }
    : { items, hasNextPage: false };
}

import type { HookName } from "../../model/hooks.js";
import type { Clock } from "../../model/seams.js";
import { isTerminal, type InstanceState } from "../../model/status.js";
import { transition, type ControlCommand } from "../../model/transitions.js";
import { asLoaded, type DbTime, type InstanceRecord } from "../../store/records.js";
import { type Target } from "../../model/target.js";
import type {
  Claimed,
  ClaimAnswer,
  ClaimRequest,
  ControlAnswer,
  ControlRequest,
  CreateAnswer,
  HeartbeatAnswer,
  HistoryPage,
  HistoryQuery,
  InTransaction,
  Lane,
  ListQuery,
  LoadedRun,
  LoadRequest,
  MigrationPlan,
  LeaseOnWake,
  NewEvent,
  NewInstance,
  Page,
  PollAnswer,
  PollRequest,
  ReopenRequest,
  SendEventAnswer,
  Store,
} from "../../store/store.js";
import type {
  FailedHookRow,
  FailedHooksQuery,
  HookClaimRequest,
  HookRow,
  HookSettlement,
} from "../../store/outbox.js";
import type { RunMessage, Part, PartAnswer } from "../../store/part.js";
import { ModelOutbox } from "./outbox.js";
import { applyPart } from "./part.js";
import { historyOf, listed, toRecord } from "./reading.js";
import {
  after,
  end,
  eventsOfRun,
  hasEvent,
  type ModelInstance,
  isLeased,
  leaseTo,
  newInstance,
  newRun,
  pauseRequested,
  receive,
  runOf,
  stepsOfRun,
} from "./run.js";

type ModelRunner = { readonly id: string; leaseUntil: DbTime; dead: boolean };

/**
 * The port's promises, stated a second time in plain arrays, to compare real stores with. It serves one
 * caller at a time. Where the port leaves a choice, it makes one:
 *
 * - it claims a dead runner's runs in the order of `iid`, and pauses all that were asked to, whatever the
 *   limit; `owned`, `adopt` and `declareDead` answer in that order, too;
 * - a create sent again answers `leased: false`: the run is adopted, if it is still held;
 * - a park of a run with a pause request and unseen events pauses the run.
 */
export class ModelStore implements Store<object> {
  readonly #clock: Clock;
  readonly #instances: ModelInstance[] = [];
  readonly #runners: ModelRunner[] = [];
  readonly #inbox: RunMessage[] = [];
  readonly #outbox: ModelOutbox;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#outbox = new ModelOutbox(clock);
  }

  async migrate(): Promise<void> {}
  async planMigration(): Promise<MigrationPlan> {
    return { from: 1, to: 1, statements: [] };
  }
  async close(): Promise<void> {}

  async now(): Promise<DbTime> {
    return this.#clock.now();
  }

  /**
   * Begins a user's transaction. It only inserts, so a rollback forgets what came last. Nothing else may run
   * meanwhile.
   */
  begin(): { readonly tx: object; commit(): Promise<void>; rollback(): Promise<void> } {
    const [instances, inbox] = [this.#instances.length, this.#inbox.length];
    const outbox = this.#outbox.mark();
    return {
      tx: {},
      commit: async () => {},
      rollback: async () => {
        this.#instances.length = instances;
        this.#inbox.length = inbox;
        this.#outbox.backTo(outbox);
      },
    };
  }

  // Instances -------------------------------------------------------------------------------------------------------

  async create(
    items: readonly NewInstance[],
    {
      tx,
      hooked,
      lease,
    }: InTransaction<object> & { readonly lease?: { readonly runner: string } } = {},
  ): Promise<CreateAnswer[]> {
    const runner = lease !== undefined && tx === undefined ? this.#alive(lease.runner) : undefined;
    return items.map((item) => {
      const known = this.#find(item);
      if (known === undefined) {
        const created = this.#add(item, hooked);
        if (runner !== undefined) leaseTo(created, runner.id, this.#clock.now());
        const { iid, createdAt } = created;
        return { kind: "created", iid, createdAt, leased: runner !== undefined };
      }
      const { iid, origin, createdAt } = known;
      return iid === item.iid
        ? { kind: "created", iid, createdAt, leased: false }
        : { kind: "duplicate", existing: { iid, origin } };
    });
  }

  #add(item: NewInstance, hooked?: boolean): ModelInstance {
    const instance = newInstance(item, this.#clock.now());
    this.#instances.push(instance);
    this.#outbox.enqueued(instance, "create", hooked);
    return instance;
  }

  async sendEvent(
    target: Target,
    { eventId, type, payload }: NewEvent,
    { tx, hooked, lease }: InTransaction<object> & { lease?: LeaseOnWake | undefined } = {},
  ): Promise<SendEventAnswer> {
    const instance = this.#find(target);
    if (instance === undefined) return { kind: "notFound" };
    const { iid, run } = instance;
    const event = { eventId, iid, runNumber: run.runNumber, kind: "event", type, payload };
    if (isTerminal(run.status)) {
      return hasEvent(run, eventId) || this.#isInInbox(event)
        ? { kind: "duplicate" }
        : { kind: "terminal", status: run.status };
    }
    if (tx !== undefined) {
      this.#inbox.push(event);
      this.#outbox.enqueued(instance, "event", hooked);
      return { kind: "accepted", woken: false, owner: null, place: null, claimed: null };
    }
    if (hasEvent(run, eventId)) return { kind: "duplicate" };
    const { woken, number, createdAt } = receive(run, event, this.#clock.now());
    if (woken) this.#outbox.enqueued(instance, "event");
    const place = { iid, runNumber: run.runNumber, number, createdAt };
    const runner =
      woken && lease?.claimNumber === instance.claimNumber ? this.#alive(lease.runner) : undefined;
    const { owner } = run;
    if (runner !== undefined) leaseTo(instance, runner.id, this.#clock.now());
    const claimed = runner === undefined ? null : { ...this.#claimed(instance), params: null };
    return { kind: "accepted", woken, owner, place, claimed };
  }

  #isInInbox({ iid, runNumber, eventId }: RunMessage): boolean {
    return this.#inbox.some(
      (sent) => sent.iid === iid && sent.runNumber === runNumber && sent.eventId === eventId,
    );
  }

  async moveInbox(limit: number): Promise<number> {
    const taken = this.#inbox.splice(0, limit);
    for (const event of taken) {
      const run = this.#instances.find(({ iid }) => iid === event.iid)?.run;
      // An event for a run that has ended or was replaced has nowhere to go.
      if (run === undefined || isTerminal(run.status) || run.runNumber !== event.runNumber)
        continue;
      if (!hasEvent(run, event.eventId)) receive(run, event, this.#clock.now());
    }
    return taken.length;
  }

  /** Lets the table of transitions decide. If the state stays the same nothing happens, except for a restart. */
  async control(target: Target, request: ControlRequest): Promise<ControlAnswer> {
    const { command } = request;
    const operationId = "operationId" in request ? request.operationId : null;
    const instance = this.#find(target);
    if (instance === undefined) return { kind: "notFound" };
    const { owner, status } = instance.run;
    const isResend = operationId !== null && instance.operations.has(operationId);
    if (isResend) return { kind: "ok", status, owner };
    const outcome = transition(status, command);
    if ("refused" in outcome) return { kind: "terminal", status };
    if (outcome.state !== status || command === "restart") {
      this.#commands[command](instance, outcome.state);
    }
    if (operationId !== null) instance.operations.add(operationId);
    return { kind: "ok", status: outcome.state, owner };
  }

  readonly #commands: {
    readonly [C in ControlCommand]: (instance: ModelInstance, becomes: InstanceState) => void;
  } = {
    pause: ({ run }, becomes) => {
      run.status = becomes;
      run.dueAt = null;
    },
    resume: (instance, becomes) => {
      const { run } = instance;
      run.status = becomes;
      if (becomes !== "queued") return;
      run.dueAt = this.#clock.now();
      this.#outbox.enqueued(instance, "resume");
    },
    terminate: (instance, becomes) => {
      instance.claimNumber += 1;
      end(instance.run, becomes, this.#clock.now());
      this.#outbox.finished(instance);
    },
    restart: (instance) => {
      const { run } = instance;
      instance.claimNumber += 1;
      if (!isTerminal(run.status)) end(run, "terminated", this.#clock.now());
      instance.pastRuns.unshift(run);
      instance.run = newRun(run.runNumber + 1, this.#clock.now());
      this.#outbox.enqueued(instance, "restart");
    },
  };

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

  async nextExpiryInMs(id: string): Promise<number | null> {
    const owners = new Set(this.#live().map(({ run }) => run.owner));
    const ends = this.#runners
      .filter((runner) => !runner.dead && runner.id !== id && owners.has(runner.id))
      .map(({ leaseUntil }) => Math.max(0, leaseUntil - this.#clock.now()));
    return ends.length === 0 ? null : Math.min(...ends);
  }

  /** Returns the runner unless it is dead or never registered. */
  #alive(id: string): ModelRunner | undefined {
    return this.#runners.find((runner) => runner.id === id && !runner.dead);
  }

  #isOrphan({ run }: ModelInstance): boolean {
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
      orphan.run.takeovers += 1;
    }
    const reserved = Math.min(reservedForNew, limit, fresh.length);
    const first = old.slice(0, limit - reserved);
    const taken = [...first, ...fresh.slice(0, limit - first.length)];
    return { kind: "ok", now, claimed: taken.map((instance) => this.#claim(instance, runner)) };
  }

  /** Returns the status of each dead runner's run that a claim of these lanes would find. */
  orphansIn(lanes: readonly Lane[]): InstanceState[] {
    const within = this.#live().filter((instance) => isIn(lanes, instance));
    return within.filter((each) => this.#isOrphan(each)).map(({ run }) => run.status);
  }

  #claim(instance: ModelInstance, runner: ModelRunner): Claimed {
    const { run } = instance;
    const takenOver = this.#isOrphan(instance);
    const isNew = !run.resuming;
    if (takenOver) run.takeovers += 1;
    leaseTo(instance, runner.id, this.#clock.now());
    const { params, ...claimed } = this.#claimed(instance);
    return { ...claimed, takenOver, resuming: !isNew, params: isNew ? params : null };
  }

  /** Nobody knows whether an adopted run's code ever ran, so the run resumes and brings its params. */
  async adopt(runner: string, iids: readonly string[]): Promise<Claimed[]> {
    return this.#live()
      .filter(({ iid, run }) => iids.includes(iid) && run.owner === runner)
      .map((instance) => this.#claimed(instance));
  }

  async reopen(id: string, requests: readonly ReopenRequest[]): Promise<Claimed[]> {
    const runner = this.#alive(id);
    if (runner === undefined) return [];
    const isAsked = ({ iid, claimNumber, run }: ModelInstance): boolean =>
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
        leaseTo(instance, runner.id, this.#clock.now());
        return { ...this.#claimed(instance), params: null };
      });
  }

  #claimed({ iid, workflow, id, claimNumber, createdAt, params, run }: ModelInstance): Claimed {
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
        steps: stepsOfRun(run).map(asLoaded),
        events: eventsOfRun(run).filter(({ consumedBy }) => consumedBy === null),
      };
    });
  }

  async commit(parts: readonly Part[]): Promise<PartAnswer[]> {
    return parts.map((part) => this.#commit(part));
  }

  #commit(part: Part): PartAnswer {
    const instance = this.#instances.find(({ iid }) => iid === part.iid);
    if (instance?.claimNumber !== part.claimNumber) return { kind: "lost" };
    const isFresh = isLeased(instance.run);
    if (isFresh) this.#sendOut(part);
    const answer = applyPart(instance.run, part, this.#clock.now());
    if (isFresh && isTerminal(instance.run.status)) this.#outbox.finished(instance);
    return answer;
  }

  #sendOut({ spawns, deliveries }: Part): void {
    for (const spawn of spawns) if (this.#find(spawn) === undefined) this.#add(spawn);
    this.#inbox.push(...deliveries);
  }

  async poll(requests: readonly PollRequest[]): Promise<PollAnswer[]> {
    return requests.map(({ iid, claimNumber, seenEvents }) => {
      const instance = this.#instances.find((known) => known.iid === iid);
      if (instance?.claimNumber !== claimNumber || !isLeased(instance.run)) return { kind: "lost" };
      const { run } = instance;
      run.seenAt = Math.max(run.seenAt, this.#clock.now());
      const events = eventsOfRun(run).slice(seenEvents);
      return { kind: "ok", now: run.seenAt, pauseRequested: pauseRequested(run), events };
    });
  }

  /** Work that needs no waiting, such as an inbox to move or a dead runner's run, is due now. */
  async nextDueInMs(
    lanes: readonly Lane[],
    hooks: readonly HookName[] = [],
  ): Promise<number | null> {
    if (lanes.length > 0 && this.#inbox.length > 0) return 0;
    const within = this.#live().filter((instance) => isIn(lanes, instance));
    if (within.some((instance) => this.#isOrphan(instance))) return 0;
    const dues = within.flatMap(({ run }) => (run.dueAt === null ? [] : [run.dueAt]));
    dues.push(...this.#outbox.nextDueAt(hooks));
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

  // Hooks -----------------------------------------------------------------------------------------------------------

  async registerHooks(hooks: readonly HookName[]): Promise<void> {
    this.#outbox.register(hooks);
  }

  async unregisterHook(hook: HookName): Promise<number> {
    return this.#outbox.unregister(hook);
  }

  async claimHooks(request: HookClaimRequest): Promise<HookRow[]> {
    return this.#outbox.claim(request);
  }

  async settleHooks(settlements: readonly HookSettlement[]): Promise<void> {
    this.#outbox.settle(settlements);
  }

  async failedHooks(query: FailedHooksQuery): Promise<Page<FailedHookRow>> {
    return this.#outbox.failed(query);
  }

  async retryHook(id: string): Promise<boolean> {
    return this.#outbox.retry(id);
  }

  async unknownHooks(known: readonly HookName[], ms: number): Promise<string[]> {
    return this.#outbox.unknown(known, ms);
  }

  // Reading ---------------------------------------------------------------------------------------------------------

  async get(target: Target): Promise<InstanceRecord | null> {
    const instance = this.#find(target);
    return instance === undefined ? null : toRecord(instance);
  }

  async list(query: ListQuery): Promise<Page<InstanceRecord>> {
    return listed(this.#instances, query);
  }

  async history(target: Target, query: HistoryQuery): Promise<HistoryPage | null> {
    const instance = this.#find(target);
    return instance === undefined ? null : historyOf(instance, query);
  }

  #find({ workflow, id }: Target): ModelInstance | undefined {
    return this.#instances.find((known) => known.workflow === workflow && known.id === id);
  }

  /** Returns the live instances in the order of `iid`. */
  #live(): ModelInstance[] {
    return this.#instances
      .filter(({ run }) => !isTerminal(run.status))
      .toSorted((a, b) => (a.iid < b.iid ? -1 : 1));
  }
}

function isIn(lanes: readonly Lane[], { queue, workflow }: ModelInstance): boolean {
  return lanes.some((lane) => lane.queue === queue && lane.handler === workflow);
}

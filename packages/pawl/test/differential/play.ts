import type { ManualClock } from "../../src/testing/clock.js";
import { hookNames, type HookName } from "../../src/model/hooks.js";
import { isTerminal } from "../../src/model/status.js";
import type { EventRecord } from "../../src/store/records.js";
import type { Target } from "../../src/model/target.js";
import type {
  Claimed,
  Lane,
  NewEvent,
  NewInstance,
  Store,
  StoreVerb,
} from "../../src/store/store.js";
import type { HookRow } from "../../src/store/outbox.js";
import type { Wake } from "../../src/model/wake.js";
import type { Next, Part, PartAnswer, StepWrite } from "../../src/store/part.js";
import { waitMaskOf } from "../../src/model/wait-mask.js";
import type { ModelStore } from "../../src/testing/model-store/store.js";
import { canonical, Lockstep, type Peer } from "./lockstep.js";
import {
  type DeliveryEnd,
  type EventOf,
  type InTransaction,
  type Item,
  type NextOf,
  type Operation,
  type PartOf,
  retriedFrom,
  type StepOf,
  type WakeOf,
} from "./operations.js";

/** A claim as its runner knows it. It may have been lost since. */
type Turn = {
  readonly claimed: Pick<Claimed, "iid" | "runNumber" | "claimNumber" | "takenOver" | "takeovers">;
  readonly sent: Part[];
  seenEvents: number;
  /** The state that the runner was told last. */
  state: Extract<PartAnswer, { kind: "ok" }>["state"] | "lost";
};

type Runner = { readonly id: string; leaseUntil: number };
type Control = {
  readonly command: "terminate" | "restart";
  readonly target: Target;
  readonly operationId: string;
};

/** More than one sequence of operations can make. */
const ALL = 1_000;
/** The id in the pool that stands for a new event id each time. */
const NEW_ID = 0;
/** A dead runner's row may be forgotten after ten minutes, and its id come back. */
const REMEMBERED_MS = 9 * 60_000;

/** The knowledge of a store's callers, and how they carry out a sequence of operations with it. */
export class Play {
  readonly #model: ModelStore;
  readonly #lockstep: Lockstep;
  readonly #clock: ManualClock;
  readonly #name: string;
  readonly #reached: (what: string) => void;
  readonly #workflows: readonly string[];
  readonly #lanes: readonly Lane[];
  readonly #nobody: Target;
  readonly #created: NewInstance[][] = [];
  readonly #targets: (Target & { readonly iid: string })[] = [];
  readonly #runners: Runner[] = [];
  readonly #turns: Turn[] = [];
  readonly #controls: Control[] = [];
  /** By store, because the ids of rows are its own. */
  readonly #deliveries = new Map<Store, (readonly HookRow[])[]>();
  #made = 0;

  /** Names of its own keep a play apart from others in the same databases. */
  constructor(
    model: ModelStore,
    others: readonly Peer[],
    clock: ManualClock,
    name: string,
    reached: (what: string) => void,
  ) {
    this.#model = model;
    const begin = async () => model.begin();
    this.#lockstep = new Lockstep(
      { name: "model", store: model, begin, cursors: new Map() },
      others,
    );
    this.#clock = clock;
    this.#name = name;
    this.#reached = reached;
    this.#nobody = { workflow: `order ${name}`, id: "nobody" };
    this.#workflows = [`order ${name}`, `Order ${name}`];
    this.#lanes = this.#workflows.flatMap((handler) =>
      [`default ${name}`, `Default ${name}`].map((queue) => ({ queue, handler })),
    );
  }

  async run(operations: readonly Operation[]): Promise<void> {
    await this.#register(30_000);
    await this.#register(600_000);
    for (const operation of operations) await this.#perform(operation);
    await this.#lookAtAll();
    await this.#wakeAll();
  }

  /** Reports a divergence that was found in another way. */
  diverge(how: string): never {
    return this.#lockstep.diverge(how);
  }

  /** Leaves nothing behind that another play could meet. */
  async leave(peers: readonly Peer[]): Promise<void> {
    await Promise.all(
      peers.map(async ({ store }) => {
        for (const { id } of this.#runners) await store.retire(id);
        for (const hook of hookNames) await store.unregisterHook(hook);
        while ((await store.moveInbox(ALL)) > 0);
      }),
    );
  }

  async #perform(operation: Operation): Promise<void> {
    const { op } = operation;
    switch (op) {
      case "create":
        return this.#create(
          operation.items.map((item) => this.#newInstance(item)),
          operation.eager,
        );
      case "create again": {
        const batch = pick(this.#created, operation.which);
        if (batch !== undefined) await this.#create(batch, operation.eager);
        return;
      }
      case "register":
        return this.#register(operation.leaseMs);
      case "register again": {
        const runner = pick(this.#runners, operation.runner);
        if (runner === undefined || runner.leaseUntil < this.#clock.now() - REMEMBERED_MS) return;
        return this.#ask("register", runner.id, operation.leaseMs);
      }
      case "heartbeat":
        return this.#heartbeat(pick(this.#runners, operation.runner), operation.leaseMs);
      case "declareDead":
        return this.#declareDead();
      case "retire": {
        const runner = pick(this.#runners, operation.runner);
        if (runner === undefined) return;
        return this.#ask("retire", runner.id);
      }
      case "claim":
        return this.#claim(
          pick(this.#runners, operation.runner),
          this.#someLanes(operation.lanes),
          operation.limit,
          operation.reservedForNew,
        );
      case "adopt":
        return this.#adopt(pick(this.#runners, operation.runner), operation.targets);
      case "reopen":
        return this.#reopen(pick(this.#runners, operation.runner), operation.turns);
      case "load": {
        const { takenOver } = operation;
        const turns = unique(
          operation.turns.flatMap((n) => pick(this.#turns, n) ?? []),
          iidOf,
        );
        const runs = turns.map(({ claimed: { iid, runNumber } }) => ({
          iid,
          runNumber,
          historyBytes: 0,
          takenOver,
        }));
        await this.#ask("load", runs);
        return;
      }
      case "poll":
        return this.#poll(operation.turns, operation.less);
      case "commit":
        return this.#commit(operation.parts);
      case "sendEvent":
        return this.#sendEvent(operation.target, operation.event, operation.eager);
      case "moveInbox": {
        const moved = await this.#ask("moveInbox", operation.limit);
        if (moved > 0) this.#reached("an inbox with events");
        return;
      }
      case "transaction":
        return this.#transaction(operation.work, operation.end);
      case "pause":
      case "resume": {
        const answer = await this.#ask("control", this.#target(operation.target), { command: op });
        this.#reached(`${op} → ${answer.kind === "ok" ? answer.status : answer.kind}`);
        return;
      }
      case "terminate":
      case "restart":
        this.#made += 1;
        return this.#control({
          command: op,
          target: this.#target(operation.target),
          operationId: `operation ${this.#made}`,
        });
      case "control again": {
        const control = pick(this.#controls, operation.which);
        if (control !== undefined) await this.#control(control);
        return;
      }
      case "advance":
        this.#clock.advance(operation.ms);
        this.#lockstep.note(`the clock moves by ${operation.ms} to ${this.#clock.now()}`);
        return;
      case "get":
        await this.#ask("get", this.#target(operation.target));
        return;
      case "list":
        return this.#list(operation);
      case "history":
        return this.#history(operation);
      case "nextDueInMs":
        await this.#ask("nextDueInMs", this.#someLanes(operation.lanes), hookNames);
        return;
      case "registerHooks":
        return this.#ask("registerHooks", operation.hooks);
      case "unregisterHook":
        await this.#ask("unregisterHook", operation.hook);
        return;
      case "claimHooks":
        return this.#claimHooks(operation.hooks);
      case "settleHooks":
        return this.#settleHooks(operation.back, operation.end);
      case "failedHooks":
        return this.#failedHooks();
      case "retryHooks":
        return this.#retryHooks();
      case "unknownLanes":
        await this.#unknownLanes(this.#someLanes(operation.lanes));
        return;
    }
  }

  // Instances -------------------------------------------------------------------------------------------------------

  async #create(batch: NewInstance[], eager: number | null): Promise<void> {
    const runner = eager === null ? undefined : pick(this.#runners, eager);
    const options = runner === undefined ? {} : { lease: { runner: runner.id } };
    const answers = await this.#ask("create", batch, options);
    this.#created.push(batch);
    this.#know(batch);
    for (const answer of answers) {
      this.#reached(`create → ${answer.kind}`);
      if (answer.kind !== "created" || !answer.leased || runner === undefined) continue;
      const claim = { runNumber: 1, claimNumber: 1, takenOver: false, takeovers: 0 };
      this.#hold({ ...claim, iid: answer.iid }, 0);
    }
  }

  #know(batch: readonly NewInstance[]): void {
    const known = new Set(this.#targets.map(({ workflow, id }) => JSON.stringify([workflow, id])));
    for (const { iid, workflow, id } of batch) {
      const key = JSON.stringify([workflow, id]);
      if (!known.has(key)) this.#targets.push({ iid, workflow, id });
      known.add(key);
    }
  }

  async #sendEvent(target: number, event: EventOf, eager: number | null): Promise<void> {
    const parked = this.#turns.filter(({ state }) => state === "parked");
    const turn = pick(parked, target);
    const to = (target % 2 === 0 ? this.#targetOf(turn) : undefined) ?? this.#target(target);
    const runner = eager === null ? undefined : pick(this.#runners, eager);
    // The number is not always the right one. Then nothing may be leased.
    const claimNumber = turn?.claimed.claimNumber ?? 1;
    const options = runner === undefined ? {} : { lease: { runner: runner.id, claimNumber } };
    const answer = await this.#ask("sendEvent", to, this.#event("e", event), options);
    this.#reached(`event → ${answer.kind}`);
    if (answer.kind === "accepted" && answer.claimed !== null) {
      this.#hold(answer.claimed, answer.claimed.eventCount);
      this.#reached("event leases");
    }
    const status = (await this.#model.get(to))?.status;
    if (answer.kind === "duplicate" && status !== undefined && isTerminal(status)) {
      this.#reached("event of an ended run again");
    }
    if (answer.kind === "accepted" && answer.woken) this.#reached("event wakes");
    if (answer.kind === "accepted" && answer.owner !== null) this.#reached("event for a turn");
  }

  async #transaction(work: readonly InTransaction[], end: "commit" | "rollback"): Promise<void> {
    const created: NewInstance[] = [];
    const steps = work.map((step) => {
      if (step.op === "create") {
        const items = step.items.map((item) => this.#newInstance(item));
        created.push(...items);
        return { op: step.op, items };
      }
      // Some events are for instances that the same transaction creates.
      const target = step.target % 3 === 0 ? pick(created, step.target) : undefined;
      const { workflow, id } = target ?? this.#target(step.target);
      return { op: step.op, target: { workflow, id }, event: this.#event("e", step.event) };
    });
    await this.#lockstep.ask(`transaction ${JSON.stringify(steps)} ${end}`, async (store, peer) => {
      const transaction = await peer.begin();
      const { tx } = transaction;
      const answers: unknown[] = [];
      for (const step of steps) {
        answers.push(
          step.op === "create"
            ? await store.create(step.items, { tx })
            : await store.sendEvent(step.target, step.event, { tx }),
        );
      }
      await transaction[end]();
      return answers;
    });
    if (end === "commit") this.#know(created);
    this.#reached(`transaction → ${end}`);
  }

  async #control(control: Control): Promise<void> {
    const { command, target, operationId } = control;
    const answer = await this.#ask("control", target, { command, operationId });
    this.#reached(`${command} → ${answer.kind}`);
    if (!this.#controls.includes(control)) this.#controls.push(control);
  }

  async #list(operation: Operation & { op: "list" }): Promise<void> {
    const { status, order, pageSize, pages } = operation;
    const workflow = pick(this.#workflows, operation.workflow) as string;
    const query = { workflow, order, ...(status === null ? {} : { status }) };
    await this.#read("list", query, pages, (store, from) =>
      store.list({ ...query, pageSize, ...from }),
    );
  }

  async #history(operation: Operation & { op: "history" }): Promise<void> {
    const { order, pageSize, pages, runNumber } = operation;
    const target = this.#target(operation.target);
    const current = (await this.#model.get(target))?.runNumber ?? 1;
    // Whether there is a history of a run that never was is not specified.
    const query = { order, ...(runNumber === null || runNumber > current ? {} : { runNumber }) };
    // A restart changes which run a query without a number means.
    const about = { ...query, target, current };
    await this.#read("history", about, pages, (store, from) =>
      store.history(target, { ...query, pageSize, ...from }),
    );
  }

  /** Reads some pages, from where an earlier read of the same query stopped, whatever happened since. */
  async #read<P extends { cursor?: string } | null>(
    verb: string,
    query: object,
    pages: number,
    read: (store: Store, from: { cursor?: string }) => Promise<P>,
  ): Promise<void> {
    const key = `${verb} ${JSON.stringify(query)}`;
    for (let n = 0; n < pages; n++) {
      const page = await this.#lockstep.ask(
        key,
        async (store, { cursors }) => {
          const cursor = cursors.get(key);
          const answer = await read(store, cursor === undefined ? {} : { cursor });
          if (answer?.cursor === undefined) cursors.delete(key);
          else cursors.set(key, answer.cursor);
          return answer;
        },
        (answer) => answer && { ...answer, cursor: answer.cursor !== undefined },
      );
      if (page?.cursor === undefined) return;
      this.#reached(`${verb} has another page`);
    }
  }

  // Runners ---------------------------------------------------------------------------------------------------------

  async #register(leaseMs: number): Promise<void> {
    this.#made += 1;
    const id = `${this.#made % 2 === 0 ? "Runner" : "runner"} ${this.#made} ${this.#name}`;
    this.#runners.push({ id, leaseUntil: this.#clock.now() + leaseMs });
    await this.#ask("register", id, leaseMs);
  }

  async #unknownLanes(known: readonly Lane[]): Promise<void> {
    const inOrder = (lanes: readonly Lane[]): Lane[] =>
      lanes.toSorted((a, b) => (canonical(a) < canonical(b) ? -1 : 1));
    const lanes = await this.#ask("unknownLanes", known, inOrder);
    if (lanes.length > 0) this.#reached("unknown lanes");
  }

  async #heartbeat(runner: Runner | undefined, leaseMs: number): Promise<void> {
    if (runner === undefined) return;
    const answer = await this.#ask("heartbeat", runner.id, leaseMs, (given) =>
      given.kind === "ok" ? { ...given, owned: given.owned.toSorted(byIid) } : given,
    );
    this.#reached(`heartbeat → ${answer.kind}`);
    if (answer.kind === "ok") runner.leaseUntil = this.#clock.now() + leaseMs;
  }

  async #declareDead(): Promise<void> {
    await this.#ask("declareDead", (ids) => ids.toSorted());
  }

  // Turns -----------------------------------------------------------------------------------------------------------

  async #claim(
    runner: Runner | undefined,
    wantedLanes: readonly Lane[],
    wanted: number,
    reservedForNew: number,
  ): Promise<void> {
    if (runner === undefined) return;
    // It is not specified which of the dead runners' runs a small limit takes, so the limit is raised to take
    // them all.
    const orphans = this.#model.orphansIn(wantedLanes);
    const enough = Math.max(wanted, orphans.length > 0 ? orphans.length + reservedForNew : 0);
    const request = { runner: runner.id, lanes: wantedLanes, limit: enough, reservedForNew };
    const answer = await this.#ask("claim", request, (given) => {
      if (given.kind === "dead") return given;
      const { claimed } = given;
      const first = claimed.filter(({ takenOver }) => takenOver).toSorted(byIid);
      return { ...given, claimed: [...first, ...claimed.filter((run) => !first.includes(run))] };
    });
    this.#reached(`claim → ${answer.kind}`);
    if (answer.kind === "dead") return;
    if (orphans.includes("waitingForPause")) this.#reached("claim pauses a dead runner's run");
    for (const claimed of answer.claimed) {
      this.#hold(claimed, claimed.eventCount);
      this.#reached(claimed.takenOver ? "takeover" : claimed.resuming ? "resumed" : "started");
      if (claimed.takeovers > 1) this.#reached("takeovers in a row");
    }
  }

  async #adopt(runner: Runner | undefined, targets: readonly number[]): Promise<void> {
    if (runner === undefined) return;
    const iids = unique(
      targets.map((n) => pick(this.#targets, n)?.iid ?? "nobody"),
      (iid) => iid,
    );
    const adopted = await this.#ask("adopt", runner.id, iids, (given) => given.toSorted(byIid));
    for (const claimed of adopted) {
      this.#hold(claimed, claimed.eventCount);
      this.#reached("adopted");
    }
  }

  /** Reopens mostly parked turns. The others must not be in the answer. */
  async #reopen(runner: Runner | undefined, numbers: readonly number[]): Promise<void> {
    if (runner === undefined) return;
    const parked = this.#turns.filter(({ state }) => state === "parked");
    const runs = numbers.flatMap((n) => {
      const turn = (n % 4 === 0 ? undefined : pick(parked, n)) ?? pick(this.#turns, n);
      if (turn === undefined) return [];
      const { iid, runNumber, claimNumber } = turn.claimed;
      return [{ iid, runNumber, claimNumber }];
    });
    const answer = await this.#ask("reopen", runner.id, runs, (given) => given.toSorted(byIid));
    for (const claimed of answer) {
      this.#hold(claimed, claimed.eventCount);
      this.#reached("reopened");
    }
  }

  #hold(claimed: Turn["claimed"], seenEvents: number): void {
    const { iid, claimNumber } = claimed;
    const isKnown = this.#turns.some(
      (turn) => turn.claimed.iid === iid && turn.claimed.claimNumber === claimNumber,
    );
    if (!isKnown) this.#turns.push({ claimed, sent: [], seenEvents, state: "leased" });
  }

  async #poll(numbers: readonly number[], less: number): Promise<void> {
    const turns = unique(
      numbers.flatMap((n) => pick(this.#turns, n) ?? []),
      iidOf,
    );
    const requests = turns.map(({ claimed: { iid, runNumber, claimNumber }, seenEvents }) => ({
      iid,
      runNumber,
      claimNumber,
      seenEvents: Math.max(0, seenEvents - less),
    }));
    const answers = await this.#ask("poll", requests);
    for (const [n, answer] of answers.entries()) {
      this.#reached(`poll → ${answer.kind}`);
      if (answer.kind === "ok") see(turns[n] as Turn, answer.events);
    }
  }

  async #commit(of: readonly PartOf[]): Promise<void> {
    if (this.#turns.every((turn) => turn.state !== "leased")) {
      // There is nothing to commit for, so this claims something first.
      await this.#claim(pick(this.#runners, of[0]?.turn ?? 0), this.#lanes, 3, 1);
    }
    const chosen = unique(
      of.flatMap((part) => this.#choose(part) ?? []),
      ({ turn }) => iidOf(turn),
    );
    for (const { turn, part } of chosen) if (!turn.sent.includes(part)) turn.sent.push(part);
    const answers = await this.#ask(
      "commit",
      chosen.map(({ part }) => part),
    );
    for (const [n, answer] of answers.entries()) this.#learn(chosen[n] as Chosen, answer);
    // It is not specified whether a resent delivery lies in the inbox twice, but it must not arrive twice.
    if (chosen.some(({ part, again }) => again && part.deliveries.length > 0)) {
      await this.#lockstep.ask("moveInbox until it is empty", async (store) => {
        while ((await store.moveInbox(ALL)) > 0);
      });
    }
  }

  #choose(of: PartOf): Chosen | undefined {
    if (of.kind === "new") {
      const turn = pick(
        this.#turns.filter(({ state }) => state === "leased"),
        of.turn,
      );
      return turn && { turn, part: this.#newPart(turn, of), again: false };
    }
    const turn = pick(this.#turns, of.turn);
    const last = turn?.sent.at(-1);
    if (turn === undefined || last === undefined) return undefined;
    // A runner sends a part again before it sends the next one, but a slow network may deliver it after that.
    return { turn, part: turn.sent.at(-1 - of.back) ?? last, again: true };
  }

  #newPart(turn: Turn, of: Extract<PartOf, { kind: "new" }>): Part {
    const { iid, runNumber, claimNumber, takenOver, takeovers } = turn.claimed;
    const seenEvents = Math.max(0, turn.seenEvents - of.unseen);
    return {
      iid,
      runNumber,
      claimNumber,
      partNumber: turn.sent.length + 1,
      seenEvents,
      steps: unique(of.steps, ({ ord }) => ord).map((step) => this.#step(step)),
      attempts: unique(of.attempts, ({ ord, n }) => `${ord} ${n}`).map(({ ord, n }) => ({
        ord,
        n,
        tookMs: 10 * n,
        error: n % 2 === 0 ? null : `"${n}"`,
      })),
      consumed: unique(of.consumed, ({ number }) => number % Math.max(1, seenEvents)).flatMap(
        ({ number, ord }) => (seenEvents === 0 ? [] : [{ number: 1 + (number % seenEvents), ord }]),
      ),
      spawns: of.spawns.map((item) => this.#newInstance(item)),
      deliveries: unique(
        of.deliveries.map(({ target, runNumber: to, event }) => {
          const { eventId, type, payload } = this.#event("d", { ...event, id: NEW_ID });
          const { iid: receiver = "nobody" } = pick(this.#targets, target) ?? {};
          return { eventId, iid: receiver, runNumber: to, kind: "child", type, payload };
        }),
        (delivery) => JSON.stringify([delivery.iid, delivery.runNumber, delivery.eventId]),
      ),
      ...(takenOver && turn.sent.length === 0 ? { takeovers } : {}),
      next: this.#next(of.next),
    };
  }

  #learn({ turn, part, again }: Chosen, answer: PartAnswer): void {
    const way = again ? `${part.next.kind} again` : part.next.kind;
    this.#reached(`${way} → ${answer.kind === "ok" ? answer.state : answer.kind}`);
    turn.state = answer.kind === "ok" ? answer.state : "lost";
    if (answer.kind !== "ok") return;
    see(turn, answer.events);
    for (const spawn of part.spawns) this.#know([spawn]);
  }

  // Hooks -----------------------------------------------------------------------------------------------------------

  async #claimHooks(hooks: readonly HookName[]): Promise<void> {
    const request = { hooks, limit: ALL, leaseMs: 20_000, maxAttempts: 3 };
    const rows = await this.#lockstep.ask(
      `claimHooks ${JSON.stringify(request)}`,
      async (store) => {
        const claimed = await store.claimHooks(request);
        this.#deliveries.set(store, [...(this.#deliveries.get(store) ?? []), claimed]);
        return claimed;
      },
      withoutIds,
    );
    for (const { hook, reason, attempts } of rows) {
      this.#reached(`${hook} ${reason}`);
      if (attempts > 1) this.#reached("another delivery");
    }
  }

  async #settleHooks(back: number, end: DeliveryEnd): Promise<void> {
    const failure = end && { ...end, error: `after ${this.#made}` };
    await this.#lockstep.ask(
      `settleHooks ${JSON.stringify(failure)} of ${back} claims back`,
      async (store) => {
        const rows = this.#deliveries.get(store)?.at(-1 - back) ?? [];
        await store.settleHooks(rows.map(({ id, claimNumber }) => ({ id, claimNumber, failure })));
        return rows.length;
      },
    );
  }

  async #failedHooks(): Promise<void> {
    const page = await this.#ask("failedHooks", { pageSize: ALL }, ({ items }) =>
      withoutIds(items),
    );
    if (page.items.length > 0) this.#reached("failed deliveries");
  }

  async #retryHooks(): Promise<void> {
    await this.#lockstep.ask("retryHook of all that failed", async (store) => {
      const { items } = await store.failedHooks({ pageSize: ALL });
      for (const { id } of items) await store.retryHook(id);
      return items.length;
    });
  }

  // The end ---------------------------------------------------------------------------------------------------------

  /** Reads everything that can be read. */
  async #lookAtAll(): Promise<void> {
    for (const workflow of this.#workflows) {
      await this.#ask("list", { workflow, order: "oldest", pageSize: ALL });
    }
    const histories = this.#targets.map(async ({ workflow, id }) => {
      const target = { workflow, id };
      const runs = (await this.#model.get(target))?.runNumber ?? 1;
      for (let runNumber = 1; runNumber <= runs; runNumber++) {
        await this.#ask("history", target, { runNumber, order: "oldest", pageSize: ALL });
      }
    });
    await Promise.all(histories);
    for (const lane of this.#lanes) {
      await this.#ask("nextDueInMs", [lane]);
      await this.#unknownLanes([lane]);
    }
    for (const hook of hookNames) {
      await this.#ask("nextDueInMs", [], [hook]);
      await this.#ask("unknownHooks", [hook], 1_000);
    }
    await this.#failedHooks();
    for (const runner of this.#runners) await this.#heartbeat(runner, 60_000);
  }

  /** Brings every live run into a runner's hands, so that what its ticket holds comes to light. */
  async #wakeAll(): Promise<void> {
    while ((await this.#ask("moveInbox", 3)) > 0);
    this.#clock.advance(24 * 3_600_000);
    await this.#declareDead();
    await this.#register(60_000);
    await this.#claim(this.#runners.at(-1), this.#lanes, ALL, 0);
    for (const { workflow, id } of this.#targets) {
      const target = { workflow, id };
      await this.#ask("control", target, { command: "resume" });
      // The event's time shows what the run's owner has seen last.
      await this.#ask("sendEvent", target, { eventId: "last", type: "paid", payload: null });
    }
    await this.#claim(this.#runners.at(-1), this.#lanes, ALL, 0);
    const runs = this.#turns.map(({ claimed: { iid, runNumber } }) => ({
      iid,
      runNumber,
      historyBytes: 0,
      takenOver: false,
    }));
    await this.#ask(
      "load",
      unique(runs.toReversed(), ({ iid }) => iid),
    );
  }

  // Asking ----------------------------------------------------------------------------------------------------------

  /** Calls a verb of the store with its arguments. A function at the end removes what is not specified. */
  #ask<V extends Asked>(verb: V, ...args: [...Parameters<Store[V]>]): Promise<Answer<V>>;
  #ask<V extends Asked>(
    verb: V,
    ...args: [...Parameters<Store[V]>, (answer: Answer<V>) => unknown]
  ): Promise<Answer<V>>;
  #ask<V extends Asked>(verb: V, ...args: unknown[]): Promise<Answer<V>> {
    const last = args.at(-1);
    const comparable =
      typeof last === "function" ? (last as (answer: unknown) => unknown) : undefined;
    const given = comparable === undefined ? args : args.slice(0, -1);
    const call = (store: Store): Promise<unknown> =>
      (store[verb] as (...of: unknown[]) => Promise<unknown>)(...given);
    const question = `${verb} ${given.map((arg) => JSON.stringify(arg)).join(" ")}`;
    return this.#lockstep.ask(question, call, comparable) as Promise<Answer<V>>;
  }

  // From the numbers of an operation to what a store takes ----------------------------------------------------------

  #newInstance({ lane: n, id, params, origin, iid }: Item): NewInstance {
    this.#made += 1;
    const { queue, handler } = pick(this.#lanes, n) as Lane;
    return {
      iid: `${iid} ${this.#made} ${this.#name}`,
      workflow: handler,
      id,
      queue,
      params,
      ...(origin === null ? {} : { origin }),
    };
  }

  /**
   * Picks a target: often one that was claimed not long ago, and now and then one that nobody has created.
   */
  #target(n: number): Target {
    if (n % 20 === 0) return this.#nobody;
    const recent = n % 2 === 0 ? this.#targetOf(this.#turns.at(-1 - (n % 6))) : undefined;
    const { workflow, id } = recent ?? pick(this.#targets, n) ?? this.#nobody;
    return { workflow, id };
  }

  #targetOf(turn: Turn | undefined): Target | undefined {
    const known = this.#targets.find(({ iid }) => iid === turn?.claimed.iid);
    return known && { workflow: known.workflow, id: known.id };
  }

  #someLanes(numbers: readonly number[]): Lane[] {
    return unique(
      numbers.map((n) => pick(this.#lanes, n) as Lane),
      (lane) => lane,
    );
  }

  #event(way: string, { id, type, payload }: EventOf): NewEvent {
    this.#made += 1;
    return { eventId: id === NEW_ID ? `${way} ${this.#made}` : `${way} ${id}`, type, payload };
  }

  #step({ ord, wake, status, ...given }: StepOf): StepWrite {
    const isWait = status === "waiting";
    return {
      ...given,
      ord,
      status,
      name: `step ${ord}`,
      count: 1,
      type: isWait ? "sleep" : "do",
      calledAfter: ord - 1,
      attempts: ord < retriedFrom ? 1 : 3,
      wake: this.#wake(wake),
      waitKey: isWait ? "paid" : null,
    };
  }

  #next(next: NextOf): Next {
    switch (next.kind) {
      case "park": {
        const { types, wake, historyBytes } = next;
        return { kind: "park", waitMask: waitMaskOf(types), wake: this.#wake(wake), historyBytes };
      }
      default:
        return next;
    }
  }

  #wake(wake: WakeOf | null): Wake | null {
    return wake !== null && "at" in wake ? { at: this.#clock.now() + wake.at } : wake;
  }
}

type Chosen = { readonly turn: Turn; readonly part: Part; readonly again: boolean };
type Asked = Exclude<StoreVerb, "migrate" | "close" | "now">;
type Answer<V extends Asked> = Awaited<ReturnType<Store[V]>>;

function pick<T>(items: readonly T[], n: number): T | undefined {
  return items[n % Math.max(1, items.length)];
}

function unique<T>(items: readonly T[], key: (item: T) => unknown): T[] {
  return [...new Map(items.toReversed().map((item) => [key(item), item])).values()].toReversed();
}

/** Leaves out the ids of rows, which are the store's own. */
function withoutIds(rows: readonly { readonly id: string }[]): string[] {
  return rows.map((row) => canonical({ ...row, id: null })).toSorted();
}

function iidOf(turn: Turn): string {
  return turn.claimed.iid;
}

function byIid(a: { readonly iid: string }, b: { readonly iid: string }): number {
  return a.iid < b.iid ? -1 : 1;
}

function see(turn: Turn, events: readonly EventRecord[]): void {
  turn.seenEvents = Math.max(turn.seenEvents, events.at(-1)?.number ?? 0);
}

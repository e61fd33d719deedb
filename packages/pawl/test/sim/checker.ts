import { decodeError } from "../../src/model/error-codec.js";
import { transitions } from "../../src/model/transitions.js";
import type { Ledger } from "./ledger.js";

/** Rows as they are in the database, whoever wrote them. */
export type InstanceRow = {
  readonly iid: string;
  readonly id: string;
  readonly run_no: number;
  readonly status: string;
  readonly params: string | null;
  readonly output: string | null;
  readonly error: string | null;
};
export type TicketRow = {
  readonly tid: string;
  readonly run_no: number;
  readonly state: string;
  readonly owner: string | null;
  readonly due_at: number | null;
  readonly wait_mask: number;
  readonly claim_no: number;
  readonly pause_requested: number;
};
export type StepRow = {
  readonly iid: string;
  readonly run_no: number;
  readonly ord: number;
  readonly name: string;
  readonly type: string;
  readonly status: string;
  readonly seq: number | null;
  readonly attempts: number;
  readonly claim_no: number;
  readonly started_at: number;
  readonly ended_at: number | null;
  readonly wake_at: number | null;
  readonly wait_key: string | null;
  readonly result: string | null;
  readonly error: string | null;
};
export type EventRow = {
  readonly iid: string;
  readonly run_no: number;
  readonly number: number;
  readonly type: string;
  readonly created_at: number;
  readonly consumed_by: number | null;
};
export type RunnerRow = { readonly id: string; readonly dead: number };

export type Snapshot = {
  readonly instances: readonly InstanceRow[];
  readonly tickets: readonly TicketRow[];
  readonly steps: readonly StepRow[];
  readonly events: readonly EventRow[];
  readonly runners: readonly RunnerRow[];
};

export class Violation extends Error {}

export function must(condition: boolean, message: () => string): asserts condition {
  if (!condition) throw new Violation(message());
}

/** Watches committed states one after the other, and judges the whole at the end. */
export class Checker {
  readonly #steps = new Map<string, StepRow>();
  /** The run numbers in the last state. A run that was an old one then must not have changed since. */
  #current: ReadonlyMap<string, number> = new Map();
  readonly #consumers = new Map<string, number>();
  readonly #instances = new Map<string, InstanceRow>();
  readonly #claims = new Map<string, number>();
  readonly #iids = new Map<string, string>();
  readonly #tickets = new Map<string, TicketRow>();
  readonly #named = new Map<string, StepRow>();
  readonly #left = new Map<string, number>();
  /** Runs whose code did not call again what it had called before. Their races may end in another way. */
  readonly #diverged = new Set<string>();
  readonly #loose = new Set<string>();
  readonly #behind = new Map<string, ReadonlySet<string>>();
  readonly #now: () => number;

  constructor(now: () => number) {
    this.#now = now;
  }

  // The last committed state

  idOf(iid: string): string | undefined {
    return this.#instances.get(iid)?.id;
  }

  ticketOf(id: string): TicketRow | undefined {
    return this.#tickets.get(this.#iids.get(id) ?? "");
  }

  stepOf(id: string, runNumber: number, name: string): StepRow | undefined {
    return this.#named.get(`${this.#iids.get(id)}/${runNumber}/${name}`);
  }

  /** Returns the names of a run's steps that have a settlement. */
  settledOf(id: string, runNumber: number): Set<string> {
    const iid = this.#iids.get(id);
    const settled = new Set<string>();
    for (const row of this.#steps.values()) {
      if (row.iid === iid && row.run_no === runNumber && row.seq !== null) settled.add(row.name);
    }
    return settled;
  }

  /** Returns when the run ended or was replaced, or null while it is the current one. */
  leftAt(id: string, runNumber: number): number | null {
    return this.#left.get(`${this.#iids.get(id)}/${runNumber}`) ?? null;
  }

  /**
   * Returns the runs that the store paused in the place of their dead owners, between the last state and this
   * one.
   */
  pausedForTheDead({ tickets }: Snapshot): string[] {
    return tickets.flatMap(({ tid, state, claim_no }) => {
      const before = this.#tickets.get(tid);
      const isTaken = before?.state === "leased" && claim_no > before.claim_no;
      return isTaken && state === "paused" ? tid : [];
    });
  }

  get hasLiveRuns(): boolean {
    return this.#tickets.size > 0;
  }

  /** Names the branches of an instance's program that something other than a step may decide. */
  loose(id: string, branches: readonly string[]): void {
    for (const branch of branches) this.#loose.add(`${id} ${branch}`);
  }

  /** Names the steps of an instance's program that the code calls after it has awaited something that is no step. */
  behind(id: string, steps: ReadonlySet<string>): void {
    this.#behind.set(id, steps);
  }

  isBehind(id: string, step: string): boolean {
    return this.#behind.get(id)?.has(step) === true;
  }

  diverged(id: string): void {
    this.#diverged.add(id);
  }

  hasDiverged(id: string): boolean {
    return this.#diverged.has(id);
  }

  /** Checks every committed state. */
  state(snapshot: Snapshot): void {
    this.#checkWakeSources(snapshot);
    this.#checkInstances(snapshot);
    this.#checkSteps(snapshot);
    this.#checkEvents(snapshot);
  }

  #checkWakeSources({ instances, tickets, runners }: Snapshot): void {
    this.#tickets.clear();
    for (const ticket of tickets) this.#tickets.set(ticket.tid, ticket);
    const byTid = this.#tickets;
    const known = new Set(runners.map(({ id }) => id));
    for (const { iid, id, status, run_no } of instances) {
      const ticket = byTid.get(iid);
      if (status !== "live") {
        must(ticket === undefined, () => `${id} is ${status} and still has a ticket`);
        continue;
      }
      must(ticket !== undefined, () => `${id} is live and has no ticket: nothing will wake it`);
      must(ticket.run_no === run_no, () => `the ticket of ${id} is of run ${ticket.run_no}`);
      const willWake =
        ticket.state === "paused" ||
        (ticket.state === "leased" && ticket.owner !== null && known.has(ticket.owner)) ||
        ((ticket.state === "waiting" || ticket.state === "queued") &&
          (ticket.due_at !== null || ticket.wait_mask !== 0));
      must(willWake, () => `nothing will wake ${id}: ${JSON.stringify(ticket)}`);
      const last = this.#claims.get(iid) ?? 0;
      must(ticket.claim_no >= last, () => `the claim number of ${id} went back`);
      this.#claims.set(iid, ticket.claim_no);
    }
  }

  #checkInstances({ instances }: Snapshot): void {
    for (const row of instances) {
      const before = this.#instances.get(row.iid);
      this.#instances.set(row.iid, row);
      this.#iids.set(row.id, row.iid);
      this.#noteLeft(row);
      if (before === undefined || before.status === row.status) continue;
      if (before.status !== "live") {
        must(row.run_no > before.run_no, () => `${row.id} left ${before.status} without a restart`);
      }
      const ended = row.status as "complete" | "errored" | "terminated" | "live";
      must(ended === "live" || ended in transitions, () => `${row.id} has status ${row.status}`);
    }
  }

  #noteLeft({ iid, run_no, status }: InstanceRow): void {
    const key = `${iid}/${status === "live" ? run_no - 1 : run_no}`;
    if (!this.#left.has(key)) this.#left.set(key, this.#now());
  }

  #checkSteps({ steps, instances }: Snapshot): void {
    const current = this.#current;
    this.#current = new Map(instances.map(({ iid, run_no }) => [iid, run_no]));
    const names = new Set<string>();
    for (const row of steps) {
      const key = `${row.iid}/${row.run_no}/${row.ord}`;
      const name = `${row.iid}/${row.run_no}/${row.name}`;
      must(!names.has(name), () => `two rows for step ${name}`);
      names.add(name);
      this.#named.set(name, row);
      const before = this.#steps.get(key);
      this.#steps.set(key, row);
      if (before === undefined) continue;
      if (before.seq !== null || (current.get(row.iid) ?? 0) > row.run_no) {
        const same =
          before.seq === row.seq &&
          before.status === row.status &&
          before.attempts === row.attempts &&
          before.result === row.result &&
          before.error === row.error;
        must(same, () => `a settled or old step changed: ${JSON.stringify([before, row])}`);
      }
      must(before.name === row.name, () => `step ${key} changed its name`);
    }
  }

  #checkEvents({ events }: Snapshot): void {
    for (const row of events) {
      const key = `${row.iid}/${row.run_no}/${row.number}`;
      const before = this.#consumers.get(key);
      if (row.consumed_by === null) {
        must(before === undefined, () => `event ${key} was consumed, and is not any more`);
        continue;
      }
      must(before === undefined || before === row.consumed_by, () => `event ${key} consumed twice`);
      this.#consumers.set(key, row.consumed_by);
    }
  }

  /** Checks that a body that is about to start may do so. */
  entered(id: string, runNumber: number, step: string): void {
    const seq = this.stepOf(id, runNumber, step)?.seq ?? null;
    must(seq === null, () => `the body of ${step} starts, and the step has ended`);
  }

  /** Checks the whole when all is over. */
  end(snapshot: Snapshot, ledger: Ledger): void {
    const runs = new Map(snapshot.instances.map((row) => [row.iid, row]));
    for (const row of snapshot.steps) {
      const id = runs.get(row.iid)?.id ?? "?";
      checkExecution(ledger, row, `${id}#${row.run_no}`);
      this.#checkTimes(row, snapshot.events);
    }
    checkChain(snapshot.steps);
    this.#checkOrder(snapshot);
    this.#checkBranches(ledger);
    this.#checkChildren(snapshot);
    checkAttempts(ledger);
  }

  #checkTimes(row: StepRow, events: readonly EventRow[]): void {
    const what = `${row.type} ${row.name}`;
    if (row.ended_at === null || row.wake_at === null) return;
    if (row.type === "sleep") {
      must(row.ended_at >= row.wake_at, () => `${what} ended early: ${JSON.stringify(row)}`);
    }
    if (row.type !== "waitForEvent") return;
    const consumed = events.filter(
      (event) =>
        event.iid === row.iid && event.run_no === row.run_no && event.consumed_by === row.ord,
    );
    if (row.status === "completed") {
      must(consumed.length === 1, () => `${what} took ${consumed.length} events`);
      const at = consumed[0]?.created_at ?? 0;
      must(at <= (row.wake_at ?? 0), () => `${what} took an event after its deadline`);
      return;
    }
    must(consumed.length === 0, () => `${what} timed out and has an event`);
    must(row.ended_at >= row.wake_at, () => `${what} timed out early`);
    const name = (decodeError(row.error ?? "null") as Error).name;
    if (name !== "WaitTimeoutError") return;
    const missed = events.find(
      (event) =>
        event.iid === row.iid &&
        event.run_no === row.run_no &&
        event.type === row.wait_key &&
        event.consumed_by === null &&
        event.created_at <= (row.wake_at ?? 0),
    );
    must(missed === undefined, () => `${what} timed out beside ${JSON.stringify(missed)}`);
  }

  /** Checks that events of a type go to waiters in the order of both. */
  #checkOrder({ events, steps }: Snapshot): void {
    const seqOf = new Map(steps.map((row) => [`${row.iid}/${row.run_no}/${row.ord}`, row.seq]));
    const lastSeq = new Map<string, number>();
    for (const event of events.toSorted((a, b) => a.number - b.number)) {
      if (event.consumed_by === null) continue;
      const lane = `${event.iid}/${event.run_no}/${event.type}`;
      const seq = seqOf.get(`${event.iid}/${event.run_no}/${event.consumed_by}`) ?? 0;
      must(seq > (lastSeq.get(lane) ?? 0), () => `events of ${lane} were consumed out of order`);
      lastSeq.set(lane, seq);
    }
  }

  /** Checks that a race stays decided: bodies that follow from one end of it never follow from another. */
  #checkBranches({ entries }: Ledger): void {
    const taken = new Map<string, string>();
    for (const { run, step } of entries) {
      const [branch, winner] = step.split(":");
      const [id = ""] = run.split("#");
      const isLoose = this.hasDiverged(id) || this.#loose.has(`${id} ${branch}`);
      if (winner === undefined || isLoose) continue;
      const key = `${run} ${branch}`;
      const before = taken.get(key) ?? winner;
      must(before === winner, () => `the race of ${key} was won by ${before} and by ${winner}`);
      taken.set(key, winner);
    }
  }

  /** Checks that a step that is tried again has the child that it had. */
  #checkChildren({ instances }: Snapshot): void {
    const children = new Map<string, string>();
    for (const { id, params } of instances) {
      const { of } = JSON.parse(params ?? "{}") as { of?: string };
      if (of === undefined) continue;
      must(!children.has(of), () => `${of} has two children: ${children.get(of)} and ${id}`);
      children.set(of, id);
    }
  }
}

/** Checks that a stored result is what that very attempt returned. */
function checkExecution(ledger: Ledger, row: StepRow, run: string): void {
  if (row.type !== "do" || row.status !== "completed") return;
  const entries = ledger.of(run, row.name);
  const { token } = JSON.parse(row.result ?? "null") as { token: string };
  const source = entries.find((entry) => entry.token === token);
  must(source !== undefined, () => `the result of ${run} ${row.name} was never returned`);
  must(
    source.attempt === row.attempts,
    () => `${run} ${row.name}: the result of attempt ${source.attempt} as ${row.attempts}`,
  );
}

export type AttemptRow = Pick<StepRow, "iid" | "run_no" | "ord"> & { readonly n: number };

/** Checks that history tells of every attempt that counted, including those whose runners died. */
export function checkRecords({ steps }: Snapshot, attempts: readonly AttemptRow[]): void {
  const recorded = new Set(
    attempts.map(({ iid, run_no, ord, n }) => `${iid}/${run_no}/${ord}/${n}`),
  );
  for (const { iid, run_no, ord, name, type, attempts: counted } of steps) {
    // The row of a step that needed one attempt says it all.
    if (type !== "do" || counted < 2) continue;
    for (let n = 1; n <= counted; n++) {
      const key = `${iid}/${run_no}/${ord}/${n}`;
      must(recorded.has(key), () => `nothing is recorded of attempt ${n} of ${counted} of ${name}`);
    }
  }
}

function checkAttempts({ entries }: Ledger): void {
  const counted = new Map<string, number>();
  for (const { run, step, maxAttempts, wasGivenBack, wasUnknowable } of entries) {
    if (wasGivenBack || wasUnknowable) continue;
    const key = `${run} ${step}`;
    const count = (counted.get(key) ?? 0) + 1;
    counted.set(key, count);
    must(count <= maxAttempts, () => `${key} was entered ${count} times, allowed ${maxAttempts}`);
  }
}

/**
 * Checks that a later settlement was written under the same claim or a newer one: an old owner writes nothing
 * more.
 */
function checkChain(steps: readonly StepRow[]): void {
  const settled = steps.filter(({ seq }) => seq !== null);
  const last = new Map<string, StepRow>();
  for (const row of settled.toSorted((a, b) => (a.seq ?? 0) - (b.seq ?? 0))) {
    const run = `${row.iid}/${row.run_no}`;
    const before = last.get(run);
    must(
      before === undefined || (before.seq !== row.seq && before.claim_no <= row.claim_no),
      () => `settled out of turn: ${JSON.stringify([before, row])}`,
    );
    last.set(run, row);
  }
}

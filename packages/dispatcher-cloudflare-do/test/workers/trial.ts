import { Checker, type Snapshot } from "../../../pawl/test/sim/checker.js";
import { Ledger } from "../../../pawl/test/sim/ledger.js";

/** A fault that an object meets once, at a point of its life. */
export type Fault =
  /** It is evicted instead of a call to its storage, or on the way into or out of a body. */
  | "evicted"
  /** It is evicted when what the call wrote is durable. */
  | "evicted after"
  /** The call to its storage fails. */
  | "storage fails"
  /** Its alarm comes, twice, beside what it is doing. */
  | "alarmed twice";

/** Returns whether a point can meet a fault. A read makes nothing durable, and bodies are not stored. */
export function canMeet(point: string, fault: Fault): boolean {
  if (fault === "evicted" || fault === "alarmed twice") return true;
  const isBody = /^(enter|leave) /.test(point);
  return !isBody && (fault === "storage fails" || !/^(SELECT|WITH|getAlarm)/.test(point));
}

export type Strike = { readonly fault: Fault; readonly at: number };

/** The life of one object: what it met, what its bodies did and what it wrote. It outlives the object. */
export class Trial {
  readonly ledger = new Ledger();
  readonly checker = new Checker(() => Date.now());
  /** Every call to storage, entry and exit of a body, in order. */
  readonly points: string[] = [];
  /** The errors that alarm handlers threw. Workerd drops an alarm after a few of these. */
  readonly thrown: unknown[] = [];
  readonly #strike: Strike | null;
  #isOn = false;
  #failure: Error | null = null;
  end: Snapshot | null = null;
  /** The alarm of the object as it is now. */
  alarm: () => Promise<void> = async () => {};

  constructor(strike: Strike | null) {
    this.#strike = strike;
  }

  /** Counts points from here on. */
  begin(): void {
    this.#isOn = true;
  }

  guard(check: () => void): void {
    try {
      check();
    } catch (error) {
      this.#failure ??= error as Error;
    }
  }

  #meets(point: string): Fault | null {
    if (!this.#isOn) return null;
    const n = this.points.push(point) - 1;
    return this.#strike?.at === n ? this.#strike.fault : null;
  }

  /** Passes a point at which a body is entered or left. */
  pass(point: string, ctx: DurableObjectState): void {
    const fault = this.#meets(point);
    if (fault === "alarmed twice") this.#alarmTwice();
    else if (fault !== null) evict(ctx);
  }

  #alarmTwice(): void {
    for (let n = 0; n < 2; n++) this.alarm().catch(() => {});
  }

  call<T>(point: string, ctx: DurableObjectState, call: () => T): T {
    switch (this.#meets(point)) {
      case "evicted":
        return evict(ctx);
      case "storage fails":
        throw new Error("internal error; reference = 0");
      case "evicted after": {
        const answer = call();
        void ctx.storage.sync().then(() => evict(ctx));
        return answer;
      }
      case "alarmed twice": {
        const answer = call();
        this.#alarmTwice();
        return answer;
      }
      case null:
        return call();
    }
  }

  /** Checks a state that has become durable. */
  wrote(snapshot: Snapshot): void {
    this.guard(() => this.checker.state(snapshot));
    const { instances } = snapshot;
    const isOver = instances.length > 0 && instances.every(({ status }) => status !== "live");
    this.end = isOver ? snapshot : null;
  }

  /** Returns what is wrong with the trial, if anything is. */
  verdict(): string | null {
    const { end } = this;
    if (end === null) return "it has not ended";
    if (this.thrown.length > 0) return `alarm() threw ${this.thrown.map(String).join(", ")}`;
    this.guard(() => this.checker.end(end, this.ledger));
    return this.#failure?.message ?? null;
  }
}

function evict(ctx: DurableObjectState): never {
  ctx.abort("evicted");
  throw new Error("evicted");
}

/** Sends all that storage does through the trial, transactions as a whole. */
export function onTrial(ctx: DurableObjectState, trial: Trial | undefined): DurableObjectState {
  if (trial === undefined) return ctx;
  const { storage } = ctx;
  const { sql } = storage;
  const transactionSync = storage.transactionSync.bind(storage);
  let isInside = false;
  const call = <T>(point: string, isWrite: boolean, run: () => T): T => {
    if (isInside) return run();
    const answer = trial.call(point, ctx, run);
    if (isWrite) noteWrite(storage, sql, trial);
    return answer;
  };
  Object.defineProperties(storage, {
    sql: {
      value: {
        exec: (query: string, ...params: unknown[]) =>
          call(firstWords(query), !/^\s*(SELECT|WITH)\b/.test(query), () =>
            sql.exec(query, ...params),
          ),
      },
    },
    transactionSync: {
      value: <T>(work: () => T): T =>
        call("transaction", true, () => {
          isInside = true;
          try {
            return transactionSync(work);
          } finally {
            isInside = false;
          }
        }),
    },
  });
  for (const name of ["getAlarm", "setAlarm", "deleteAlarm"] as const) {
    const method = storage[name].bind(storage) as (...args: unknown[]) => unknown;
    const value = async (...args: unknown[]): Promise<unknown> =>
      call(name, false, () => method(...args));
    Object.defineProperty(storage, name, { value });
  }
  return ctx;
}

/** Notes the present state once it is durable, because an eviction before that takes it back. */
function noteWrite(storage: DurableObjectStorage, sql: SqlStorage, trial: Trial): void {
  const all = <Row>(query: string): Row[] => sql.exec(query).toArray() as Row[];
  const [{ tables }] = all<{ tables: number }>(
    "SELECT COUNT(*) AS tables FROM sqlite_master WHERE name IN ('pawl_runner', 'pawl_event')",
  ) as [{ tables: number }];
  if (tables < 2) return;
  const snapshot: Snapshot = {
    instances: all("SELECT iid, id, run_no, status, params, output, error FROM pawl_instance"),
    tickets: all(
      "SELECT tid, run_no, state, owner, due_at, wait_mask, claim_no, pause_requested FROM pawl_ticket",
    ),
    steps: all(
      `SELECT iid, run_no, ord, name, type, status, seq, attempts, claim_no, started_at, ended_at, wake_at, wait_key,
       result, error FROM pawl_step ORDER BY iid, run_no, ord`,
    ),
    events: all("SELECT iid, run_no, number, type, created_at, consumed_by FROM pawl_event"),
    runners: all("SELECT id, dead FROM pawl_runner"),
  };
  void storage.sync().then(() => trial.wrote(snapshot));
}

function firstWords(query: string): string {
  return query.trim().split(/\s+/).slice(0, 3).join(" ");
}

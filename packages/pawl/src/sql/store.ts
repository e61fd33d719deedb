import { WorkflowError } from "../model/errors.js";
import { idMaker } from "../model/ids.js";
import type { Clock, Runtime } from "../model/seams.js";
import type { HintChannel } from "../store/hints.js";
import { NotMigratedError } from "../store/errors.js";
import type { InstanceRecord, Target } from "../store/records.js";
import type { MigrationPlan, Part, PartAnswer, Store } from "../store/store.js";
import { ClaimScanner } from "./claim-scanner.js";
import { createsTogether } from "./creates.js";
import type { Dialect } from "./dialect.js";
import type { Driver, ConnectionClass } from "./driver.js";
import { getsTogether } from "./gets.js";
import { migrateScript, migrationPlan, recorded } from "./migrate.js";
import { Raced, Sql, type Verb } from "./sql.js";
import { sqlVerbs } from "./verbs/index.js";

const FIRST_BACKOFF_MS = 10;
const MAX_BACKOFF_MS = 1_000;
/** About six seconds of backoff in all: longer than a restart of a healthy server, shorter than a request. */
const MAX_TRIES = 13;
/** Where each try is slow to fail, fewer of them. */
const MAX_TRYING_MS = 20_000;
export type SqlStoreOptions<Tx> = {
  readonly dialect: Dialect;
  readonly driver: Driver<Tx>;
  readonly runtime: Runtime;
  /** Between processes, where the database can carry them. */
  readonly hints?: HintChannel & { close(): Promise<void> };
  /** Stands in for the database's time, in tests. */
  readonly clock?: Clock | undefined;
};

function halves(parts: readonly Part[]): Part[][] {
  const half = Math.ceil(parts.length / 2);
  return [parts.slice(0, half), parts.slice(half)];
}

/** The store on any SQL database: verbs, and what to do when the database says no. */
export function sqlStore<Tx>(options: SqlStoreOptions<Tx>): Store<Tx> {
  const { dialect, driver, runtime } = options;
  const sql = new Sql(dialect, options.clock);
  const newId = idMaker(runtime);
  const verbs = sqlVerbs(sql, newId);

  /** Runs a verb, again and again while the database is busy or away. Every verb may be sent twice. */
  async function run<Args extends readonly unknown[], T>(
    lane: ConnectionClass,
    verb: Verb<Args, T>,
    ...args: Args
  ): Promise<T> {
    const since = runtime.clock.now();
    for (let tries = 1; ; tries++) {
      try {
        const { transaction, rehearsal } = verb;
        return await driver.run(lane, transaction, () => verb.script(...args), rehearsal);
      } catch (error) {
        if (!mayRetry(error, verb)) throw explain(error);
        if (tries === MAX_TRIES || runtime.clock.now() - since > MAX_TRYING_MS) {
          throw new WorkflowError("STORE_UNAVAILABLE", "the database is busy or away", {
            cause: error,
          });
        }
      }
      const backoff = Math.min(MAX_BACKOFF_MS, FIRST_BACKOFF_MS * 2 ** (tries - 1));
      await runtime.scheduler.sleep(backoff * (0.5 + runtime.random.next() / 2));
    }
  }

  async function runWithin<Args extends readonly unknown[], T>(
    tx: Tx,
    verb: Verb<Args, T>,
    ...args: Args
  ): Promise<T> {
    try {
      return await driver.within(tx, () => verb.script(...args));
    } catch (error) {
      throw explain(error);
    }
  }

  function mayRetry(error: unknown, verb: Pick<Verb<never, unknown>, "answersLocked">): boolean {
    if (error instanceof Raced) return true;
    switch (dialect.classify(error)) {
      case "transient":
      case "disconnected":
      // A unique key that a script had found free was taken meanwhile: it will see that.
      case "duplicate":
        return true;
      case "locked":
        return verb.answersLocked !== true;
      default:
        return false;
    }
  }

  function explain(error: unknown): unknown {
    return dialect.classify(error) === "unmigrated"
      ? new NotMigratedError({ cause: error })
      : error;
  }

  /** One write for all, unless the database refuses: then the parts that it refuses stand alone. */
  async function commit(parts: readonly Part[]): Promise<PartAnswer[]> {
    try {
      return await run("engine", verbs.commit, parts);
    } catch (error) {
      switch (dialect.classify(error)) {
        case "data":
          if (parts.length === 1) {
            return [{ kind: "bad", message: "the database refuses this data" }];
          }
          return commitApart(halves(parts), parts);
        // As a rule the lock is on the id of a run that a part spawns, in a user's open transaction.
        case "locked": {
          if (parts.length === 1) return [{ kind: "busy" }];
          const spawning = parts.filter((part) => part.spawns.length > 0);
          if (spawning.length === 0) return commitApart(halves(parts), parts);
          const others = parts.filter((part) => part.spawns.length === 0);
          return commitApart([others, ...spawning.map((part) => [part])], parts);
        }
        default:
          throw error;
      }
    }
  }

  async function commitApart(batches: Part[][], order: readonly Part[]): Promise<PartAnswer[]> {
    const answers = new Map<string, PartAnswer>();
    for (const batch of batches.filter(({ length }) => length > 0)) {
      for (const [n, answer] of (await commit(batch)).entries()) {
        answers.set((batch[n] as Part).iid, answer);
      }
    }
    return order.map(({ iid }) => answers.get(iid) as PartAnswer);
  }

  const claims = new ClaimScanner(
    (verb, ...args) => run("engine", verb, ...args),
    verbs,
    runtime.clock,
    // A test's clock may stand still; nothing becomes visible late by it.
    dialect.keepsDeadEntries && options.clock === undefined,
  );

  const create = createsTogether(runtime, {
    together: (...request) => run("request", verbs.createTogether, ...request),
    alone: (...request) => run("request", verbs.create, ...request),
    causeOf: (error) => {
      if (error instanceof WorkflowError) return "store";
      return dialect.classify(error) === "locked" ? "lock" : "request";
    },
  });

  const getAlone = (target: Target): Promise<InstanceRecord | null> =>
    run("request", verbs.get, target);
  const get = dialect.joinsRowSets
    ? getsTogether(runtime, {
        together: (targets) => run("request", verbs.getMany, targets),
        alone: getAlone,
        isOfOne: (error) => dialect.classify(error) === "data",
      })
    : getAlone;

  async function planMigration(): Promise<MigrationPlan> {
    const look = run("request", { transaction: false, script: () => recorded(sql) });
    const found = await look.catch((error: unknown) => {
      if (error instanceof NotMigratedError) return null;
      throw error;
    });
    const { statements, ...versions } = migrationPlan(dialect, found);
    if (statements.length === 0 || !dialect.ddlInTransaction) return { ...versions, statements };
    return { ...versions, statements: ["BEGIN", ...statements, "COMMIT"] };
  }

  return {
    ...(options.hints === undefined ? {} : { hints: options.hints }),
    isRemote: dialect.isRemote,
    migrate: () =>
      run("request", { transaction: dialect.ddlInTransaction, script: () => migrateScript(sql) }),
    planMigration,
    close: async () => {
      await options.hints?.close();
      await driver.close();
    },
    now: () => run("request", verbs.now),

    create: async (instances, { tx, hooked = false, lease } = {}) => {
      if (instances.length === 0) return [];
      return tx === undefined
        ? create(instances, lease?.runner ?? null, hooked)
        : runWithin(tx, verbs.createWithin, instances, null, hooked);
    },
    sendEvent: async (target, event, { tx, hooked = false, lease } = {}) =>
      tx === undefined
        ? run("request", verbs.sendEvent, target, event, lease ?? null)
        : runWithin(tx, verbs.postEvent, target, event, newId(), hooked),
    control: (target, request) => {
      const operationId = "operationId" in request ? request.operationId : null;
      return run("request", verbs.control, request.command, target, operationId);
    },

    register: (runner, leaseMs) => run("engine", verbs.register, runner, leaseMs),
    heartbeat: (runner, leaseMs) => run("engine", verbs.heartbeat, runner, leaseMs),
    declareDead: () => run("engine", verbs.declareDead),
    retire: (runner) => run("engine", verbs.retire, runner),
    nextExpiryInMs: (runner) => run("engine", verbs.nextExpiry, runner),

    claim: (request) => claims.claim(request),
    adopt: async (runner, iids) =>
      iids.length === 0 ? [] : run("engine", verbs.adopt, runner, iids),
    reopen: async (runner, runs) =>
      runs.length === 0 ? [] : run("engine", verbs.reopen, runner, runs),
    load: async (runs) => (runs.length === 0 ? [] : run("engine", verbs.load, runs)),
    commit: async (parts) => {
      if (new Set(parts.map((part) => part.iid)).size < parts.length) {
        throw new Error("a batch holds at most one part per run");
      }
      return parts.length === 0 ? [] : commit(parts);
    },
    poll: async (runs) => (runs.length === 0 ? [] : run("engine", verbs.poll, runs)),
    // Asked before every claim, and hardly ever is there anything: no transaction for that.
    moveInbox: async (limit) =>
      (await run("engine", verbs.inboxHolds)) ? run("engine", verbs.moveInbox, limit) : 0,
    nextDueInMs: async (lanes, hooks = []) => {
      const turn = await claims.nextDueInMs(lanes);
      if (hooks.length === 0 || turn === 0) return turn;
      const delivery = await run("request", verbs.nextDelivery, hooks);
      if (turn === null || delivery === null) return turn ?? delivery;
      return Math.min(turn, delivery);
    },
    unknownLanes: (known) => run("engine", verbs.unknownLanes, known),

    // Beside the engine's own connection: no commit waits for a delivery.
    registerHooks: (hooks) => run("request", verbs.registerHooks, hooks),
    unregisterHook: (hook) => run("request", verbs.unregisterHook, hook),
    claimHooks: (request) => run("request", verbs.claimHooks, request),
    settleHooks: (settlements) => run("request", verbs.settleHooks, settlements),
    failedHooks: (query) => run("request", verbs.failedHooks, query),
    retryHook: (id) => run("request", verbs.retryHook, id),
    unknownHooks: (known, ms) => run("request", verbs.unknownHooks, known, ms),

    get,
    list: (query) => run("request", verbs.list, query),
    history: (target, query) => run("request", verbs.history, target, query),
  };
}

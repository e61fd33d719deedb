import { WorkflowError } from "../model/errors.js";
import { idMaker } from "../model/ids.js";
import type { Clock, Runtime } from "../model/seams.js";
import { NotMigratedError } from "../store/errors.js";
import type { HintChannel } from "../store/hints.js";
import type { Target } from "../model/target.js";
import type { MigrationPlan, Store } from "../store/store.js";
import type { Part, PartAnswer } from "../store/part.js";
import { ClaimScanner } from "./claim-scanner.js";
import { Creates } from "./creates.js";
import type { Dialect } from "./dialect.js";
import type { Driver, RunVerb } from "./driver.js";
import { getsTogether } from "./gets.js";
import { migrateScript, migrationPlan, recorded } from "./migrate.js";
import { Raced, Sql, type Verb } from "./sql.js";
import { sqlVerbs } from "./verbs/index.js";

const FIRST_BACKOFF_MS = 10;
const MAX_BACKOFF_MS = 1_000;
/** About six seconds of backoff in all: longer than a restart of a healthy server, shorter than a request. */
const MAX_TRIES = 13;
/** If each try takes long to fail, there are fewer tries. */
const MAX_TRYING_MS = 20_000;

type SqlStoreOptions<Tx> = {
  readonly dialect: Dialect;
  readonly driver: Driver<Tx>;
  readonly runtime: Runtime;
  /** Hints between processes, where the database can carry them. */
  readonly hints?: HintChannel & { close(): Promise<void> };
  /** Stands in for the database's time, in tests. */
  readonly clock?: Clock | undefined;
};

type Verbs = ReturnType<typeof sqlVerbs>;

/** The store on any SQL database: its verbs, and what happens when the database refuses one. */
export function sqlStore<Tx>(options: SqlStoreOptions<Tx>): Store<Tx> {
  const { dialect, driver, runtime, hints } = options;
  const sql = new Sql(dialect, options.clock);
  const newId = idMaker(runtime);
  const verbs = sqlVerbs(sql, newId);
  const run = verbRunner(options);

  async function runWithin<Args extends readonly unknown[], T>(
    tx: Tx,
    verb: Verb<Args, T>,
    ...args: Args
  ): Promise<T> {
    try {
      return await driver.within(tx, verb, args);
    } catch (error) {
      throw explained(dialect, error);
    }
  }

  const creates = new Creates(runtime, {
    together: (...request) => run("request", verbs.createTogether, ...request),
    alone: (...request) => run("request", verbs.create, ...request),
    causeOf: (error) => {
      if (error instanceof WorkflowError) return "store";
      return dialect.classify(error) === "locked" ? "lock" : "request";
    },
  });

  return {
    ...(hints === undefined ? {} : { hints }),
    isRemote: dialect.isRemote,
    ...migrating(run, sql),
    close: async () => {
      await hints?.close();
      await driver.close();
    },
    now: () => run("request", verbs.now),

    create: async (instances, { tx, hooked = false, lease } = {}) => {
      if (instances.length === 0) return [];
      return tx === undefined
        ? creates.create(instances, lease?.runner ?? null, hooked)
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
    ...executing(run, verbs, options),
    ...tellingHooks(run, verbs),
    ...reading(run, verbs, options),
  };
}

/** Runs a verb, again and again while the database is busy or away. Every verb may be sent twice. */
function verbRunner<Tx>({ dialect, driver, runtime }: SqlStoreOptions<Tx>): RunVerb {
  const { clock, scheduler, random } = runtime;
  return async function run(by, verb, ...args) {
    const since = clock.now();
    for (let tries = 1; ; tries++) {
      try {
        return await driver.run(by, verb, args);
      } catch (error) {
        if (!mayRetry(dialect, error, verb.answersLocked)) throw explained(dialect, error);
        if (tries === MAX_TRIES || clock.now() - since > MAX_TRYING_MS) {
          throw new WorkflowError("STORE_UNAVAILABLE", "the database is busy or away", {
            cause: error,
          });
        }
      }
      const backoff = Math.min(MAX_BACKOFF_MS, FIRST_BACKOFF_MS * 2 ** (tries - 1));
      await scheduler.sleep(backoff * (0.5 + random.next() / 2));
    }
  };
}

function mayRetry(dialect: Dialect, error: unknown, answersLocked: true | undefined): boolean {
  if (error instanceof Raced) return true;
  switch (dialect.classify(error)) {
    case "transient":
    case "disconnected":
    // A unique key that the script had found free was taken meanwhile. The next try will see it.
    case "duplicate":
      return true;
    case "locked":
      return answersLocked !== true;
    default:
      return false;
  }
}

function explained(dialect: Dialect, error: unknown): unknown {
  return dialect.classify(error) === "unmigrated" ? new NotMigratedError({ cause: error }) : error;
}

function migrating(run: RunVerb, sql: Sql): Pick<Store, "migrate" | "planMigration"> {
  const { dialect } = sql;
  const migrate = { transaction: dialect.ddlInTransaction, script: () => migrateScript(sql) };
  const readVersion = { transaction: false, script: () => recorded(sql) };
  return {
    migrate: () => run("request", migrate),
    planMigration: async (): Promise<MigrationPlan> => {
      const found = await run("request", readVersion).catch((error: unknown) => {
        if (error instanceof NotMigratedError) return null;
        throw error;
      });
      const { statements, ...versions } = migrationPlan(dialect, found);
      if (statements.length === 0 || !dialect.ddlInTransaction) return { ...versions, statements };
      return { ...versions, statements: ["BEGIN", ...statements, "COMMIT"] };
    },
  };
}

type Executing = Pick<
  Store,
  | "register"
  | "heartbeat"
  | "declareDead"
  | "retire"
  | "nextExpiryInMs"
  | "claim"
  | "adopt"
  | "reopen"
  | "load"
  | "commit"
  | "poll"
  | "moveInbox"
  | "nextDueInMs"
  | "unknownLanes"
>;

/** The verbs of runners, on the engine's own connections. */
function executing<Tx>(
  run: RunVerb,
  verbs: Verbs,
  { dialect, runtime, clock }: SqlStoreOptions<Tx>,
): Executing {
  // A test's clock may stand still, and no ticket becomes visible late by it, so a test needs no marks.
  const trustsMarks = dialect.keepsDeadEntries && clock === undefined;
  const scanner = new ClaimScanner(run, verbs, runtime.clock, trustsMarks);
  return {
    register: (runner, leaseMs) => run("engine", verbs.register, runner, leaseMs),
    heartbeat: (runner, leaseMs) => run("engine", verbs.heartbeat, runner, leaseMs),
    declareDead: () => run("engine", verbs.declareDead),
    retire: (runner) => run("engine", verbs.retire, runner),
    nextExpiryInMs: (runner) => run("engine", verbs.nextExpiry, runner),

    claim: (request) => scanner.claim(request),
    adopt: async (runner, iids) =>
      iids.length === 0 ? [] : run("engine", verbs.adopt, runner, iids),
    reopen: async (runner, runs) =>
      runs.length === 0 ? [] : run("engine", verbs.reopen, runner, runs),
    load: async (runs) => (runs.length === 0 ? [] : run("engine", verbs.load, runs)),
    commit: committing(run, verbs.commit, dialect),
    poll: async (runs) => (runs.length === 0 ? [] : run("engine", verbs.poll, runs)),
    // Every claim asks, and the inbox hardly ever holds anything: the question takes no transaction.
    moveInbox: async (limit) =>
      (await run("engine", verbs.inboxHolds)) ? run("engine", verbs.moveInbox, limit) : 0,
    nextDueInMs: async (lanes, hooks = []) => {
      const turn = await scanner.nextDueInMs(lanes);
      if (hooks.length === 0 || turn === 0) return turn;
      const delivery = await run("request", verbs.nextDelivery, hooks);
      if (turn === null || delivery === null) return turn ?? delivery;
      return Math.min(turn, delivery);
    },
    unknownLanes: (known) => run("engine", verbs.unknownLanes, known),
  };
}

/** Commits all parts in one write. If the database refuses that, the parts that it refuses are written apart. */
function committing(run: RunVerb, verb: Verbs["commit"], dialect: Dialect): Store["commit"] {
  return async function commit(parts) {
    if (parts.length > 1 && new Set(parts.map(({ iid }) => iid)).size < parts.length) {
      throw new Error("a batch holds at most one part per run");
    }
    if (parts.length === 0) return [];
    try {
      return await run("engine", verb, parts);
    } catch (error) {
      const category = dialect.classify(error);
      if (category !== "data" && category !== "locked") throw error;
      if (parts.length > 1) return commitApart(category === "data" ? halves(parts) : apart(parts));
      return category === "data"
        ? [{ kind: "bad", message: "the database refuses this data" }]
        : [{ kind: "busy" }];
    }

    async function commitApart(batches: Part[][]): Promise<PartAnswer[]> {
      const answers = new Map<string, PartAnswer>();
      for (const batch of batches) {
        for (const [n, answer] of (await commit(batch)).entries()) {
          answers.set((batch[n] as Part).iid, answer);
        }
      }
      return parts.map(({ iid }) => answers.get(iid) as PartAnswer);
    }
  };
}

function halves(parts: readonly Part[]): Part[][] {
  const half = Math.ceil(parts.length / 2);
  return [parts.slice(0, half), parts.slice(half)];
}

/** As a rule the lock is on the id of a run that a part spawns, in a user's open transaction. */
function apart(parts: readonly Part[]): Part[][] {
  const spawning = parts.filter((part) => part.spawns.length > 0);
  if (spawning.length === 0) return halves(parts);
  const others = parts.filter((part) => part.spawns.length === 0);
  return [others, ...spawning.map((part) => [part])];
}

type TellingHooks = Pick<
  Store,
  | "registerHooks"
  | "unregisterHook"
  | "claimHooks"
  | "settleHooks"
  | "failedHooks"
  | "retryHook"
  | "unknownHooks"
>;

/** Beside the engine's own connection, so that no commit waits for a delivery. */
function tellingHooks(run: RunVerb, verbs: Verbs): TellingHooks {
  return {
    registerHooks: (hooks) => run("request", verbs.registerHooks, hooks),
    unregisterHook: (hook) => run("request", verbs.unregisterHook, hook),
    claimHooks: (request) => run("request", verbs.claimHooks, request),
    settleHooks: (settlements) => run("request", verbs.settleHooks, settlements),
    failedHooks: (query) => run("request", verbs.failedHooks, query),
    retryHook: (id) => run("request", verbs.retryHook, id),
    unknownHooks: (known, ms) => run("request", verbs.unknownHooks, known, ms),
  };
}

function reading<Tx>(
  run: RunVerb,
  verbs: Verbs,
  { dialect, runtime }: SqlStoreOptions<Tx>,
): Pick<Store, "get" | "list" | "history"> {
  const alone = (target: Target) => run("request", verbs.get, target);
  return {
    get: dialect.joinsRowSets
      ? getsTogether(runtime, {
          together: (targets) => run("request", verbs.getMany, targets),
          alone,
          isOfOne: (error) => dialect.classify(error) === "data",
        })
      : alone,
    list: (query) => run("request", verbs.list, query),
    history: (target, query) => run("request", verbs.history, target, query),
  };
}

import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Store } from "../src/store/store.js";
import { ManualClock } from "../src/testing/clock.js";
import { storeConformanceByTheme } from "../src/testing/conformance/index.js";
import {
  anEvent,
  aPart,
  aRunner,
  aStep,
  claim,
  commit,
  commitOk,
  complete,
  dueIn,
  historyRows,
  laneOf,
  type Leased,
  leasedRun,
  parkFor,
  release,
  targetOf,
  unique,
  pause,
  restart,
  terminate,
} from "../src/testing/conformance/build.js";
import { inTime, untilNotBusy } from "../src/testing/conformance/concurrency.js";
import { mysqlFamily, postgres } from "./fixtures.js";
import {
  type Database,
  database,
  mysqlSession,
  postgresSession,
  type Session,
  untilBlocked,
  waiters,
} from "./support/database.js";
import { inScope, Scope } from "./support/scope.js";
import { canStartServers, type Kind, privateServer, servers } from "./support/servers.js";
import { Signal, until } from "./support/until.js";

/*
 * Servers whose administrator has chosen another isolation than READ COMMITTED for everybody. The engine's own
 * statements must not depend on it, and users' transactions may have it.
 */

const levels = {
  postgres: ["READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"],
  mariadb: ["READ COMMITTED", "REPEATABLE READ"],
  mysql: ["READ COMMITTED", "REPEATABLE READ"],
} as const satisfies Record<Kind, readonly string[]>;

const stock: Readonly<Record<Kind, string>> = {
  postgres: "READ COMMITTED",
  mariadb: "REPEATABLE READ",
  mysql: "REPEATABLE READ",
};

/**
 * The cases in which many sessions meet, by theme. conformance/ runs all cases at these isolations of a
 * session.
 */
const meetings: Readonly<Record<string, RegExp>> = {
  create: /of 20 concurrent/,
  claim: /concurrent/,
  reopen: /at once: one/,
  commit: /^commits of many connections/,
  events: /concurrent/,
  resend: /two connections/,
  runners: /many at once/,
  transactions: /leaves (nothing|the transaction)|go on while|taken after|^an event .* rolls back/,
};

const meetingCases = Object.entries(meetings).flatMap(([theme, name]) => {
  const cases = storeConformanceByTheme[theme]?.filter((each) => name.test(each.name)) ?? [];
  if (cases.length === 0) throw new Error(`no case of ${theme} is like ${name}`);
  return cases;
});

async function setDefault(kind: Kind, url: string, level: string): Promise<string> {
  if (kind !== "postgres") {
    const session = await mysqlSession(url);
    await session.query(`SET GLOBAL TRANSACTION ISOLATION LEVEL ${level}`);
    await session.close();
    return url;
  }
  const name = level.toLowerCase().replace(" ", "_");
  const session = await postgresSession(url);
  await session.query(`CREATE DATABASE ${name}`);
  await session.query(
    `ALTER DATABASE ${name} SET default_transaction_isolation = '${level.toLowerCase()}'`,
  );
  await session.close();
  return Object.assign(new URL(url), { pathname: `/${name}` }).href;
}

const levelOf = (kind: Kind): string =>
  kind === "postgres"
    ? "upper(current_setting('transaction_isolation'))"
    : kind === "mysql"
      ? "REPLACE(@@SESSION.transaction_isolation, '-', ' ')"
      : "REPLACE(@@SESSION.tx_isolation, '-', ' ')";

describe.skipIf(!canStartServers).each(servers)("%s with a default of", (kind: Kind) => {
  const scope = new Scope();
  let server: { url: string };
  beforeAll(async () => {
    server = await privateServer(scope, kind);
  });
  afterAll(() => scope.end());

  describe.each([...levels[kind]])("%s", (level) => {
    let url: string;
    beforeAll(async () => {
      url = await setDefault(kind, server.url, level);
    });

    test("runs every write of the engine at READ COMMITTED, and a user's at the default", () =>
      inScope(async (inner) => {
        const db = await database(inner, kind, { url });
        const store = db.store();
        await store.migrate();
        const session = await db.session();
        await recordLevels(db, session);
        const run = await leasedRun(store);
        await store.sendEvent(targetOf(run), anEvent());
        await commitOk(store, aPart(run, { seenEvents: 1, next: parkFor(["paid"]) }));
        await store.control(targetOf(run), pause);
        expect(await levelsSeen(db, session)).toEqual(["READ COMMITTED"]);
        await session.query(kind === "postgres" ? "BEGIN" : "START TRANSACTION");
        await session.query(`UPDATE ${db.table("ticket")} SET takeovers = 0`);
        await session.query("COMMIT");
        expect(await levelsSeen(db, session)).toEqual([...new Set(["READ COMMITTED", level])]);
      }));

    // conformance/ already runs on the isolation that a server comes with.
    if (level !== stock[kind]) {
      test.each(meetingCases)("$name", (each) =>
        each.run(kind === "postgres" ? postgres(url) : mysqlFamily(url)),
      );
    }

    test.each(Object.keys(holders) as Holder[])(
      "%s in the middle of its write meets every other verb safely",
      (holder) => inScope((inner) => meet(inner, kind, url, holder)),
    );
  });
});

async function recordLevels(db: Database, session: Session): Promise<void> {
  const seen = `${db.name}.levels`;
  await session.query(`CREATE TABLE ${seen} (level VARCHAR(40))`);
  const insert = `INSERT INTO ${seen} VALUES (${levelOf(db.kind)})`;
  const on = `AFTER UPDATE ON ${db.table("ticket")} FOR EACH ROW`;
  if (db.kind === "postgres") {
    await session.query(
      `CREATE FUNCTION ${db.name}.note() RETURNS trigger LANGUAGE plpgsql
       AS $$ BEGIN ${insert}; RETURN NULL; END $$`,
    );
    await session.query(`CREATE TRIGGER note ${on} EXECUTE FUNCTION ${db.name}.note()`);
  } else {
    await session.query(`CREATE TRIGGER note ${on} ${insert}`);
  }
}

async function levelsSeen(db: Database, session: Session): Promise<string[]> {
  const rows = await session.query(`SELECT DISTINCT level FROM ${db.name}.levels ORDER BY level`);
  return rows.map((row) => String(row["level"]));
}

// Two sessions in one run ---------------------------------------------------------------------------------------------

/** A run whose owner's lease has run out. If the run is parked, its wait has timed out. */
type Scene = { readonly run: Leased; readonly rival: string; readonly tag: string };
type Act = (store: Store, scene: Scene) => Promise<unknown>;

/**
 * These write the ticket and then the instance, which a user has locked, so they wait there with the ticket's
 * lock.
 */
const holders = {
  restart: (store, { run, tag }) => store.control(targetOf(run), restart(`restart-${tag}`)),
  complete: (store, { run }) => commit(store, aPart(run, { steps: [aStep(1)], next: complete() })),
} satisfies Record<string, Act>;
type Holder = keyof typeof holders;

const claimIt: Act = async (store, { run, rival }) =>
  (await claim(store, rival, { lanes: [laneOf(run)] })).map((claimed) => ({
    ...claimed,
    iid: "",
    id: "",
    workflow: "",
  }));

const others: Readonly<Record<string, Act>> = {
  claim: claimIt,
  heartbeat: async (store, { run }) => (await store.heartbeat(run.runner, 0)).kind,
  takeover: async (store, scene) => {
    await store.declareDead();
    return claimIt(store, scene);
  },
  progress: (store, { run }) => commit(store, aPart(run, { steps: [aStep(1)] })),
  park: (store, { run }) =>
    commit(store, aPart(run, { steps: [aStep(1)], next: parkFor(["paid"], { inMs: 0 }) })),
  resend: async (store, { run }) => {
    const part = aPart(run, { steps: [aStep(1)], next: release() });
    const first = await commit(store, part);
    return [first, await commit(store, part)];
  },
  sendEvent: (store, { run, tag }) =>
    store.sendEvent(targetOf(run), { ...anEvent(), eventId: `event-${tag}` }),
  timeout: async (store, { run }) => {
    const { iid, runNumber, claimNumber } = run;
    const request = { iid, runNumber, claimNumber, seenEvents: 0 };
    return untilNotBusy(async () => (await store.poll([request]))[0]!);
  },
  pause: (store, { run }) => store.control(targetOf(run), pause),
  terminate: (store, { run }) => store.control(targetOf(run), terminate(`another-${unique()}`)),
  restart: (store, { run }) => store.control(targetOf(run), restart(`another-${unique()}`)),
};

/** Returns a store that, when told that a run is busy, waits until the other session is through. */
function pausingIfBusy(store: Store, busy: () => void, released: Signal): Store {
  const paused = async <A extends { kind: string }>(answers: A[]): Promise<A[]> => {
    if (answers.some(({ kind }) => kind === "busy")) {
      busy();
      await released.wait();
    }
    return answers;
  };
  return {
    ...store,
    commit: async (parts) => paused(await store.commit(parts)),
    poll: async (runs) => paused(await store.poll(runs)),
  };
}

async function meet(scope: Scope, kind: Kind, url: string, holder: Holder): Promise<void> {
  const clock = new ManualClock();
  const db = await database(scope, kind, { url });
  const [one, two] = [db.store({ clock }), db.store({ clock })];
  await one.migrate();
  const [user, watcher] = [await db.session(), await db.session()];

  const begin = async (): Promise<Scene> => {
    const tag = String(unique());
    const run = await leasedRun(one, { workflow: `w${tag}`, id: `run${tag}` });
    await one.register(run.runner, 0);
    return { run, rival: await aRunner(one), tag };
  };
  const observe = async ({ run, rival, tag }: Scene, answers: unknown): Promise<string> => {
    const beat = await one.heartbeat(rival, 60_000);
    const seen = {
      answers,
      instance: await one.get(targetOf(run)),
      first: await historyRows(one, run, { runNumber: 1 }),
      runs: (await one.history(targetOf(run), { order: "newest", pageSize: 1 }))?.runs,
      due: await dueIn(one, run),
      owned: beat.kind === "ok" ? beat.owned : "dead",
    };
    return JSON.stringify(seen)
      .replaceAll(run.iid, "iid")
      .replaceAll(run.runner, "owner")
      .replaceAll(rival, "rival")
      .replaceAll(new RegExp(`(w|run)${tag}\\b`, "g"), "$1");
  };
  const inTurn = async (first: Act, second: Act, swap: boolean): Promise<string> => {
    const scene = await begin();
    const answers = [await first(one, scene), await second(two, scene)];
    return observe(scene, swap ? answers.toReversed() : answers);
  };

  const hold: Act = holders[holder];
  for (const [name, other] of Object.entries(others)) {
    const allowed = [await inTurn(hold, other, false), await inTurn(other, hold, true)];
    const scene = await begin();
    await user.query(kind === "postgres" ? "BEGIN" : "START TRANSACTION");
    await user.query(
      `SELECT iid FROM ${db.table("instance")} WHERE iid = '${scene.run.iid}' FOR UPDATE`,
    );
    const holding = hold(one, scene);
    holding.catch(() => {}); // reported below
    await untilBlocked(db, watcher);
    let answered = false;
    const answer = (): void => void (answered = true);
    const released = new Signal();
    const meeting = other(pausingIfBusy(two, answer, released), scene).finally(answer);
    meeting.catch(() => {}); // reported below
    await until(
      async () => answered || (await waiters(db, watcher)).length > 1,
      `${name} answered or waiting`,
    );
    await user.query("COMMIT");
    released.give();
    const answers = await inTime(Promise.all([holding, meeting]), `${holder} and ${name}`);
    expect(allowed, `${holder} and ${name}`).toContain(await observe(scene, answers));
  }
}

/*
 * Another process with a store, driven by its parent (processes.ts). It is compiled for each run of the
 * tests, because a process of its own has none of the test runner's transforms.
 */
import type { Store } from "../../src/store/store.js";

/**
 * The requests to a worker: any verb of the store, and calls that only make sense without a message for
 * each step.
 */
export type Call = {
  readonly id: number;
  readonly verb: string;
  readonly args: readonly unknown[];
};
export type Answer = { readonly id: number; readonly value?: unknown; readonly error?: string };

export type WorkerPlace = {
  readonly kind: "sqlite" | "postgres" | "mariadb" | "mysql";
  /** A URL, or the path of a SQLite file. */
  readonly at: string;
  /** The schema or the database. */
  readonly name: string;
  /** How wrong the process's clock is. */
  readonly skewMs: number;
};

const place = JSON.parse(process.argv[2] ?? "{}") as WorkerPlace;

if (place.skewMs !== 0) {
  const RealDate = Date;
  const skewed = (): number => RealDate.now() + place.skewMs;
  globalThis.Date = class extends RealDate {
    constructor(...args: []) {
      if (args.length === 0) super(skewed());
      else super(...args);
    }
    static override now(): number {
      return skewed();
    }
  } as DateConstructor;
}

const store = await open(place);

async function open({ kind, at, name }: WorkerPlace): Promise<Store> {
  // These are imported after the clock was changed.
  if (kind === "sqlite") {
    const { DatabaseSync } = await import("@photostructure/sqlite");
    const { sqliteStore } = await import("../../src/sqlite.js");
    return sqliteStore(new DatabaseSync(at));
  }
  if (kind === "postgres") {
    const { default: pg } = await import("pg");
    const { postgresStore } = await import("../../src/postgres.js");
    return postgresStore(new pg.Pool({ connectionString: at }), { schema: name });
  }
  const { default: mysql } = await import("mysql2/promise");
  const { mysqlStore } = await import("../../src/mysql.js");
  return mysqlStore(mysql.createPool({ uri: at, database: name }));
}

const more: Readonly<Record<string, (...args: never) => Promise<unknown>>> = {
  clock: async () => ({ now: Date.now(), zone: new Date().getTimezoneOffset() }),
  claimAll: async (runner: string, handler: string, limit: number): Promise<string[]> => {
    const lanes = [{ queue: "default", handler }];
    const mine: string[] = [];
    while ((await store.nextDueInMs(lanes)) !== null) {
      const answer = await store.claim({ runner, lanes, limit, reservedForNew: 0 });
      if (answer.kind === "dead") throw new Error("dead");
      mine.push(...answer.claimed.map(({ iid }) => iid));
    }
    return mine;
  },
  createTogether: async (...instances: Parameters<Store["create"]>[0][number][]) =>
    Promise.all(instances.map((instance) => store.create([instance]))),
};

process.on("message", ({ id, verb, args }: Call) => {
  const verbs = { ...store, ...more } as unknown as Record<
    string,
    (...all: unknown[]) => Promise<unknown>
  >;
  verbs[verb]!(...args).then(
    (value) => process.send?.({ id, value } satisfies Answer),
    (error: unknown) => process.send?.({ id, error: String(error) } satisfies Answer),
  );
});
process.on("disconnect", () => process.exit());
process.send?.({ id: 0 } satisfies Answer);

import type { Store } from "../../store/store.js";
import { ConformanceError, fail } from "./assert.js";
import type { TestDatabase, TestTransaction } from "./fixture.js";

// Every JavaScript runtime has these; the package is compiled without any runtime's types.
declare function setTimeout(callback: () => void, ms: number): unknown;
declare function clearTimeout(timer: unknown): void;

const deadlineMs = 15_000;

/**
 * Fails if `work` takes too long. Nothing waits by sleeping: the deadline only turns a hang into a failure
 * that says what hung.
 */
export async function inTime<T>(work: Promise<T>, what: string): Promise<T> {
  let timer: unknown;
  const late = new Promise<never>((_, reject) => {
    const error = new ConformanceError(`${what}: no answer after ${deadlineMs} ms`);
    timer = setTimeout(() => reject(error), deadlineMs);
  });
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}

/** Starts all jobs before any of them can answer. */
export function atOnce<T>(jobs: readonly (() => Promise<T>)[], what: string): Promise<T[]> {
  return inTime(Promise.all(jobs.map((job) => job())), what);
}

/** Returns the first store and as many others as make `count`, each with connections of its own. */
export async function storesOn(db: TestDatabase, count: number): Promise<[Store, ...Store[]]> {
  const others: Store[] = [];
  while (others.length < count - 1) others.push(await db.connect());
  return [db.store, ...others];
}

/**
 * Runs `work` while the user's transaction is open, then ends the transaction. On a database with one writer
 * at a time, `work` may answer only after that end.
 */
export async function whileOpen<T>(
  db: TestDatabase,
  transaction: TestTransaction,
  end: "commit" | "rollback",
  work: () => Promise<T>,
): Promise<T> {
  const running = work();
  running.catch(() => {}); // a failure is reported below
  if (!db.oneWriter) await inTime(running, "while a user's transaction is open");
  await transaction[end]();
  return inTime(running, "after the user's transaction ended");
}

/** Sends a request again for as long as another session's lock keeps it from being applied. */
export async function untilNotBusy<A extends { readonly kind: string }>(
  send: () => Promise<A>,
): Promise<Exclude<A, { readonly kind: "busy" }>> {
  for (let tries = 0; tries < 10_000; tries++) {
    const answer = await send();
    if (answer.kind !== "busy") return answer as Exclude<A, { readonly kind: "busy" }>;
  }
  return fail("still busy after 10,000 tries");
}

/** Runs `work` in a user's transaction. */
export async function inTransaction<T>(
  db: TestDatabase,
  work: (tx: unknown) => Promise<T>,
  end: "commit" | "rollback" = "commit",
): Promise<T> {
  const transaction = await db.begin();
  const result = await inTime(work(transaction.tx), "in a user's transaction");
  await transaction[end]();
  return result;
}

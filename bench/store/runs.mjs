// @ts-check
// Makes instances, leases and parts for the benchmarks.

/**
 * @typedef {import("./databases.mjs").Store} Store
 * @typedef {Extract<Awaited<ReturnType<Store["claim"]>>, { kind: "ok" }>["claimed"][number]} Claimed
 * @typedef {Parameters<Store["commit"]>[0][number]} Part
 * @typedef {Part["next"]} Next
 * @typedef {Parameters<Store["create"]>[0][number]} NewInstance
 */

export const LANE = { queue: "default", handler: "bench" };
export const LEASE_MS = 600_000;

let made = 0;

/** @returns {NewInstance} */
export function anInstance() {
  made += 1;
  const iid = `01900000-0000-7000-8000-${made.toString(16).padStart(12, "0")}`;
  return { iid, workflow: LANE.handler, id: `order-${made}`, queue: LANE.queue, params: '{"n":1}' };
}

/**
 * @param {number} count
 * @returns {NewInstance[]}
 */
export const someInstances = (count) => Array.from({ length: count }, anInstance);

/** @param {Store} store */
export async function aRunner(store) {
  const runner = `runner-${(made += 1)}`;
  await store.register(runner, LEASE_MS);
  return runner;
}

/**
 * @param {Store} store
 * @param {string} runner
 * @param {number} limit
 * @returns {Promise<Claimed[]>}
 */
export async function claim(store, runner, limit, reservedForNew = 0) {
  const answer = await store.claim({ runner, lanes: [LANE], limit, reservedForNew });
  if (answer.kind !== "ok") throw new Error("the runner is dead");
  return answer.claimed;
}

/**
 * @param {Store} store
 * @param {number} count
 * @returns {Promise<{ runner: string, runs: Claimed[] }>}
 */
export async function leased(store, count) {
  const runner = await aRunner(store);
  for (let n = 0; n < count; n += 100) await store.create(someInstances(Math.min(100, count - n)));
  /** @type {Claimed[]} */
  const runs = [];
  while (runs.length < count) {
    const claimed = await claim(store, runner, Math.min(200, count - runs.length));
    if (claimed.length === 0) throw new Error("nothing to claim");
    runs.push(...claimed);
  }
  return { runner, runs };
}

/**
 * @param {Claimed} run
 * @param {number} partNumber
 * @param {Next} next
 * @returns {Part}
 */
export function aPart(run, partNumber, next) {
  return {
    iid: run.iid,
    runNumber: run.runNumber,
    claimNumber: run.claimNumber,
    partNumber,
    seenEvents: run.eventCount,
    steps: [],
    attempts: [],
    consumed: [],
    spawns: [],
    deliveries: [],
    next,
  };
}

export const RESULT = '{"ok":true,"i":1}';

/**
 * A part with one small completed step.
 * @param {Claimed} run
 * @param {number} ord
 * @returns {Part}
 */
export function aStepPart(run, ord) {
  return {
    ...aPart(run, ord, { kind: "continue" }),
    steps: [
      {
        ord,
        name: "charge the card",
        count: 1,
        type: "do",
        status: "completed",
        seq: ord,
        calledAfter: ord - 1,
        attempts: 1,
        tookMs: 3,
        wake: null,
        waitKey: null,
        result: RESULT,
        error: null,
        isNew: true,
      },
    ],
  };
}

/**
 * Returns the same step as a row.
 * @param {Claimed} run
 * @param {number} ord
 * @returns {import("./databases.mjs").RawRow}
 */
export function aStepRow(run, ord) {
  const { iid, runNumber, claimNumber, now } = run;
  // prettier-ignore
  return [iid, runNumber, ord, ord, ord - 1, claimNumber, ord, "charge the card", 1, "do", "completed", 1, now - 3, now, null, null, RESULT, null];
}

/**
 * @param {Store} store
 * @param {readonly Part[]} parts
 */
export async function commitAll(store, parts) {
  const answers = await store.commit(parts);
  const wrong = answers.find((answer) => answer.kind !== "ok");
  if (wrong !== undefined) throw new Error(`a part was ${wrong.kind}`);
}

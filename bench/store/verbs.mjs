// @ts-check
// Measures what one call of the other verbs takes.
import { compare, median, timed } from "../measure.mjs";
import { LEASE_MS, aPart, anInstance, commitAll, leased, someInstances } from "./runs.mjs";

const SLICES = 200;

/**
 * @param {import("./databases.mjs").Database} database
 * @param {import("./index.mjs").Options} options
 * @returns {Promise<Record<string, import("../measure.mjs").Figure>>} ms of one call
 */
export async function benchVerbs(database, { rounds, share, progress }) {
  progress("create, sendEvent, heartbeat");
  const world = await database.world();
  const { store } = world;
  try {
    const { runner, runs } = await leased(store, 200);
    const waiting = (await leased(store, 200)).runs;
    await commitAll(
      store,
      waiting.map((run) =>
        aPart(run, 1, { kind: "park", waitMask: 0, wake: null, historyBytes: 300 }),
      ),
    );
    let events = 0;
    const event = () => ({ eventId: `event-${(events += 1)}`, type: "paid", payload: '{"n":1}' });
    /** @param {readonly import("./runs.mjs").Claimed[]} targets */
    const sendTo = (targets) => async () => {
      const target = targets[events % targets.length];
      if (target === undefined) throw new Error("no target");
      const answer = await store.sendEvent({ workflow: target.workflow, id: target.id }, event());
      if (answer.kind !== "accepted") throw new Error(`the event was ${answer.kind}`);
    };
    const calls = {
      "create 1": () => store.create([anInstance()]),
      "create 100": () => store.create(someInstances(100)),
      "sendEvent, parked run": sendTo(waiting),
      "sendEvent, leased run": sendTo(runs),
      "heartbeat, 200 owned": () => store.heartbeat(runner, LEASE_MS),
    };
    return await compare(
      { rounds, slices: Math.ceil(SLICES * share) },
      Object.fromEntries(Object.entries(calls).map(([name, call]) => [name, () => timed(call)])),
      median,
    );
  } finally {
    await world.close();
  }
}

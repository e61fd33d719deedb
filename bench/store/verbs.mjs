// @ts-check
// What one call of the other verbs takes.
import { figure, rounds, timed } from "../measure.mjs";
import { LEASE_MS, aPart, anInstance, commitAll, leased, someInstances } from "./runs.mjs";

/**
 * @param {import("./databases.mjs").Database} database
 * @param {{ rounds: number, share: number, progress: (line: string) => void }} options
 * @returns {Promise<Record<string, import("../measure.mjs").Figure>>} ms of one call
 */
export async function benchVerbs(database, { rounds: count, share, progress }) {
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
    /**
     * @param {number} times
     * @param {() => Promise<unknown>} work
     */
    const each = (times, work) => async () => {
      /** @type {number[]} */
      const samples = [];
      for (let n = 0; n < Math.max(10, times * share); n++) samples.push(await timed(work));
      return figure(samples).median;
    };
    /** @param {readonly import("./runs.mjs").Claimed[]} targets */
    const sendTo = (targets) => async () => {
      const target = targets[events % targets.length];
      if (target === undefined) throw new Error("no target");
      const answer = await store.sendEvent({ workflow: target.workflow, id: target.id }, event());
      if (answer.kind !== "accepted") throw new Error(`the event was ${answer.kind}`);
    };
    return await rounds(count, {
      "create 1": each(300, () => store.create([anInstance()])),
      "create 100": each(40, () => store.create(someInstances(100))),
      "sendEvent, parked run": each(300, sendTo(waiting)),
      "sendEvent, leased run": each(300, sendTo(runs)),
      "heartbeat, 200 owned": each(100, () => store.heartbeat(runner, LEASE_MS)),
    });
  } finally {
    await world.close();
  }
}

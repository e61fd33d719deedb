// @ts-check
// This is the limit: group commit with no engine around it. No start, claim, fence, replay or end is written,
// only Pawl's step rows, through the same driver. A run does nothing between two of them.
import { sqlite, postgres } from "../../store/databases.mjs";
import { aStepRow } from "../../store/runs.mjs";
import { eachOf } from "../engine.mjs";

const SHARED = { packages: [], inFlight: { W2: 200 }, workloads: ["W2", "limits"] };

/** @type {import("../engine.mjs").Adapter} */
export const onPostgres = {
  ...SHARED,
  title: "no engine, PostgreSQL",
  settings: "one batch in flight, `unnest` of arrays",
  store: "postgres",
  open: async (place) => open(place, await postgres(place.url)),
};

/** @type {import("../engine.mjs").Adapter} */
export const onSqlite = {
  ...SHARED,
  title: "no engine, SQLite",
  settings: "one batch in flight, multi-row VALUES; WAL, synchronous=FULL",
  store: "sqlite",
  open: async (place) => open(place, await sqlite()),
};

/**
 * @param {import("../engine.mjs").Place} place
 * @param {import("../../store/databases.mjs").Database} database
 * @returns {Promise<import("../engine.mjs").Engine>}
 */
async function open({ body }, database) {
  /** @type {import("../../store/databases.mjs").World[]} */
  const worlds = [];
  /** Opens a connection with a table of its own. */
  const connect = async () => {
    const world = await database.world();
    worlds.push(world);
    const inserts = await world.rawInserts();
    const name = database.title === "SQLite" ? "multi-row VALUES" : "unnest of arrays";
    const insert = inserts.find((one) => one.name === name);
    if (insert === undefined) throw new Error(`no ${name}`);
    return insert;
  };
  const first = await connect();

  /** @typedef {import("../../store/databases.mjs").RawRow} Row */
  /** @type {{ row: Row, written: () => void }[]} */
  let waiting = [];
  let isBusy = false;
  const send = async () => {
    isBusy = true;
    while (waiting.length > 0) {
      const batch = waiting;
      waiting = [];
      await first.bind(batch.map(({ row }) => row))();
      for (const { written } of batch) written();
      // Rows that come in the same round travel together.
      await new Promise((resolve) => setImmediate(resolve));
    }
    isBusy = false;
  };
  const write = (/** @type {Row} */ row) =>
    new Promise((resolve) => {
      waiting.push({ row, written: () => resolve(undefined) });
      if (!isBusy) void send();
    });

  const none = async () => {
    throw new Error("no engine");
  };
  return {
    start: none,
    result: none,
    waiting: none,
    send: none,
    runAll: (works, inFlight) =>
      eachOf(works, inFlight, async ({ id, steps }) => {
        const run = runOf(id);
        for (let n = 0; n < steps; n++) {
          body(n);
          await write(aStepRow(run, n + 1));
        }
      }),
    insertRows: async ({ connections, perCommit, ms }) => {
      const inserts = await Promise.all(Array.from({ length: connections }, connect));
      const until = Date.now() + ms;
      let rows = 0;
      await Promise.all(
        inserts.map(async (insert, connection) => {
          for (let n = 0; Date.now() < until; n++) {
            const run = runOf(`${connections}-${perCommit}-${connection}-${n}`);
            await insert.bind(
              Array.from({ length: perCommit }, (_, ord) => aStepRow(run, ord + 1)),
            )();
            rows += perCommit;
          }
        }),
      );
      return rows;
    },
    close: async () => {
      for (const world of worlds) await world.close();
      await database.close();
    },
  };
}

/** @param {string} id */
function runOf(id) {
  const run = {
    iid: `01900000-0000-7000-8000-${id}`,
    runNumber: 1,
    claimNumber: 1,
    now: Date.now(),
  };
  return /** @type {import("../../store/runs.mjs").Claimed} */ (/** @type {unknown} */ (run));
}

// @ts-check
// Defines what the suite asks of an engine: the same work as a user would see it, whatever happens inside.
import { setTimeout as pause } from "node:timers/promises";
import { eachOf } from "./each.mjs";

export { eachOf };

/**
 * The workflows that every engine defines. Each step calls `body`.
 * - `steps`: so many steps, one after another
 * - `parallel`: so many steps at once
 * - `wait`: so many steps, then an event, then a step that answers `now()`, which is the result
 * @typedef {"steps" | "parallel" | "wait"} Kind
 *
 * @typedef {object} Work
 * @property {string} id
 * @property {Kind} kind
 * @property {number} steps
 *
 * @typedef {object} Engine
 * @property {(work: Work) => Promise<void>} start resolves when the start is durable
 * @property {(id: string) => Promise<unknown>} result waits for it the way the engine's users do
 * @property {(works: readonly Work[], inFlight: number) => Promise<void>} runAll starts them, and ends when the last is complete
 * @property {(id: string) => Promise<void>} waiting resolves when the run waits for its event
 * @property {(id: string) => Promise<void>} send the event
 * @property {(count: number) => Promise<void>} [park] loads instances that wait, faster than by starting them
 * @property {() => number} [claimedAt] when this process last took runs, by the place's clock
 * @property {(how: { connections: number, perCommit: number, ms: number }) => Promise<number>} [insertRows] what is below any engine; answers how many
 * @property {() => Promise<number>} [bodies] that ran in another process than this
 * @property {() => Promise<void>} close
 *
 * The place where a process works, and what its steps do.
 * @typedef {object} Place
 * @property {string} url of a PostgreSQL database of its own
 * @property {string} file for a SQLite database
 * @property {{ ingress: string, admin: string, port: number, pid: number } | undefined} restate
 * @property {{ url: string, pid: number } | undefined} cloudflare its workerd
 * @property {(n: number) => { ok: boolean, i: number }} body
 * @property {() => number} now the same for all processes of a machine, in ms
 *
 * The role of a process: all of it, or one side.
 * @typedef {"whole" | "client" | "runner"} Role
 *
 * @typedef {object} Adapter
 * @property {string} title
 * @property {readonly string[]} packages whose versions are recorded; empty if nothing has to be installed
 * @property {string} settings what was set to other than the default, and why
 * @property {"postgres" | "sqlite" | "restate" | "cloudflare"} store
 * @property {boolean} [needsNode22]
 * @property {boolean} [needsSchema] its tables come from a file that the user names, as no package has it
 * @property {Partial<Record<string, number>>} inFlight workflows at a time in W1 and W2: what was best for it
 * @property {number} [maxSteps] of one workflow
 * @property {number} [maxRuns] of W1 or W2, after as many to warm up
 * @property {readonly string[]} [workloads] all that every engine does, if it does not say
 * @property {(place: Place, inFlight: number, role: Role) => Promise<Engine>} open
 */

/**
 * Runs so many at a time, and awaits each.
 * @param {Pick<Engine, "start" | "result">} engine
 * @param {readonly Work[]} works
 * @param {number} inFlight
 */
export async function closedLoop(engine, works, inFlight) {
  await eachOf(works, inFlight, async (work) => {
    await engine.start(work);
    await engine.result(work.id);
  });
}

/** Long enough for a wait to be written after the code has come to it. */
const SETTLE_MS = 50;

/**
 * Waits for a run's wait, for engines that do not tell whether a run waits.
 * @param {() => boolean | Promise<boolean>} hasCome
 */
export async function arrival(hasCome) {
  while (!(await hasCome())) await pause(2);
  await pause(SETTLE_MS);
}

/**
 * Loads a package of bench/package.json, by a name that types do not follow: it is there only if it was asked for.
 * @param {string} name
 * @returns {Promise<any>}
 */
export const load = (name) => import(name);

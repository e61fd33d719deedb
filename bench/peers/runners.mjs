// @ts-check
// Starts processes of an engine beside the one that measures: runners of its runs, or each with work of its own.
import { fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";

const WORKER = fileURLToPath(new URL("worker.mjs", import.meta.url));

/** @typedef {Awaited<ReturnType<typeof startProcesses>>} Processes */

/**
 * @param {import("./worker.mjs").Job} job
 * @param {number} count
 * @param {import("./engine.mjs").Role} role
 */
export async function startProcesses(job, count, role) {
  const children = Array.from({ length: count }, () =>
    fork(WORKER, [JSON.stringify({ ...job, role, isServed: true })], {
      stdio: ["ignore", "inherit", "inherit", "ipc"],
    }),
  );
  /** @param {import("node:child_process").ChildProcess} child */
  const told = async (child) => {
    const answer = once(child, "message").then(([{ bodies }]) => Number(bodies));
    const end = once(child, "exit").then(([code]) => {
      throw new Error(`a process beside this one ended with code ${code}`);
    });
    return Promise.race([answer, end]);
  };
  /** @param {(n: number) => import("./worker.mjs").Order} order of each of them */
  const ask = (order) =>
    Promise.all(
      children.map((child, n) => {
        child.send(order(n));
        return told(child);
      }),
    );
  await Promise.all(children.map(told));
  return {
    bodies: async () => {
      const counts = await ask(() => "bodies");
      return counts.reduce((total, each) => total + each, 0);
    },
    /**
     * Each process starts its share, and ends when the last of that is complete.
     * @type {import("./engine.mjs").Engine["runAll"]}
     */
    runAll: async (works, inFlight) => {
      await ask((n) => ({
        works: works.filter((_, i) => i % count === n),
        inFlight: Math.ceil(inFlight / count),
      }));
    },
    end: async () => {
      const exits = children.map((child) => once(child, "exit"));
      for (const child of children) child.send("end");
      await Promise.all(exits);
    },
  };
}

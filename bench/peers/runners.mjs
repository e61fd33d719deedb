// @ts-check
// Runners in processes of their own, beside the one that measures.
import { fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";

const WORKER = fileURLToPath(new URL("worker.mjs", import.meta.url));

/** @typedef {Awaited<ReturnType<typeof startRunners>>} Runners */

/**
 * @param {import("./worker.mjs").Job} job
 * @param {number} count
 */
export async function startRunners(job, count) {
  const children = Array.from({ length: count }, () =>
    fork(WORKER, [JSON.stringify({ ...job, role: "runner" })], {
      stdio: ["ignore", "inherit", "inherit", "ipc"],
    }),
  );
  /** @param {import("node:child_process").ChildProcess} child */
  const told = async (child) => {
    const [{ bodies }] = await once(child, "message");
    return Number(bodies);
  };
  await Promise.all(children.map(told));
  return {
    bodies: async () => {
      const counts = await Promise.all(
        children.map((child) => {
          child.send("bodies");
          return told(child);
        }),
      );
      return counts.reduce((total, each) => total + each, 0);
    },
    end: async () => {
      const exits = children.map((child) => once(child, "exit"));
      for (const child of children) child.send("end");
      await Promise.all(exits);
    },
  };
}

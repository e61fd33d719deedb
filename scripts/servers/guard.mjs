// @ts-check
// Cleans up after the process that started it. Its input closes when that process ends, even by
// kill -9; then it stops the servers and removes the directories it was told about.
import { rmSync } from "node:fs";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";

/** @type {Map<number, NodeJS.Signals>} */
const pids = new Map();
/** @type {Set<string>} */
const dirs = new Set();

/**
 * @param {number} pid
 * @param {NodeJS.Signals | 0} signal
 */
function kill(pid, signal) {
  try {
    return process.kill(pid, signal);
  } catch {
    return false;
  }
}

for await (const line of createInterface({ input: process.stdin })) {
  const [word, subject = "", signal] = line.split(" ");
  if (word === "pid") pids.set(Number(subject), /** @type {NodeJS.Signals} */ (signal));
  if (word === "gone") pids.delete(Number(subject));
  if (word === "dir") dirs.add(line.slice("dir ".length));
  if (word === "removed") dirs.delete(line.slice("removed ".length));
}

for (const [pid, signal] of pids) kill(pid, signal);
for (let waits = 0; waits < 60 && [...pids.keys()].some((pid) => kill(pid, 0)); waits++) {
  await sleep(50);
}
for (const pid of pids.keys()) kill(pid, "SIGKILL");
for (const dir of dirs) rmSync(dir, { recursive: true, force: true, maxRetries: 5 });

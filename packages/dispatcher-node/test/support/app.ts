/*
 * An application process as a user would write one, driven by signals and files (apps.ts). It is compiled for
 * each run of the tests, because a process of its own has none of the test runner's transforms.
 */
import { appendFileSync, existsSync } from "node:fs";
import { join } from "node:path";
import { drainOnSignals, startRunner } from "@pawl/dispatcher-node";
import { createWorkflows } from "pawl";
import { openStore, type StorePlace } from "./open-store.js";
import { workflow } from "./work.js";

export type AppOptions = {
  readonly place: StorePlace;
  /** The folder where its bodies leave their traces, and look whether they may go on. */
  readonly folder: string;
  readonly leaseMs: number;
  readonly drainMs: number;
  readonly pollMs: number;
};

const { place, folder, leaseMs, drainMs, pollMs } = JSON.parse(process.argv[2] ?? "") as AppOptions;
const WORK = workflow(
  (line) => appendFileSync(join(folder, "ledger"), `${JSON.stringify(line)}\n`),
  (gate) => existsSync(join(folder, gate)),
);
const logger = { debug() {}, info: log, warn: log, error: log };
const pawl = createWorkflows({ workflows: { WORK }, store: await openStore(place), logger });
const poll = { minMs: pollMs, maxMs: pollMs };
const runner = startRunner(pawl, { leaseMs, poll });
drainOnSignals([runner], { timeoutMs: drainMs });
process.on("disconnect", () => process.exit(99));
process.send?.("ready");

function log(event: string, fields?: object): void {
  process.send?.({ event, ...fields });
}

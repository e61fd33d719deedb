/*
 * A process of the chaos test: the HTTP API, or a runner. It is compiled for each run (compile.ts), and
 * killed, stopped and started again at any moment.
 */
import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { drainOnSignals, serve, startRunner } from "@pawl/dispatcher-node";
import {
  createWorkflows,
  defineWorkflow,
  type StepContext,
  type WorkflowEvent,
  type WorkflowStep,
} from "pawl";
import { execute, type DoNode, type Node, type Outside } from "../../../pawl/test/sim/program.js";
import { openStore, type StorePlace } from "../support/open-store.js";
import { LedgerFile } from "./ledger-file.js";

export type WorkerOptions = {
  readonly name: string;
  readonly role: "api" | "runner";
  readonly place: StorePlace;
  readonly ledger: string;
  readonly leaseMs: number;
};

export type ProgramParams = { readonly program: Node; readonly of?: string };

const options = JSON.parse(process.argv[2] ?? "") as WorkerOptions;
const ledger = new LedgerFile(options.ledger);

const PROGRAM = defineWorkflow({
  name: "program",
  async run(event: WorkflowEvent<ProgramParams>, step: WorkflowStep): Promise<unknown> {
    const run = `${event.instanceId}#${event.runNumber}`;
    const nothing: Node = { kind: "seq", items: [] };
    const create = async (id: string, of?: string): Promise<void> => {
      const params = { program: nothing, ...(of === undefined ? {} : { of }) };
      const { PROGRAM: own } = pawl.workflows;
      await own.create({ id, params }).catch((error: { code?: string }) => {
        // An attempt whose process died has already created it.
        if (error.code !== "INSTANCE_ID_ALREADY_EXISTS") throw error;
      });
    };
    const outside: Outside = {
      sleep: (ms) => sleep(ms),
      called: () => 0,
      saw: () => {},
      body: (node, context, _known, first) => body(run, node, context, first),
      child: (name) => create(`${run}-${name}`.replace("#", "-"), `${run} ${name}`),
      spawn: (name) => create(`${run}-${name}`.replace("#", "-")),
    };
    return execute(event.payload.program, step, outside);
  },
});

async function body(
  run: string,
  node: DoNode,
  { attempt, signal }: StepContext,
  first: () => Promise<void>,
): Promise<unknown> {
  const token = randomUUID();
  ledger.write({
    what: "entered",
    token,
    run,
    step: node.name,
    attempt,
    maxAttempts: node.limit === null ? null : node.limit + 1,
    process: options.name,
    enteredAt: Date.now(),
  });
  let isOver = false;
  signal.addEventListener("abort", () => {
    const { message } = signal.reason as Error;
    if (!isOver && message === "the runner is stopping") ledger.write({ what: "gave back", token });
  });
  try {
    await first();
    await sleep(node.takesMs);
    if (node.kills.includes(attempt)) {
      process.kill(process.pid, "SIGKILL");
      await new Promise(() => {});
    }
    if (attempt <= node.failures) throw new Error(`failed ${node.name}`);
  } catch (error) {
    isOver = true;
    ledger.write({ what: "failed", token });
    throw error;
  }
  isOver = true;
  ledger.write({ what: "returned", token });
  return { step: node.name, token };
}

const logger = {
  debug() {},
  info() {},
  warn: (event: string, fields?: object) => process.send?.({ level: "warn", event, ...fields }),
  error: (event: string, fields?: object) => process.send?.({ level: "error", event, ...fields }),
};
const pawl = createWorkflows({
  workflows: { PROGRAM },
  store: await openStore(options.place),
  logger,
});
process.on("disconnect", () => process.exit(99));

if (options.role === "api") {
  const server = await serve(pawl, { port: 0 });
  drainOnSignals([server]);
  process.send?.({ ready: server.url });
} else {
  const runner = startRunner(pawl, { concurrency: 50, leaseMs: options.leaseMs });
  drainOnSignals([runner], { timeoutMs: 500 });
  process.send?.({ ready: "" });
}

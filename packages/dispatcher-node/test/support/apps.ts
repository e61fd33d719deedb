import { fork } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { openSqlite } from "@pawl/dispatcher-node";
import { createWorkflows, type Store } from "pawl";
import { sqliteStore } from "pawl/sqlite";
import { database } from "../../../pawl/test/support/database.js";
import { temporaryFolder } from "../../../pawl/test/support/folder.js";
import type { Scope } from "../../../pawl/test/support/scope.js";
import { until } from "../../../pawl/test/support/until.js";
import type { AppOptions } from "./app.js";
import type { StorePlace } from "./open-store.js";
import { workflow, type Trace } from "./work.js";

export type App = {
  readonly pid: number;
  /** The entries that it has logged, from `info` on. */
  readonly events: readonly { readonly event: string }[];
  signal(signal: NodeJS.Signals): void;
  exited(): Promise<{ code: number | null; signal: NodeJS.Signals | null }>;
  /** The text that it wrote to stderr. */
  errors(): string;
};

/** The poll is too slow to help in any test. */
const defaults = { leaseMs: 2_000, drainMs: 10_000, pollMs: 600_000 };

/** Opens a migrated database, with what bodies leave behind and a way to start processes on it. */
export async function stage(
  scope: Scope,
  kind: StorePlace["kind"],
  given: { readonly url?: string } = {},
) {
  const folder = temporaryFolder(scope);
  const { place, store } = await somewhere(scope, kind, folder, given);
  const workflows = {
    WORK: workflow(
      () => {},
      () => true,
    ),
  };
  const pawl = createWorkflows({ workflows, store });
  await pawl.migrate();
  return {
    place,
    pawl,
    work: pawl.workflows.WORK,
    open: (gate: string) => writeFileSync(path.join(folder, gate), ""),
    ledger: () => ledgerIn(folder),
    /** Waits until a body has left a trace like this. */
    traced: (wanted: Partial<Trace>) =>
      until(
        () => ledgerIn(folder).find((trace) => matches(trace, wanted)),
        `a trace of ${JSON.stringify(wanted)}`,
      ),
    start: (file: string, options: Partial<AppOptions> = {}) =>
      start(scope, file, { place, folder, ...defaults, ...options }),
  };
}

function matches(trace: Trace, wanted: Partial<Trace>): boolean {
  return Object.entries(wanted).every(([key, value]) => trace[key as keyof Trace] === value);
}

function ledgerIn(folder: string): Trace[] {
  const file = path.join(folder, "ledger");
  if (!existsSync(file)) return [];
  const lines = readFileSync(file, "utf8").split("\n").slice(0, -1);
  return lines.map((line) => JSON.parse(line) as Trace);
}

async function somewhere(
  scope: Scope,
  kind: StorePlace["kind"],
  folder: string,
  given: { readonly url?: string },
): Promise<{ place: StorePlace; store: Store }> {
  if (kind === "sqlite") {
    const at = path.join(folder, "pawl.db");
    const handle = openSqlite(at);
    scope.defer(() => handle.close());
    const store = sqliteStore(handle);
    scope.defer(() => store.close());
    return { place: { kind, at, name: "" }, store };
  }
  const db = await database(scope, kind, given);
  return { place: { kind, at: db.url, name: db.name }, store: db.store() };
}

async function start(scope: Scope, file: string, options: AppOptions): Promise<App> {
  const child = fork(file, [JSON.stringify(options)], {
    execArgv: ["--unhandled-rejections=strict"],
    env: { ...process.env, NODE_OPTIONS: "" },
    stdio: ["ignore", "ignore", "pipe", "ipc"],
  });
  let errors = "";
  child.stderr?.on("data", (chunk) => (errors += String(chunk)));
  const events: { event: string }[] = [];
  const exit = once(child, "exit") as Promise<[number | null, NodeJS.Signals | null]>;
  scope.defer(async () => {
    child.kill("SIGKILL");
    await exit;
  });
  const ready = new Promise<void>((resolve, reject) => {
    child.on("message", (message: { event: string } | "ready") => {
      if (message === "ready") resolve();
      else events.push(message);
    });
    void exit.then(() => reject(new Error(`the process ended: ${errors}`)));
  });
  await ready;
  return {
    pid: child.pid as number,
    events,
    errors: () => errors,
    signal: (signal) => void child.kill(signal),
    exited: async () => {
      const [code, signal] = await exit;
      return { code, signal };
    },
  };
}

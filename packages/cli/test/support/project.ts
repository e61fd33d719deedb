import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { vi } from "vitest";
import type { Scope } from "../../../pawl/test/support/scope.js";
import { until } from "../../../pawl/test/support/until.js";

// A command takes half a second of processor time, and a busy machine has little of that.
vi.setConfig({ testTimeout: 240_000, hookTimeout: 240_000 });

const root = fileURLToPath(new URL("../../../../", import.meta.url));
const environment = { ...process.env, NODE_OPTIONS: "", PAWL_URL: "", PAWL_TOKEN: "" };
const bin = path.join(root, "packages/cli/bin/pawl.js");

/** An order with a retry, an approval wait and values that JSON cannot hold. */
export const orderCode = `
import { WorkflowEntrypoint, type WorkflowEvent, type WorkflowStep } from "pawl";

enum Outcome {
  Paid = "paid",
}

type Order = { readonly amount: number };

export class OrderWorkflow extends WorkflowEntrypoint<unknown, Order> {
  async run(event: WorkflowEvent<Order>, step: WorkflowStep) {
    const retries = { limit: 2, delay: "1 ms" } as const;
    const payment = await step.do("charge the card", { retries }, ({ attempt }) => {
      if (attempt === 1) throw new Error("the bank is away \\u001B[31m");
      return { outcome: Outcome.Paid, amount: event.payload.amount, at: new Date(0) };
    });
    const approval = await step.waitForEvent("approval", { type: "approved", timeout: "7 days" });
    return { payment, approval: approval.payload };
  }
}
`;

export const otherCode = `
import { defineWorkflow, NonRetryableError } from "pawl";

export const failing = defineWorkflow({
  name: "fails always",
  run: (_event, step) =>
    step.do("fail", () => {
      throw new NonRetryableError("no");
    }),
});

export const echo = defineWorkflow({ name: "echo", run: async (event) => event.payload });
`;

/** A step that takes its time, and keeps a ledger. */
export function slowCode(ms: number): string {
  return `
import { appendFileSync } from "node:fs";
import { setTimeout as pause } from "node:timers/promises";
import { defineWorkflow } from "pawl";

export const failing = defineWorkflow({
  name: "slow",
  run: (_event, step) =>
    step.do("work", async ({ attempt }) => {
      appendFileSync("ledger", "begin " + attempt + "\\n");
      await pause(${ms});
      appendFileSync("ledger", "end\\n");
    }),
});
export const echo = defineWorkflow({ name: "echo", run: async (event) => event.payload });
`;
}

export const sqliteConfig = configFor({
  imports: `
import { openSqlite } from "@pawl/dispatcher-node";
import { sqliteStore } from "pawl/sqlite";`,
  store: `sqliteStore(openSqlite("pawl.db"))`,
});

export function configFor({
  imports,
  store,
  options = "",
  close = "",
}: {
  readonly imports: string;
  readonly store: string;
  readonly options?: string;
  readonly close?: string;
}): string {
  return `
import { defineConfig } from "@pawl/cli";
import { createWorkflows } from "pawl";${imports}
import { OrderWorkflow } from "./src/order.js";
import { echo, failing } from "./src/other.js";

export default defineConfig(({ logger }) => ({
  pawl: createWorkflows({
    workflows: { ORDER: { name: "order", workflow: OrderWorkflow }, FAILING: failing, ECHO: echo },
    store: ${store},
    logger,${options}
  }),${close}
}));
`;
}

export type Ran = {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
};

type RunOptions = {
  readonly input?: string | Buffer;
  readonly env?: Readonly<Record<string, string>>;
  readonly cwd?: string;
};

/** A folder with a config and its workflows, where the real command is called. */
export class Project {
  readonly folder: string;
  readonly #scope: Scope;

  private constructor(folder: string, scope: Scope) {
    this.folder = folder;
    this.#scope = scope;
  }

  /** Makes a project inside the repository, so that the packages are found. */
  static async make(scope: Scope, files: Readonly<Record<string, string>> = {}): Promise<Project> {
    await mkdir(path.join(root, ".cache"), { recursive: true });
    const folder = await mkdtemp(path.join(root, ".cache", "cli-"));
    scope.defer(() => rm(folder, { recursive: true, force: true }));
    const project = new Project(folder, scope);
    const all = {
      "pawl.config.ts": sqliteConfig,
      "src/order.ts": orderCode,
      "src/other.ts": otherCode,
      ...files,
    };
    for (const [name, text] of Object.entries(all)) await project.write(name, text);
    return project;
  }

  async write(name: string, text: string | Buffer): Promise<void> {
    const file = path.join(this.folder, name);
    await mkdir(path.dirname(file), { recursive: true });
    await writeFile(file, text);
  }

  async run(args: readonly string[], options: RunOptions = {}): Promise<Ran> {
    const child = this.#spawn(args, options);
    child.stdin?.on("error", () => {}); // the command need not read its input
    child.stdin?.end(options.input ?? "");
    const [code] = (await once(child, "close")) as [number | null];
    return { code, stdout: child.stdoutText(), stderr: child.stderrText() };
  }

  /** Runs a line in a shell that finds `pawl`. */
  async shell(line: string): Promise<{ readonly code: number | null; readonly output: string }> {
    const child = spawn("sh", ["-c", `pawl() { "$NODE" "$BIN" "$@"; }\n${line}`], {
      cwd: this.folder,
      env: { ...environment, NODE: process.execPath, BIN: bin },
      stdio: ["ignore", "pipe", "pipe"],
    });
    let output = "";
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding("utf8").on("data", (text: string) => (output += text));
    }
    const [code] = (await once(child, "close")) as [number | null];
    return { code, output };
  }

  /** Runs a command that must succeed, and returns its answer in JSON. */
  async json<T>(args: readonly string[], options: RunOptions = {}): Promise<T> {
    const { code, stdout, stderr } = await this.run([...args, "--json"], options);
    if (code !== 0) throw new Error(`pawl ${args.join(" ")} ended with ${code}: ${stderr}`);
    return JSON.parse(stdout) as T;
  }

  /** Starts `pawl dev`, until the scope ends. */
  async dev(args: readonly string[] = [], options: RunOptions = {}): Promise<Dev> {
    const dev = new Dev(this.start(["dev", "--port", "0", ...args], options));
    await dev.url();
    return dev;
  }

  /** Starts a command without waiting for its end. */
  start(args: readonly string[], options: RunOptions = {}): Running {
    const child = this.#spawn(args, options);
    this.#scope.defer(async () => {
      if (child.exitCode !== null || child.signalCode !== null) return;
      child.kill("SIGTERM");
      await until(() => child.exitCode !== null || child.signalCode !== null, "ended");
    });
    return child;
  }

  #spawn(args: readonly string[], { env = {}, cwd = this.folder }: RunOptions): Running {
    const child = spawn(process.execPath, [bin, ...args], {
      cwd,
      env: { ...environment, ...env },
    });
    const texts = { stdout: "", stderr: "" };
    for (const name of ["stdout", "stderr"] as const) {
      child[name].setEncoding("utf8").on("data", (text: string) => (texts[name] += text));
    }
    return Object.assign(child, {
      stdoutText: () => texts.stdout,
      stderrText: () => texts.stderr,
    });
  }
}

export type Running = ChildProcess & { stdoutText(): string; stderrText(): string };

export class Dev {
  readonly child: Running;

  constructor(child: Running) {
    this.child = child;
  }

  /** Returns the URL of its API. */
  async url(): Promise<string> {
    return this.saysOut(/http:\/\/\S+\/api/);
  }

  saysOut(what: RegExp): Promise<string> {
    return this.#says(what, () => this.child.stdoutText());
  }

  saysErr(what: RegExp): Promise<string> {
    return this.#says(what, () => this.child.stderrText());
  }

  async exited(): Promise<number | null> {
    await until(() => this.child.exitCode !== null || this.child.signalCode !== null, "ended");
    return this.child.exitCode;
  }

  async #says(what: RegExp, text: () => string): Promise<string> {
    try {
      return await this.#found(what, text);
    } catch (error) {
      const said = `${this.child.stdoutText()}\n${this.child.stderrText()}`;
      throw new Error(`dev did not say ${what}, but: ${said}`, { cause: error });
    }
  }

  #found(what: RegExp, text: () => string): Promise<string> {
    return until(
      () => {
        const found = what.exec(text())?.[0];
        if (found === undefined && this.child.exitCode !== null) {
          throw new Error("dev ended");
        }
        return found;
      },
      `said ${what}`,
      20,
    );
  }
}

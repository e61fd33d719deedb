import { fork, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import type { Scope } from "../../../pawl/test/support/scope.js";
import type { WorkerOptions } from "./worker.js";

/** A process that is started again whenever it has ended. */
export class Process {
  readonly #file: string;
  readonly #options: WorkerOptions;
  #child: ChildProcess | null = null;
  #exited: Promise<unknown> = Promise.resolve();
  #stderr = "";
  #url = "";
  #starts = 0;
  #wasAskedToEnd = false;
  #isOver = false;
  /** Ends that nobody asked for. A process may be killed, but must not fall over. */
  readonly collapses: string[] = [];
  /** Instances whose code did not call its recorded steps in time, as after a long wait for a server that is away. */
  readonly diverged = new Set<string>();

  constructor(scope: Scope, file: string, options: WorkerOptions) {
    this.#file = file;
    this.#options = options;
    scope.defer(() => this.#end());
  }

  /** The URL at which it serves, if it does. */
  get url(): string {
    return this.#url;
  }

  async start(): Promise<void> {
    const name = `${this.#options.name}.${++this.#starts}`;
    const child = fork(this.#file, [JSON.stringify({ ...this.#options, name })], {
      execArgv: ["--unhandled-rejections=strict"],
      env: { ...process.env, NODE_OPTIONS: "" },
      stdio: ["ignore", "ignore", "pipe", "ipc"],
    });
    this.#child = child;
    this.#stderr = "";
    child.stderr?.on("data", (chunk) => (this.#stderr = `${this.#stderr}${chunk}`.slice(-2_000)));
    const exited = once(child, "exit") as Promise<[number | null, NodeJS.Signals | null]>;
    this.#exited = exited.then(([code, signal]) => this.#ended(name, code, signal));
    const ready = new Promise<void>((resolve) => {
      child.on("message", (message: { ready?: string; event?: string; id?: string }) => {
        if (message.event === "step.missing") this.diverged.add(message.id ?? "");
        if (message.event === "invariant.broken") {
          this.collapses.push(`${name} broke an invariant: ${JSON.stringify(message)}`);
        }
        if (message.ready === undefined) return;
        this.#url = message.ready;
        resolve();
      });
    });
    await Promise.race([ready, this.#exited]);
  }

  #ended(name: string, code: number | null, signal: NodeJS.Signals | null): void {
    this.#child = null;
    if (this.#isOver) return;
    // A process that was asked to end may be too late, be asked twice, or not be ready to listen.
    const isExpected = signal === "SIGKILL" || this.#wasAskedToEnd;
    this.#wasAskedToEnd = false;
    if (!isExpected) {
      this.collapses.push(`${name} ended with ${code ?? signal}: ${this.#stderr}`);
    }
    void this.start();
  }

  /** Kills it with kill -9. A new one starts at once. */
  kill(): void {
    this.#child?.kill("SIGKILL");
  }

  /** Asks it to end. A new one starts when it has. */
  terminate(): void {
    this.#wasAskedToEnd = true;
    this.#child?.kill("SIGTERM");
  }

  freeze(): void {
    this.#child?.kill("SIGSTOP");
  }

  thaw(): void {
    this.#child?.kill("SIGCONT");
  }

  async #end(): Promise<void> {
    this.#isOver = true;
    this.#child?.kill("SIGKILL");
    await this.#exited;
  }
}

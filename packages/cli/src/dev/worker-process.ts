import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";

export type WorkerOptions = {
  readonly config: string;
  readonly json: boolean;
  readonly migrate: boolean;
  readonly port: number | undefined;
  readonly host: string | undefined;
  /** True for the first process, which introduces itself. */
  readonly isFirst: boolean;
};

/** A message of the process: how far it has come. */
export type WorkerMessage =
  | { readonly kind: "loaded"; readonly watch: readonly string[] | undefined }
  | { readonly kind: "listening"; readonly port: number }
  /** The reader of its output has gone. */
  | { readonly kind: "unread" };

/** The process is killed after this time, which is longer than it needs to drain. */
const KILL_MS = 20_000;

export class Worker {
  /** The code with which the process ended. */
  readonly exited: Promise<number>;
  port: number | undefined;
  /** Resolves when nobody reads its output any more, as in `pawl dev | head`. */
  readonly unread: Promise<"stop">;
  readonly #child: ChildProcess;

  constructor(options: WorkerOptions, onLoaded: (watch: readonly string[] | undefined) => void) {
    const file = fileURLToPath(new URL("worker.js", import.meta.url));
    this.#child = fork(file, [JSON.stringify(options)], {
      stdio: ["ignore", "inherit", "inherit", "ipc"],
    });
    this.unread = new Promise((resolve) => {
      this.#child.on("message", (message: WorkerMessage) => {
        if (message.kind === "loaded") onLoaded(message.watch);
        else if (message.kind === "listening") this.port = message.port;
        else resolve("stop");
      });
    });
    this.exited = once(this.#child, "exit").then(([code]: (number | null)[]) => code ?? 1);
  }

  /** Lets the process drain for a while. */
  async stop(): Promise<void> {
    if (this.#child.connected) this.#child.disconnect();
    const timer = setTimeout(() => this.kill(), KILL_MS);
    await this.exited;
    clearTimeout(timer);
  }

  kill(): void {
    this.#child.kill("SIGKILL");
  }
}

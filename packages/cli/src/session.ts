import { constants } from "node:os";
import type { Logger } from "pawl";
import type { PawlConfig } from "./config.js";
import { exitCode, Failure, failureOf } from "./failure.js";
import type { InputSource } from "./input.js";
import { findConfig, loadConfig } from "./load-config.js";
import { inProcess, overHttp, type CommandTarget } from "./target.js";
import { quietLogger } from "./terminal/log.js";
import { shellWord } from "./terminal/shell.js";
import { Terminal } from "./terminal/terminal.js";

/** The options that every command has. */
export type CommonOptions = {
  readonly config?: string;
  readonly url?: string;
  readonly token?: string;
  readonly json?: boolean;
};

/** One command, from its options to the end of the process. */
export class Session implements InputSource {
  readonly command: string;
  readonly terminal: Terminal;
  readonly #cwd = currentFolder();
  readonly stdin = process.stdin;
  readonly #options: CommonOptions;
  #target: CommandTarget | null = null;
  #onSignal: ((signal: NodeJS.Signals) => void) | null = null;

  constructor(command: string, options: CommonOptions) {
    this.command = command;
    this.#options = options;
    this.terminal = new Terminal({ json: options.json ?? false });
  }

  /** The folder in which the command was called. Loading a config moves the process elsewhere. */
  get cwd(): string {
    if (this.#cwd !== null) return this.#cwd;
    throw new Failure("usage", "NO_FOLDER", "the folder you are in does not exist any more");
  }

  /** The address of the API, unless a config was named. */
  get url(): string | undefined {
    const { config, url } = this.#options;
    if (url !== undefined) return url;
    return config === undefined ? process.env["PAWL_URL"] || undefined : undefined;
  }

  /** The options that lead to the same place, for a command that people copy. */
  get placeOptions(): string {
    const { config, url } = this.#options;
    if (url !== undefined) return ` --url ${shellWord(url)}`;
    return config === undefined ? "" : ` --config ${shellWord(config)}`;
  }

  get configFile(): string {
    return findConfig(this.#options.config, this.cwd);
  }

  async target(): Promise<CommandTarget> {
    const { url } = this;
    if (url === undefined) return inProcess(await this.config());
    return (this.#target = overHttp(url, this.#token));
  }

  get #token(): string | undefined {
    return this.#options.token ?? (process.env["PAWL_TOKEN"] || undefined);
  }

  /** Loads the config, for commands that need the code or the database itself. */
  async config(logger: Logger = quietLogger(this.terminal)): Promise<PawlConfig> {
    if (this.url !== undefined) {
      throw new Failure(
        "usage",
        "CONFIG_NEEDED",
        `${this.command} works on a config, not on a URL`,
        {
          hint: `leave out --url (and PAWL_URL), or name the config: pawl ${this.command} --config pawl.config.ts`,
        },
      );
    }
    this.terminal.keepForAnswer();
    const config = await loadConfig(this.configFile, { command: this.command, logger });
    this.#target = inProcess(config);
    return config;
  }

  /** Runs the command. The process ends with its code, whatever is still open. */
  async run(work: (session: Session) => Promise<number | void>): Promise<never> {
    this.#endOnSignals();
    let code: number = exitCode.ok;
    try {
      code = (await work(this)) ?? exitCode.ok;
    } catch (error) {
      code = this.#report(error);
    }
    return this.#end(code);
  }

  #report(error: unknown): number {
    const failure = failureOf(error, {
      hasToken: this.#token !== undefined,
      hasUrl: this.url !== undefined,
    });
    this.terminal.fail(failure);
    if (process.env["PAWL_DEBUG"]) console.error(failure.cause ?? failure);
    return failure.exit;
  }

  async #end(code: number): Promise<never> {
    try {
      await this.#target?.close();
    } catch (error) {
      if (code === exitCode.ok) code = this.#report(error);
    }
    await this.terminal.flush();
    process.exit(code);
  }

  /** Hands signals to a command that ends in its own way. */
  takeSignals(handler: (signal: NodeJS.Signals) => void): void {
    this.#onSignal = handler;
  }

  /** Ends on signals. The first one gives back what is claimed; the second does not wait for that. */
  #endOnSignals(): void {
    let isEnding = false;
    for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
      process.on(signal, () => {
        if (this.#onSignal !== null) return this.#onSignal(signal);
        const code = 128 + constants.signals[signal];
        if (isEnding) process.exit(code);
        isEnding = true;
        void this.#end(code);
      });
    }
  }
}

function currentFolder(): string | null {
  try {
    return process.cwd();
  } catch {
    return null;
  }
}

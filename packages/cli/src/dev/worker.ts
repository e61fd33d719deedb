import { serve, startRunner } from "@pawl/dispatcher-node";
import type { Logger } from "pawl";
import type { PawlConfig } from "../config.js";
import { failureOf } from "../failure.js";
import { loadConfig } from "../load-config.js";
import { inProcess } from "../target.js";
import { logLine } from "../terminal/log.js";
import { shellWord } from "../terminal/shell.js";
import { Terminal } from "../terminal/terminal.js";
import { counted } from "../terminal/text.js";
import { withoutExperimentalWarnings } from "../terminal/warnings.js";
import { LiveLog } from "./live-log.js";
import type { WorkerMessage, WorkerOptions } from "./worker-process.js";

const PORT = 3000;
const DRAIN_MS = 10_000;

// This is the process of `pawl dev` that runs the user's code. It ends when the watching process says so, or has gone.
// A Ctrl-C reaches both processes, and the watching one decides.
for (const signal of ["SIGINT", "SIGHUP"] as const) process.on(signal, () => {});
for (const stream of [process.stdout, process.stderr]) {
  stream.on("error", ({ code }: NodeJS.ErrnoException) => {
    if (code === "EPIPE") tell({ kind: "unread" });
  });
}
const stopped = new Promise<void>((resolve) => {
  process.once("disconnect", resolve);
  process.once("SIGTERM", () => resolve());
});

withoutExperimentalWarnings();
const options = JSON.parse(process.argv[2] ?? "{}") as WorkerOptions;
const terminal = new Terminal({ json: options.json });
terminal.keepForAnswer();
let config: PawlConfig | null = null;
let live: LiveLog | null = null;
try {
  config = await loadConfig(options.config, { command: "dev", logger: devLogger(terminal) });
  tell({ kind: "loaded", watch: config.dev?.watch });
  await run(config);
} catch (error) {
  const failure = failureOf(error);
  terminal.fail(failure);
  if (config !== null) await inProcess(config).close();
  process.exit(failure.exit);
}
await terminal.flush();
process.exit(0);

async function run(loaded: PawlConfig): Promise<void> {
  const { pawl, dev } = loaded;
  if (options.migrate) await migrate(loaded);
  const server = await serve(pawl, {
    port: options.port ?? dev?.port ?? PORT,
    host: options.host ?? dev?.host,
  });
  tell({ kind: "listening", port: Number(new URL(server.url).port) });
  live = new LiveLog(inProcess(loaded), terminal);
  await live.begin();
  const runner = startRunner(pawl);
  await introduce(loaded, server.url);
  const following = live.follow();
  await stopped;
  await Promise.all([server.close({ timeoutMs: DRAIN_MS }), runner.stop({ timeoutMs: DRAIN_MS })]);
  live.end();
  await following;
  await inProcess(loaded).close();
}

async function migrate({ pawl }: PawlConfig): Promise<void> {
  const { from, to, statements } = await pawl.options.store.planMigration();
  if (statements.length === 0) return;
  await pawl.migrate();
  terminal.note(`migrated the database from schema version ${from} to ${to}`);
}

async function introduce({ pawl }: PawlConfig, url: string): Promise<void> {
  const names = Object.values(pawl.options.workflows).map(({ name }) => name);
  const api = `${url}${pawl.options.basePath}`;
  if (terminal.json)
    return terminal.line(JSON.stringify({ kind: "listening", url: api, workflows: names }));
  if (!options.isFirst) return terminal.note(`running again: ${counted(names.length, "workflow")}`);
  const { bold, dim, cyan } = terminal.colors;
  await terminal.lines([
    `${bold("pawl dev")}   ${cyan(api)}`,
    `${dim("workflows")}  ${names.join(", ")}`,
    `${dim("try")}        pawl start ${shellWord(names[0] ?? "")} --url ${url}`,
    "",
  ]);
}

function devLogger(to: Terminal): Logger {
  const note = (event: string, fields?: object): void => {
    const text = logLine(event, fields);
    if (event === "step.failed" && live !== null) live.note(text);
    else to.note(text);
  };
  // The live log shows what runs and steps do.
  return { debug() {}, info: note, warn: note, error: note };
}

function tell(message: WorkerMessage): void {
  // The watching process may be gone before this one has heard of it.
  if (process.connected) process.send?.(message, undefined, {}, () => {});
}

import path from "node:path";
import { constants } from "node:os";
import { exitCode, Failure } from "../failure.js";
import type { Session } from "../session.js";
import { counted } from "../terminal/text.js";
import { FileChanges } from "./file-changes.js";
import { Worker, type WorkerOptions } from "./worker-process.js";

export type DevOptions = {
  readonly port?: number;
  readonly host?: string;
  readonly watch: boolean;
  readonly migrate: boolean;
};

/**
 * Runs the config in a process of its own, and starts that again when a file changes. So nothing of the old code is
 * left, and code that breaks its process does not break this one.
 */
export async function dev(session: Session, options: DevOptions): Promise<number> {
  const { terminal, configFile } = session;
  if (session.url !== undefined) {
    throw new Failure("usage", "CONFIG_NEEDED", "dev works on a config, not on a URL", {
      hint: "leave out PAWL_URL, or name the config: pawl dev --config pawl.config.ts",
    });
  }
  const stopping = stopOnSignals(session);
  const changes = options.watch ? new FileChanges(path.dirname(configFile)) : null;
  let given: WorkerOptions = {
    config: configFile,
    json: terminal.json,
    migrate: options.migrate,
    port: options.port,
    host: options.host,
    isFirst: true,
  };
  for (;;) {
    const worker = new Worker(given, (watch) => changes?.follow(watch));
    stopping.worker = worker;
    const changed = changes?.next() ?? new Promise<never>(() => {});
    const happened = await Promise.race([changed, stopping.asked, worker.unread, worker.exited]);
    if (happened === "stop") {
      await worker.stop();
      return exitCode.ok;
    }
    if (typeof happened === "number") {
      if (changes === null) return happened || exitCode.failed;
      terminal.note("stopped; it starts again when a file changes (Ctrl-C ends)");
      if ((await Promise.race([changed, stopping.asked])) === "stop") return exitCode.ok;
    }
    const files = await changed;
    terminal.note(`${told(files, path.dirname(configFile))} changed: restarting`);
    await worker.stop();
    // The next process takes the same port, even if any free one was asked for, so that addresses that people copied
    // stay right.
    given = {
      ...given,
      port: worker.port ?? given.port,
      isFirst: given.isFirst && worker.port === undefined,
    };
  }
}

function told(files: readonly string[], folder: string): string {
  const [first] = files;
  if (files.length === 1 && first !== undefined) return path.relative(folder, first);
  return counted(files.length, "file");
}

/** Stops on signals. The first one drains; the second does not wait for that. */
function stopOnSignals(session: Session): {
  readonly asked: Promise<"stop">;
  worker: Worker | null;
} {
  let ask: (() => void) | null = null;
  const asked = new Promise<"stop">((resolve) => (ask = () => resolve("stop")));
  const stopping: { readonly asked: Promise<"stop">; worker: Worker | null } = {
    asked,
    worker: null,
  };
  session.takeSignals((signal) => {
    if (ask === null) {
      stopping.worker?.kill();
      process.exit(128 + constants.signals[signal]);
    }
    session.terminal.note("stopping: running steps may end (again to stop at once)");
    ask();
    ask = null;
  });
  return stopping;
}

import { type ChildProcess, execFile, fork } from "node:child_process";
import { once } from "node:events";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import type { Store, StoreVerb } from "../../src/store/store.js";
import type { Scope } from "./scope.js";
import type { Answer, Call, WorkerPlace } from "./worker.js";

const root = fileURLToPath(new URL("../../../../", import.meta.url));

/** Compiles the worker and the sources that it needs; answers its file. Inside the repository, to find the drivers. */
export async function compileWorker(scope: Scope): Promise<string> {
  await mkdir(path.join(root, ".cache"), { recursive: true });
  const folder = await mkdtemp(path.join(root, ".cache", "worker-"));
  scope.defer(() => rm(folder, { recursive: true }));
  const config = {
    extends: path.join(root, "tsconfig.base.json"),
    compilerOptions: {
      types: ["node"],
      composite: false,
      sourceMap: false,
      noCheck: true, // that is `npm run check`'s
      rootDir: path.join(root, "packages/pawl"),
      outDir: folder,
    },
    files: [path.join(root, "packages/pawl/test/support/worker.ts")],
  };
  await writeFile(path.join(folder, "tsconfig.json"), JSON.stringify(config));
  const tsc = path.join(root, "node_modules/typescript/bin/tsc");
  await promisify(execFile)(process.execPath, [tsc, "-p", folder]);
  return path.join(folder, "test/support/worker.js");
}

type Verbs = { [V in StoreVerb]: (...args: Parameters<Store[V]>) => ReturnType<Store[V]> };

export type Worker = Verbs & {
  clock(): Promise<{ now: number; zone: number }>;
  claimAll(runner: string, handler: string, limit: number): Promise<string[]>;
  createTogether(
    ...instances: readonly Parameters<Store["create"]>[0][number][]
  ): Promise<Awaited<ReturnType<Store["create"]>>[]>;
  /** kill -9 */
  kill(): Promise<void>;
};

/** A process with a store of its own; gone with its scope. */
export async function startWorker(
  scope: Scope,
  file: string,
  place: WorkerPlace,
  env: Readonly<Record<string, string>> = {},
): Promise<Worker> {
  const child = fork(file, [JSON.stringify(place)], {
    execArgv: [],
    env: { ...process.env, NODE_OPTIONS: "", ...env },
  });
  const waiting = new Map<number, (answer: Answer) => void>();
  const exited = once(child, "exit").then(() => {
    for (const [id, answer] of waiting) answer({ id, error: "the process ended" });
  });
  const kill = async (): Promise<void> => {
    child.kill("SIGKILL");
    await exited;
  };
  scope.defer(kill);
  child.on("message", (answer: Answer) => {
    waiting.get(answer.id)?.(answer);
    waiting.delete(answer.id);
  });
  const ask = (id: number, call?: Omit<Call, "id">): Promise<unknown> =>
    new Promise((resolve, reject) => {
      waiting.set(id, ({ value, error }) =>
        error === undefined ? resolve(value) : reject(new Error(error)),
      );
      if (call !== undefined) send(child, { id, ...call });
    });
  await ask(0);
  let calls = 0;
  return new Proxy({ kill } as Worker, {
    get: (own, verb: string) => {
      if (verb === "then") return undefined; // not a promise
      if (verb in own) return own[verb as keyof Worker];
      return (...args: unknown[]) => ask(++calls, { verb, args });
    },
  });
}

function send(child: ChildProcess, call: Call): void {
  child.send(call);
}

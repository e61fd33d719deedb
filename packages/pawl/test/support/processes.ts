import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import type { Store, StoreVerb } from "../../src/store/store.js";
import type { Scope } from "./scope.js";
import type { Answer, Call, WorkerPlace } from "./worker.js";

type Verbs = { [V in StoreVerb]: (...args: Parameters<Store[V]>) => ReturnType<Store[V]> };

export type Worker = Verbs & {
  clock(): Promise<{ now: number; zone: number }>;
  claimAll(runner: string, handler: string, limit: number): Promise<string[]>;
  createTogether(
    ...instances: readonly Parameters<Store["create"]>[0][number][]
  ): Promise<Awaited<ReturnType<Store["create"]>>[]>;
  /** Kills the process with kill -9. */
  kill(): Promise<void>;
};

/** Starts a process with a store of its own, which goes with its scope. */
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

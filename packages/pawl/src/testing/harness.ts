import { assemble, type Assembled } from "../assemble.js";
import type { Bindings, InstanceStatus } from "../authoring/bindings.js";
import type { WorkflowsOptions } from "../authoring/options.js";
import type { Registry } from "../authoring/registry.js";
import { defaultTiming } from "../engine/run.js";
import { history, type History } from "../instances/history.js";
import { parseDurationMs, type WorkflowDuration } from "../model/duration.js";
import {
  defaultRunnerOptions,
  type Runner,
  type RunnerOptions,
  type TickOptions,
  type TickResult,
} from "../runner/runner.js";
import { webRuntime } from "../runtime.js";
import type { Store } from "../store/store.js";
import { VirtualTime } from "./virtual-time.js";

export type HarnessOptions<R extends Registry, Tx> = WorkflowsOptions<R, Tx> & {
  readonly store: Store<Tx>;
  readonly clock: VirtualTime;
  readonly runner?: Partial<RunnerOptions>;
};

const MAX_TICKS = 10_000;

/** Runs workflows under a clock that moves only when told. */
export class Harness<R extends Registry, Tx> {
  readonly workflows: Bindings<R, Tx>;
  readonly clock: HarnessClock;
  readonly #options: HarnessOptions<R, Tx>;
  readonly #time: VirtualTime;
  readonly #store: WatchedStore<Tx>;
  readonly #first: Assembled<R, Tx>;
  readonly #runners: Runner[];

  constructor(options: HarnessOptions<R, Tx>) {
    this.#options = options;
    this.#time = options.clock;
    this.#store = watched(options.store);
    this.#first = this.#assemble();
    this.workflows = this.#first.workflows;
    this.#runners = [this.#first.runner];
    this.clock = {
      now: () => this.#time.now(),
      advance: (by) => this.#advance(parseDurationMs(by, { field: "advance" })),
    };
  }

  #assemble(): Assembled<R, Tx> {
    return assemble(
      { ...this.#options, store: this.#store.store },
      {
        runtime: this.#time.runtime(),
        timing: defaultTiming,
        runner: { ...defaultRunnerOptions, ...this.#options.runner },
      },
    );
  }

  addRunner(): Runner {
    const { runner } = this.#assemble();
    this.#runners.push(runner);
    return runner;
  }

  get runner(): Runner {
    return this.#first.runner;
  }

  async crashRunner(runner: Runner): Promise<void> {
    runner.crash();
    this.#runners.splice(this.#runners.indexOf(runner), 1);
    await this.#settled();
  }

  async tick(options?: TickOptions): Promise<TickResult> {
    const results: TickResult[] = [];
    for (const runner of this.#runners) results.push(await runner.tick(options));
    return {
      processed: results.reduce((sum, { processed }) => sum + processed, 0),
      nextWakeInMs: results.at(-1)?.nextWakeInMs ?? null,
    };
  }

  /** Ticks until nothing is due any more. Time stands still. */
  async runUntilIdle(): Promise<void> {
    for (let n = 0; n < MAX_TICKS; n++) {
      const { processed, nextWakeInMs } = await this.tick();
      if (processed === 0 && (nextWakeInMs === null || nextWakeInMs > 0)) return;
    }
    throw new Error(`runUntilIdle: still busy after ${MAX_TICKS} ticks`);
  }

  async status(workflow: string, id: string): Promise<InstanceStatus> {
    const { entries } = this.#first.instances;
    const binding = entries.get(workflow)?.binding ?? "";
    return (await this.#first.workflows[binding as keyof R].get(id)).status();
  }

  history(workflow: string, id: string): Promise<History> {
    return history(this.#first.instances, workflow, id, { pageSize: 100 });
  }

  async #advance(ms: number): Promise<void> {
    const until = this.#time.now() + ms;
    await this.#settled();
    for (let timer = this.#time.takeNext(until); timer; timer = this.#time.takeNext(until)) {
      timer.callback();
      await this.#settled();
    }
    this.#time.set(until);
    await this.#settled();
  }

  /** All that can happen without waiting has happened. */
  async #settled(): Promise<void> {
    for (let quiet = 0; quiet < 5; quiet = this.#store.pending() > 0 ? 0 : quiet + 1) {
      await new Promise<void>((resolve) => webRuntime.scheduler.macrotask(resolve));
    }
  }
}

export type HarnessClock = {
  now(): number;
  advance(by: WorkflowDuration): Promise<void>;
};

type WatchedStore<Tx> = { readonly store: Store<Tx>; pending(): number };

/** Counts calls that are not answered yet. */
function watched<Tx>(store: Store<Tx>): WatchedStore<Tx> {
  let pending = 0;
  const proxy = new Proxy(store, {
    get(target, name) {
      const member: unknown = Reflect.get(target, name);
      if (typeof member !== "function") return member;
      return async (...args: unknown[]): Promise<unknown> => {
        pending += 1;
        try {
          return await member.apply(target, args);
        } finally {
          pending -= 1;
        }
      };
    },
  });
  return { store: proxy, pending: () => pending };
}

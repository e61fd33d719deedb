import { assemble, type Assembled } from "../assemble.js";
import type { Bindings, InstanceStatus, SentEvent } from "../authoring/bindings.js";
import type { WorkflowsOptions } from "../authoring/options.js";
import type { Registry } from "../authoring/registry.js";
import type { StepContext } from "../authoring/step.js";
import { defaultTiming } from "../engine/context.js";
import type { History, HistoryOptions, HistoryStep } from "../instances/history.js";
import { instanceNotFound } from "../instances/requests.js";
import { parseDurationMs, type WorkflowDuration } from "../model/duration.js";
import { quote } from "../model/quote.js";
import type { Cancel } from "../model/seams.js";
import type { InstanceStatusName } from "../model/status.js";
import {
  defaultRunnerOptions,
  type RunnerOptions,
  type TickOptions,
  type TickResult,
} from "../runner/options.js";
import type { Runner } from "../runner/runner.js";
import { webRuntime } from "../runtime.js";
import type { StepStatus } from "../model/step-types.js";
import type { Target } from "../model/target.js";
import type { Store } from "../store/store.js";
import { exportHistory, type ExportedHistory } from "./export-history.js";
import { Observer } from "./observer.js";
import { PendingWork } from "./pending-work.js";
import { StepDoubles } from "./step-doubles.js";
import { stillBusy, whatRuns } from "./still-busy.js";
import type { VirtualTime } from "./virtual-time.js";
import { watched, type WatchedStore } from "./watched-store.js";

export type HarnessParts<R extends Registry, Tx> = WorkflowsOptions<R, Tx> & {
  readonly store: Store<Tx>;
  /** The clock that the store was made with. */
  readonly clock: VirtualTime;
  /** The options of every runner: `concurrency`, `leaseMs`, … */
  readonly runner?: Partial<RunnerOptions> | undefined;
  /**
   * How long the harness waits in real time, in milliseconds, for code that makes no progress before it throws. Default
   * 4 seconds.
   */
  readonly timeoutMs?: number | undefined;
};

/** The names of a registry's workflows, if its type has them. */
export type WorkflowNameOf<R extends Registry> = R[keyof R]["name"];

/** The clock that the store and every workflow go by. */
export type HarnessClock = {
  /** Returns the time in milliseconds since 1970. */
  now(): number;
  /**
   * Moves the clock forward. Heartbeats and timeouts of running bodies happen on the way. Sleeps and retries that
   * became due run with the next tick.
   */
  advance(by: WorkflowDuration): Promise<void>;
};

export type DoubleOptions = {
  /** How many attempts the double stands in for, before the real body is called again. Default: all. */
  readonly times?: number | undefined;
};

export type IdleOptions = {
  /** How many ticks that find work may pass before it throws. Default 10,000. */
  readonly maxTicks?: number | undefined;
  /** How long it may take in real time, in milliseconds, before it throws. Default: the harness's `timeoutMs`. */
  readonly timeoutMs?: number | undefined;
};

export type WaitOptions = Pick<IdleOptions, "timeoutMs">;

// Test frameworks give up after 5 seconds, and say less about why.
const TIMEOUT_MS = 4_000;
const MAX_TICKS = 10_000;
const LONGEST_PAUSE_MS = 20;
const MAX_ADVANCE_MS = 3_650 * 86_400_000;

/** Runs workflows under a clock that moves only when told. `createHarness` makes one. */
export class Harness<R extends Registry, Tx> {
  /** The bindings of the workflows, as `createWorkflows` returns them. */
  readonly workflows: Bindings<R, Tx>;
  readonly clock: HarnessClock;
  readonly #options: HarnessParts<R, Tx>;
  readonly #time: VirtualTime;
  readonly #store: WatchedStore<Tx>;
  readonly #doubles = new StepDoubles();
  readonly #first: Assembled<R, Tx>;
  readonly #runners: Runner[];
  readonly #observer: Observer<Tx>;
  readonly #timeoutMs: number;
  readonly #pending = new PendingWork();

  constructor(options: HarnessParts<R, Tx>) {
    this.#options = options;
    this.#time = options.clock;
    this.#timeoutMs = options.timeoutMs ?? TIMEOUT_MS;
    this.#store = watched(options.store);
    this.#first = this.#assemble();
    this.#observer = new Observer(this.#first.instances);
    this.workflows = this.#first.workflows;
    this.#runners = [this.#first.runner];
    this.clock = {
      now: () => this.#time.now(),
      advance: (by) =>
        this.#advance(parseDurationMs(by, { field: "advance", maxMs: MAX_ADVANCE_MS })),
    };
  }

  #assemble(): Assembled<R, Tx> {
    return assemble(
      { ...this.#options, store: this.#store.store },
      {
        runtime: this.#pending.counted(this.#time.runtime()),
        timing: defaultTiming,
        runner: { ...defaultRunnerOptions, ...this.#options.runner },
        overrides: this.#doubles,
      },
    );
  }

  // Runners

  /** The runner that the harness starts with. */
  get runner(): Runner {
    return this.#first.runner;
  }

  /** Adds another runner on the same store, as if in another process, and returns it. */
  addRunner(): Runner {
    const { runner } = this.#assemble();
    this.#runners.push(runner);
    return runner;
  }

  /**
   * Ends a runner as if its process had died: it gives nothing back, and what its code still does is not stored. Its
   * runs are taken over when its lease has run out: move the clock. Throws if the harness does not have this runner.
   */
  async crashRunner(runner: Runner): Promise<void> {
    const place = this.#runners.indexOf(runner);
    if (place < 0) throw new Error("crashRunner: this harness has no such runner any more");
    this.#runners.splice(place, 1);
    runner.crash();
    await this.#settled(this.#deadline());
  }

  // Work

  /** Ticks every runner once. Resolves when all the runs that they claimed have parked, ended or used up the budget. */
  async tick(options?: TickOptions): Promise<TickResult> {
    this.#needRunner();
    const results = await Promise.all(this.#runners.map((runner) => runner.tick(options)));
    return {
      processed: results.reduce((sum, { processed }) => sum + processed, 0),
      nextWakeInMs: results.at(-1)?.nextWakeInMs ?? null,
    };
  }

  /**
   * Ticks until nothing is due and nothing runs any more. It does not move the clock. Throws if that takes too many
   * ticks, or too long in real time, and says what is still running.
   */
  async runUntilIdle(options: IdleOptions = {}): Promise<void> {
    await this.#drive(() => Promise.resolve(false), options);
  }

  /**
   * Ticks until the instance has this status, and returns its status with its output or error. It does not move the
   * clock. As soon as nothing is due any more it throws, and says where the instance stands instead.
   */
  async waitForStatus(
    workflow: WorkflowNameOf<R>,
    id: string,
    status: InstanceStatusName,
    options: WaitOptions = {},
  ): Promise<InstanceStatus> {
    const target = { workflow, id };
    const isReached = async (): Promise<boolean> =>
      (await this.#observer.status(target))?.status === status;
    if (!(await this.#drive(isReached, options))) {
      throw new Error(await this.#observer.notReached(target, `${quote(status)} was not reached`));
    }
    return this.status(workflow, id);
  }

  /**
   * Ticks until the step has this status, by default `"completed"`, and returns the step. `"running"` means that its
   * body has begun and not ended. It does not move the clock. As soon as nothing is due any more it throws, and says
   * where the instance stands instead.
   */
  async waitForStep(
    workflow: WorkflowNameOf<R>,
    id: string,
    step: string,
    status: StepStatus = "completed",
    options: WaitOptions = {},
  ): Promise<HistoryStep> {
    const target = { workflow, id };
    let found: HistoryStep | undefined;
    const isReached = async (): Promise<boolean> => {
      if (status === "running") await this.#noteRunning(target);
      found = await this.#observer.step(target, step, status);
      return found !== undefined;
    };
    await this.#drive(isReached, options);
    if (found !== undefined) return found;
    const missed = `step ${quote(step)} did not become ${quote(status)}`;
    throw new Error(await this.#observer.notReached(target, missed));
  }

  // Instances

  /** Returns the status of an instance. Throws `INSTANCE_NOT_FOUND` if there is none. */
  async status(workflow: WorkflowNameOf<R>, id: string): Promise<InstanceStatus> {
    const status = await this.#observer.status({ workflow, id });
    if (status === null) throw instanceNotFound({ workflow, id });
    return status;
  }

  /** Returns the whole history of a run, all pages together: of the current run, or the one with `runNumber`. */
  history(
    workflow: WorkflowNameOf<R>,
    id: string,
    options: Pick<HistoryOptions, "runNumber"> = {},
  ): Promise<History> {
    return this.#observer.history({ workflow, id }, options);
  }

  /** Sends an event to an instance, as `sendEvent` of its binding does. */
  async sendEvent(workflow: WorkflowNameOf<R>, id: string, event: SentEvent): Promise<void> {
    const binding = this.#observer.bindingOf(workflow) as keyof R;
    const instance = await this.workflows[binding].get(id);
    await instance.sendEvent(event as Parameters<typeof instance.sendEvent>[0]);
  }

  /** Returns a run as it is recorded. Keep it in a file as JSON, and `replay` it against changed code. */
  exportHistory(
    workflow: WorkflowNameOf<R>,
    id: string,
    options: Pick<HistoryOptions, "runNumber"> = {},
  ): Promise<ExportedHistory> {
    const { repeatedStepNames = "cached" } = this.#options;
    const target = { workflow, id };
    const context = { ...this.#first.instances, store: this.#store.store };
    return exportHistory(context, target, { ...options, repeatedStepNames });
  }

  // Doubles

  /**
   * Replaces the body of the `do` steps of this name in all workflows: by a value to return, an error to throw, or a
   * function that is called like the body. Mocks with `times` act one after the other, in the order in which they were
   * set. The last mock without `times` acts when those are used up.
   */
  mockStep(name: string, body: (context: StepContext) => unknown, options?: DoubleOptions): void;
  mockStep(name: string, outcome: unknown, options?: DoubleOptions): void;
  mockStep(name: string, outcome: unknown, { times }: DoubleOptions = {}): void {
    this.#doubles.mock(name, outcome, times);
  }

  /**
   * Makes steps of this name time out at once: an attempt of a `do` step fails with `StepTimeoutError`, and a
   * `waitForEvent` with `WaitTimeoutError`.
   */
  forceTimeout(name: string, { times }: DoubleOptions = {}): void {
    this.#doubles.forceTimeout(name, times);
  }

  /** Makes sleeps that begin from now on take no time: all of them, or those with these names. */
  disableSleeps(names?: readonly string[]): void {
    this.#doubles.disableSleeps(names);
  }

  /** Makes steps that fail from now on be retried at once: all of them, or those with these names. */
  disableRetryDelays(names?: readonly string[]): void {
    this.#doubles.disableRetryDelays(names);
  }

  /** Cuts off the bodies that still run, and ends the store's own connections. */
  async close(): Promise<void> {
    const runners = this.#runners.splice(0);
    const stopping = runners.map((runner) => runner.stop(0));
    await this.#advance(0);
    // A runner that has not stopped by now waits for a store that does not answer.
    for (const runner of runners) runner.crash();
    await Promise.allSettled(stopping);
    await this.#store.store.close();
  }

  // Time

  async #advance(ms: number): Promise<void> {
    const until = this.#time.now() + ms;
    await this.#settled(this.#deadline());
    for (let timer = this.#time.takeNext(until); timer; timer = this.#time.takeNext(until)) {
      timer.callback();
      await this.#settled(this.#deadline());
    }
    this.#time.set(until);
    await this.#settled(this.#deadline());
  }

  #deadline(timeoutMs = this.#timeoutMs): number {
    return realNow() + timeoutMs;
  }

  /** Resolves when everything that can happen without moving the clock has happened. */
  async #settled(deadline: number): Promise<void> {
    for (;;) {
      for (let n = 0; n < 3; n++) await nextMacrotask();
      if (this.#pending.count + this.#store.pending().length === 0) return;
      if (realNow() > deadline) throw this.#stillBusy();
    }
  }

  /** Claims due runs and lets them run until `isReached` or until idle. Returns whether it was reached. */
  async #drive(
    isReached: () => Promise<boolean>,
    { maxTicks = MAX_TICKS, timeoutMs = this.#timeoutMs }: IdleOptions,
  ): Promise<boolean> {
    const deadline = this.#deadline(timeoutMs);
    let ticks = 0;
    let pauseMs = 1;
    while (!(await isReached())) {
      this.#needRunner();
      const starts = Promise.all(this.#runners.map((runner) => runner.start()));
      const started = await this.#inTime(starts, deadline);
      const running = whatRuns(this.#runners);
      await this.#settled(deadline);
      if (started.some(({ count }) => count > 0)) {
        ticks += 1;
        if (ticks > maxTicks) throw new Error(`still busy after ${maxTicks} ticks: ${running}`);
        pauseMs = 1;
        continue;
      }
      if (!this.#runners.some(({ isBusy }) => isBusy)) {
        const dueInMs = await this.#inTime(this.#runners[0]?.nextWakeInMs(), deadline);
        if (dueInMs == null || dueInMs > 0) return isReached();
      }
      // Another owner holds what is due, or the code awaits the outside world.
      if (realNow() > deadline) throw this.#stillBusy();
      await webRuntime.scheduler.sleep(pauseMs);
      pauseMs = Math.min(pauseMs * 2, LONGEST_PAUSE_MS);
    }
    return true;
  }

  async #inTime<T>(work: T | Promise<T>, deadline: number): Promise<T> {
    let cancel: Cancel = () => {};
    const late = new Promise<never>((_, reject) => {
      const leftMs = Math.max(0, deadline - realNow());
      cancel = webRuntime.scheduler.after(leftMs, () => reject(this.#stillBusy()));
    });
    return Promise.race([work, late]).finally(cancel);
  }

  #needRunner(): void {
    if (this.#runners.length === 0) throw new Error("no runner is left: call addRunner() first");
  }

  #stillBusy(): Error {
    return stillBusy(this.#store.pending(), this.#runners);
  }

  /** Writes rows for the running bodies of an instance, as a heartbeat would after a while. */
  async #noteRunning({ workflow, id }: Target): Promise<void> {
    for (const run of this.#runners.flatMap((runner) => runner.runs)) {
      if (run.workflow === workflow && run.id === id) run.noteRunning(0);
    }
    await this.#settled(this.#deadline());
  }
}

function realNow(): number {
  return webRuntime.clock.now();
}

function nextMacrotask(): Promise<void> {
  return new Promise((resolve) => webRuntime.scheduler.macrotask(resolve));
}

import {
  createWorkflows,
  IncompatibleDatabaseError,
  type HookName,
  type Registry,
  type Workflows,
  type WorkflowsOptions,
} from "pawl";
import {
  durableObjectStore,
  type DurableObjectStore,
  type InstanceStore,
} from "pawl/durable-object";
import { Alarm } from "./alarm.js";
import type { Shard } from "./shard.js";

/**
 * The engine on the object's storage. While no run is in a turn, the alarm is its only clock: a timer would keep the
 * object in memory for as long as a workflow sleeps.
 */
export class Engine {
  readonly pawl: Workflows<Registry, never>;
  readonly #storage: DurableObjectStorage;
  readonly #place: Shard;
  readonly #store: DurableObjectStore;
  readonly #alarm: Alarm;
  #here: InstanceStore<never> | null = null;
  /** Whether storage was empty at the start. It is known after a start that failed, too. */
  #isEmpty = false;
  #readying: Promise<void> | null = null;
  #lastLook: Promise<void> = Promise.resolve();
  #nextLook: Promise<void> | null = null;
  #isServing = false;

  constructor(storage: DurableObjectStorage, options: WorkflowsOptions<Registry>, place: Shard) {
    this.#storage = storage;
    this.#place = place;
    const names = Object.values(options.workflows).map(({ name }) => name);
    const hooks = Object.keys(options.hooks ?? {}) as HookName[];
    this.#store = durableObjectStore(storage, {
      written: () => this.#alarm.arm(),
      spread: (here) => {
        this.#here = here;
        return place.all(here);
      },
    });
    this.#alarm = new Alarm(storage, () => this.#store.nextAlarm(names, hooks));
    this.pawl = createWorkflows({ ...options, store: this.#store });
  }

  /** The instances of this object alone. */
  get here(): InstanceStore<never> {
    return this.#here as InstanceStore<never>;
  }

  /** Resolves when this activation serves. A start that failed is tried again by the next caller. */
  ready(): Promise<void> {
    this.#readying ??= this.#start().catch((error: unknown) => {
      this.#readying = null;
      this.#failed("start.failed", error);
      throw error;
    });
    return this.#readying;
  }

  async #start(): Promise<void> {
    const { from } = await this.#store.planMigration();
    this.#isEmpty = from === 0;
    await this.#place.check(this.#storage, !this.#isEmpty);
    await this.pawl.migrate();
    // Runners in storage are earlier activations of this object. The first claim takes over their runs.
    this.#store.buryRunners();
    await this.#alarm.start();
    this.#serve();
    await this.#look();
  }

  /** Starts to serve, once. The rest of a start may be tried again. */
  #serve(): void {
    if (this.#isServing) return;
    this.pawl.runner.serve((inMs) => {
      // Work that is due later has set the alarm together with its row.
      if (inMs === 0) this.#lookSoon();
    });
    this.#isServing = true;
  }

  /** Answers the alarm. It never rejects, because an alarm that fails too often is dropped. */
  async alarmed(): Promise<void> {
    this.#alarm.fired();
    try {
      await this.ready();
      await this.#look();
      this.#alarm.arm();
    } catch {
      // The failure was reported, and the alarm is set again.
    }
  }

  /**
   * Claims due work, as far as there is room, in a claim that begins from now on. There is one claim at a time; callers
   * that come meanwhile share the next. Work that it leaves behind is for another claim, which nobody waits for, since
   * alarms are to be short.
   */
  #look(): Promise<void> {
    this.#nextLook ??= this.#lastLook.then(() => {
      this.#nextLook = null;
      const look = this.#lookOnce();
      this.#lastLook = look.catch(() => {});
      return look;
    });
    return this.#nextLook;
  }

  async #lookOnce(): Promise<void> {
    const { runner } = this.pawl;
    const room = runner.freeSlots;
    try {
      const { count, done } = await runner.start();
      done.catch((error: unknown) => runner.logger.error("turn.failed", { error: String(error) }));
      this.#alarm.looked(count);
      if (count === room && runner.freeSlots > 0) this.#lookSoon();
    } catch (error) {
      this.#failed("claim.failed", error);
      throw error;
    }
  }

  /** Claims without a caller that waits: a failure is reported, and the alarm is set again. */
  #lookSoon(): void {
    this.#look().catch(() => {});
  }

  #failed(event: string, error: unknown): void {
    this.pawl.runner.logger.warn(event, { error: String(error) });
    // An empty object that refuses to serve has nothing to wait for.
    const isStray = this.#isEmpty && error instanceof IncompatibleDatabaseError;
    if (!isStray) this.#alarm.armAfterFailure(Date.now());
  }
}

import type { HookName } from "../model/hooks.js";
import type { Logger } from "../model/logger.js";
import type { Clock } from "../model/seams.js";
import type { Lane, Store } from "../store/store.js";

/** How often a runner looks for work that it has no code for. */
const EVERY_MS = 60_000;
/** How long the first look is put off, because a process that starts has better things to do. */
const FIRST_AFTER_MS = 2_000;
/** A hook that another process has would have been called sooner than this. */
const OVERDUE_MS = 60_000;

/**
 * Reports runs and hooks that wait for code that is not here. They are left to a runner that has the code, if there is
 * one. Each is reported once.
 */
export class UnknownWork {
  readonly #store: Store;
  readonly #lanes: readonly Lane[];
  readonly #hooks: readonly HookName[];
  readonly #clock: Clock;
  readonly #logger: Logger;
  readonly #reported = new Set<string>();
  #dueAtMs = -Infinity;

  constructor(
    store: Store,
    lanes: readonly Lane[],
    hooks: readonly HookName[],
    clock: Clock,
    logger: Logger,
  ) {
    this.#store = store;
    this.#lanes = lanes;
    this.#hooks = hooks;
    this.#clock = clock;
    this.#logger = logger;
  }

  /** Notes that the runner begins to serve. */
  begin(): void {
    this.#dueAtMs = this.#clock.now() + FIRST_AFTER_MS;
  }

  async report(): Promise<void> {
    const nowMs = this.#clock.now();
    if (nowMs < this.#dueAtMs) return;
    this.#dueAtMs = nowMs + EVERY_MS;
    try {
      for (const { queue, handler } of await this.#store.unknownLanes(this.#lanes)) {
        this.#say("workflow.unknown", { workflow: handler, queue });
      }
      for (const hook of await this.#store.unknownHooks(this.#hooks, OVERDUE_MS)) {
        this.#say("hook.unknown", { hook });
      }
    } catch (error) {
      this.#logger.debug("unknown.failed", { error: String(error) });
    }
  }

  #say(event: string, fields: Record<string, string>): void {
    const said = JSON.stringify([event, fields]);
    if (this.#reported.has(said)) return;
    this.#reported.add(said);
    this.#logger.warn(event, fields);
  }
}

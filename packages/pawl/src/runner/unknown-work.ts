import type { HookName } from "../model/hooks.js";
import type { Logger } from "../model/logger.js";
import type { Clock } from "../model/seams.js";
import type { Lane, Store } from "../store/store.js";

/** How often an idle runner looks for work that it does not know. A busy one has better things to do, for as long again. */
const EVERY_MS = 60_000;
/** A hook that another process has is called sooner than this. */
const OVERDUE_MS = 60_000;

/** Runs and hooks that wait for code that is not here: left to a runner that has it, if there is one. Said once for each. */
export class UnknownWork {
  readonly #store: Store;
  readonly #lanes: readonly Lane[];
  readonly #hooks: readonly HookName[];
  readonly #clock: Clock;
  readonly #logger: Logger;
  readonly #reported = new Set<string>();
  #dueAtMs = -Infinity;
  /** Since when a look is due that a busy runner has put off. */
  #putOffAtMs: number | null = null;

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

  async report(isBusy: boolean): Promise<void> {
    const nowMs = this.#clock.now();
    if (nowMs < this.#dueAtMs) return;
    this.#putOffAtMs ??= nowMs;
    if (isBusy && nowMs < this.#putOffAtMs + EVERY_MS) return;
    this.#dueAtMs = nowMs + EVERY_MS;
    this.#putOffAtMs = null;
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

import type { Logger } from "../model/logger.js";
import type { Clock } from "../model/seams.js";
import type { Lane, Store } from "../store/store.js";

/** How often a runner looks for work that it does not know. */
const EVERY_MS = 60_000;

/** Runs that wait for code that is not here: left to a runner that has it, if there is one. Said once for each. */
export class UnknownWork {
  readonly #store: Store;
  readonly #lanes: readonly Lane[];
  readonly #clock: Clock;
  readonly #logger: Logger;
  readonly #reported = new Set<string>();
  #lookedAtMs = -Infinity;

  constructor(store: Store, lanes: readonly Lane[], clock: Clock, logger: Logger) {
    this.#store = store;
    this.#lanes = lanes;
    this.#clock = clock;
    this.#logger = logger;
  }

  async report(): Promise<void> {
    const nowMs = this.#clock.now();
    if (nowMs < this.#lookedAtMs + EVERY_MS) return;
    this.#lookedAtMs = nowMs;
    try {
      for (const { queue, handler } of await this.#store.unknownLanes(this.#lanes)) {
        const lane = JSON.stringify([queue, handler]);
        if (this.#reported.has(lane)) continue;
        this.#reported.add(lane);
        this.#logger.warn("workflow.unknown", { workflow: handler, queue });
      }
    } catch (error) {
      this.#logger.debug("unknown.failed", { error: String(error) });
    }
  }
}

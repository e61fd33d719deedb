import type { Run } from "../engine/run.js";
import type { Logger } from "../model/logger.js";
import type { Claimed } from "../store/store.js";

export type LiveLimits = { readonly runs: number; readonly bytes: number };

/** The parked runs that stay in memory, so that they go on without replay. The least recently parked run goes first. */
export class LiveRuns {
  readonly #limits: LiveLimits;
  readonly #logger: Logger;
  readonly #runs = new Map<string, Run>();
  readonly #byKey = new Map<string, Run>();
  #bytes = 0;

  constructor(limits: LiveLimits, logger: Logger) {
    this.#limits = limits;
    this.#logger = logger;
  }

  keep(run: Run): void {
    this.remove(run);
    this.#runs.set(run.iid, run);
    this.#byKey.set(run.key, run);
    this.#bytes += run.historyBytes;
    for (const oldest of this.#runs.values()) {
      if (this.#runs.size <= this.#limits.runs && this.#bytes <= this.#limits.bytes) break;
      this.remove(oldest);
      oldest.discard("evicted");
      const { workflow, id, runNumber } = oldest;
      this.#logger.debug("run.evicted", { workflow, id, runNumber });
    }
  }

  /**
   * Takes the claimed run out of memory. Returns null unless it stands where the claim found it: nobody else may have
   * had it in between.
   */
  take(claimed: Claimed): Run | null {
    const run = this.#runs.get(claimed.iid);
    if (run === undefined) return null;
    this.remove(run);
    if (run.runNumber === claimed.runNumber && run.claimNumber + 1 === claimed.claimNumber) {
      return run;
    }
    run.discard("another runner had it");
    return null;
  }

  remove(run: Run): void {
    if (this.#runs.get(run.iid) !== run) return;
    this.#runs.delete(run.iid);
    if (this.#byKey.get(run.key) === run) this.#byKey.delete(run.key);
    this.#bytes -= run.historyBytes;
  }

  get(iid: string): Run | undefined {
    return this.#runs.get(iid);
  }

  /** By `targetKey`. */
  find(key: string): Run | undefined {
    return this.#byKey.get(key);
  }

  has(run: Run): boolean {
    return this.#runs.get(run.iid) === run;
  }

  clear(): void {
    for (const run of this.#runs.values()) run.discard("closed");
    this.#runs.clear();
    this.#byKey.clear();
    this.#bytes = 0;
  }
}

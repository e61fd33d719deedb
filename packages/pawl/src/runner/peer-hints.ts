import type { Logger } from "../model/logger.js";
import type { Runtime } from "../model/seams.js";
import type { Hint, HintChannel, Teller } from "../store/hints.js";
import { targetKey, type Target } from "../model/target.js";
import type { EndListeners } from "./end-listeners.js";
import { BoundedMap } from "./bounded-map.js";

interface PeerHintEvents {
  /** Something became due somewhere, and a claim is wanted in `inMs`. */
  due(inMs: number): void;
  changed(owner: string, target: Target): void;
}

/**
 * How many runs are remembered. Beyond that, the oldest are forgotten. A process that waits for one of them finds out
 * by reading now and then.
 */
const MAX_REMEMBERED = 10_000;
/** How many processes are remembered for one run. If there are this many, all processes are told. */
const MAX_ASKERS = 100;
/** A process that has more work than slots says so again after this long. */
const OVERFULL_EVERY_MS = 1_000;
/**
 * All processes are told of due work, and one takes it. A process that came too late the last times gives the others a
 * head start.
 */
const HEAD_START_MS = 5;
const MAX_VAIN = 5;
/**
 * How long to wait with the claim after listening has begun. The hints that were missed before are not urgent enough
 * for runs that have just begun to wait for that claim.
 */
const CATCH_UP_MS = 30;
const LAST_WORDS_MS = 500;

/** The hints between this process and the others on its database, where the database carries them. */
export class PeerHints {
  readonly #channel: HintChannel | null;
  readonly #runtime: Runtime;
  readonly #logger: Logger;
  readonly #listeners: EndListeners;
  readonly #events: PeerHintEvents;
  #isWanted = true;
  #stopListening: (() => void) | null = null;
  /** The processes that wait for the end of a run, by `targetKey`. */
  readonly #awaited = new BoundedMap<Teller[]>(MAX_REMEMBERED);
  /**
   * The runs that ended here, and the processes that were told. Other processes may ask too late, and each is told
   * once.
   */
  readonly #ended = new BoundedMap<Teller[]>(MAX_REMEMBERED);
  #saidOverfullAtMs = -Infinity;
  #wasHinted = false;
  #vain = 0;

  constructor(
    channel: HintChannel | undefined,
    runtime: Runtime,
    logger: Logger,
    listeners: EndListeners,
    events: PeerHintEvents,
  ) {
    this.#channel = channel ?? null;
    this.#runtime = runtime;
    this.#logger = logger;
    this.#listeners = listeners;
    this.#events = events;
  }

  listen(isWanted: boolean): void {
    this.#isWanted = isWanted;
    if (!isWanted) {
      this.#stopListening?.();
      this.#stopListening = null;
    } else if (this.#channel !== null) {
      this.#stopListening ??= this.#channel.listen({
        hear: (hint, teller) => this.#hear(hint, teller),
        listening: () => this.#listening(),
        failed: (error, retryInMs) =>
          this.#logger.warn("listen.failed", { error: String(error), retryInMs }),
      });
    }
  }

  /** Tells the others that something is due that this process does not take. */
  async due(): Promise<void> {
    await this.#channel?.tell({ kind: "due" });
  }

  /** Tells the others, before this process says goodbye, that the runs it has given back are due. */
  async lastWords(): Promise<void> {
    if (this.#channel === null) return;
    const { scheduler } = this.#runtime;
    const patience = new Promise<void>((resolve) => void scheduler.grace(LAST_WORDS_MS, resolve));
    await Promise.race([this.due(), patience]);
  }

  /** Tells the others, now and then, that there is more to do here than there are slots. */
  overfull(): void {
    const nowMs = this.#runtime.clock.now();
    if (nowMs < this.#saidOverfullAtMs + OVERFULL_EVERY_MS) return;
    this.#saidOverfullAtMs = nowMs;
    void this.due();
  }

  changed(owner: string, target: Target): void {
    void this.#channel?.tell({ kind: "changed", owner, target });
  }

  /** Asks the others to tell when the run ends. Returns false if none of them would be heard. */
  ask(target: Target): boolean {
    if (this.#channel === null || !this.#isWanted) return false;
    this.listen(true);
    if (!this.#channel.isListening) return false;
    void this.#channel.tell({ kind: "awaited", target });
    return true;
  }

  /** Tells the processes that asked that a run ended here, or was ended. */
  ended(target: Target): void {
    const key = targetKey(target);
    const askers = this.#awaited.take(key) ?? [];
    this.#ended.note(key, askers);
    if (askers.length === MAX_ASKERS) return this.#tellEnd(target);
    for (const asker of askers) this.#tellEnd(target, asker);
  }

  /** Notes how many runs a claim has found. */
  looked(found: number): void {
    if (found > 0) this.#vain = 0;
    else if (this.#wasHinted) this.#vain = Math.min(this.#vain + 1, MAX_VAIN);
    this.#wasHinted = false;
  }

  #listening(): void {
    this.#events.due(CATCH_UP_MS);
    this.#listeners.tellAll();
  }

  #hear(hint: Hint, teller: Teller): void {
    switch (hint.kind) {
      case "due":
        this.#wasHinted = true;
        return this.#events.due(this.#vain === 0 ? 0 : HEAD_START_MS * 2 ** (this.#vain - 1));
      case "changed":
        return this.#events.changed(hint.owner, hint.target);
      case "awaited":
        return this.#await(hint.target, teller);
      case "ended":
        return this.#listeners.tell(targetKey(hint.target), null);
    }
  }

  #await(target: Target, asker: Teller): void {
    const key = targetKey(target);
    const told = this.#ended.get(key);
    if (told !== undefined && add(asker, told)) return this.#tellEnd(target, asker);
    // The run has not ended here, or runs again since.
    const askers = this.#awaited.take(key) ?? [];
    add(asker, askers);
    this.#awaited.note(key, askers);
  }

  /** Tells that a run ended. Only its name is sent, because the target may be a whole run. */
  #tellEnd({ workflow, id }: Target, asker?: Teller): void {
    void this.#channel?.tell({ kind: "ended", target: { workflow, id } }, asker);
  }
}

/** Adds the asker. Returns false if it was already among them. */
function add(asker: Teller, askers: Teller[]): boolean {
  if (askers.includes(asker)) return false;
  if (askers.length === MAX_ASKERS) askers.shift();
  askers.push(asker);
  return true;
}

import type { Logger } from "../model/logger.js";
import type { Runtime } from "../model/seams.js";
import type { Hint, HintChannel, Teller } from "../store/hints.js";
import { targetKey, type Ended, type Target } from "../store/records.js";
import type { EndListeners } from "./end-listeners.js";
import { BoundedMap } from "./bounded-map.js";

export interface PeerHintEvents {
  /** Somewhere something became due: look for it in so many ms. */
  due(inMs: number): void;
  changed(owner: string, target: Target): void;
}

/** Beyond so many the oldest are forgotten: who waits for them finds out by looking, now and then. */
const MAX_REMEMBERED = 10_000;
/** For one run; where there are more, all are told. */
const MAX_ASKERS = 100;
/** That there is more to do than one process can is said again after this long. */
const OVERFULL_EVERY_MS = 1_000;
/** All are told, and one of them takes it: who came too late the last times gives the others a head start. */
const HEAD_START_MS = 5;
const MAX_VAIN = 5;
/** What was said while nobody listened is not so urgent that runs which have just begun should wait for the look. */
const CATCH_UP_MS = 30;
const LAST_WORDS_MS = 500;

/** What this process and the others on its database tell one another, where the database carries hints. */
export class PeerHints {
  readonly #channel: HintChannel | null;
  readonly #runtime: Runtime;
  readonly #logger: Logger;
  readonly #waiters: EndListeners;
  readonly #events: PeerHintEvents;
  #isWanted = true;
  #stopListening: (() => void) | null = null;
  /** Who waits for the ends of which runs. */
  readonly #awaited = new BoundedMap<Teller[]>(MAX_REMEMBERED);
  /** Runs that ended here, and who was told: others may ask too late, and are told once. */
  readonly #ended = new BoundedMap<Teller[]>(MAX_REMEMBERED);
  #saidOverfullAtMs = -Infinity;
  #wasHinted = false;
  #vain = 0;

  constructor(
    channel: HintChannel | undefined,
    runtime: Runtime,
    logger: Logger,
    waiters: EndListeners,
    events: PeerHintEvents,
  ) {
    this.#channel = channel ?? null;
    this.#runtime = runtime;
    this.#logger = logger;
    this.#waiters = waiters;
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

  /** Something is due that this process does not take. */
  async due(): Promise<void> {
    await this.#channel?.tell({ kind: "due" });
  }

  /** Before a goodbye: what was given back is due. */
  async lastWords(): Promise<void> {
    if (this.#channel === null) return;
    const { scheduler } = this.#runtime;
    const patience = new Promise<void>((resolve) => void scheduler.grace(LAST_WORDS_MS, resolve));
    await Promise.race([this.due(), patience]);
  }

  /** There is more to do than fits in here. */
  overfull(): void {
    const nowMs = this.#runtime.clock.now();
    if (nowMs < this.#saidOverfullAtMs + OVERFULL_EVERY_MS) return;
    this.#saidOverfullAtMs = nowMs;
    void this.due();
  }

  changed(owner: string, target: Target): void {
    void this.#channel?.tell({ kind: "changed", owner, target });
  }

  /** Asks to be told when that run ends; false if nobody would be heard. */
  ask(target: Target): boolean {
    if (this.#channel === null || !this.#isWanted) return false;
    this.listen(true);
    if (!this.#channel.isListening) return false;
    void this.#channel.tell({ kind: "awaited", target });
    return true;
  }

  /** A run ended here, or was ended: tells those who asked. */
  ended(target: Target, ended: Ended | null): void {
    this.#waiters.tell(target, ended);
    if (this.#channel === null) return;
    const key = targetKey(target);
    const askers = this.#awaited.take(key) ?? [];
    this.#ended.note(key, askers);
    if (askers.length === MAX_ASKERS) return this.#tellEnd(target);
    for (const asker of askers) this.#tellEnd(target, asker);
  }

  /** How a look for work went. */
  looked(found: number): void {
    if (found > 0) this.#vain = 0;
    else if (this.#wasHinted) this.#vain = Math.min(this.#vain + 1, MAX_VAIN);
    this.#wasHinted = false;
  }

  #listening(): void {
    this.#events.due(CATCH_UP_MS);
    this.#waiters.tellAll();
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
        return this.#waiters.tell(hint.target, null);
    }
  }

  #await(target: Target, asker: Teller): void {
    const key = targetKey(target);
    const told = this.#ended.get(key);
    if (told !== undefined && add(asker, told)) return this.#tellEnd(target, asker);
    // It has not ended here, or runs again since.
    const askers = this.#awaited.take(key) ?? [];
    add(asker, askers);
    this.#awaited.note(key, askers);
  }

  /** The name alone: the target may be a whole run. */
  #tellEnd({ workflow, id }: Target, asker?: Teller): void {
    void this.#channel?.tell({ kind: "ended", target: { workflow, id } }, asker);
  }
}

/** False if it was among them. */
function add(asker: Teller, askers: Teller[]): boolean {
  if (askers.includes(asker)) return false;
  if (askers.length === MAX_ASKERS) askers.shift();
  askers.push(asker);
  return true;
}

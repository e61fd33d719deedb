import type { NextAlarm } from "pawl/durable-object";

/**
 * workerd evicts an object after ten seconds without an event. While runs are leased, the alarm comes twice in that
 * time.
 */
const HEARTBEAT_MS = 5_000;
/** Due work is taken at once. This alarm is for the case that the object does not live long enough to do so. */
const SOON_MS = 1_000;
const MAX_FRUITLESS = 6;
/** An alarm that is so late was dropped, and will not come. */
const DROPPED_AFTER_MS = 60_000;
/** How often one time is set. Storage that refuses it more often is away, and the next write sets the alarm again. */
const MAX_SETS = 3;

type AlarmStorage = Pick<DurableObjectStorage, "getAlarm" | "setAlarm" | "deleteAlarm">;

/**
 * The object's one alarm. It is set right after the write that needs it, with no await between them, so that storage
 * takes both or none. An alarm that comes soon is left alone even if nothing needs it any more: it finds that out by
 * itself, and setting it costs a write.
 */
export class Alarm {
  readonly #storage: AlarmStorage;
  readonly #next: () => NextAlarm;
  #isStarted = false;
  #armedAt: number | null = null;
  /** Claims in a row that took nothing although something was due. */
  #fruitless = 0;

  constructor(storage: AlarmStorage, next: () => NextAlarm) {
    this.#storage = storage;
    this.#next = next;
  }

  async start(): Promise<void> {
    this.#armedAt = await this.#storage.getAlarm();
    this.#isStarted = true;
    this.arm();
  }

  /** Notes that the alarm has come and is not set any more. */
  fired(): void {
    this.#armedAt = null;
  }

  looked(found: number): void {
    this.#fruitless = found > 0 ? 0 : Math.min(this.#fruitless + 1, MAX_FRUITLESS);
  }

  /**
   * Sets the alarm for the next due time, or removes it. It never throws, because the write that it follows is done.
   */
  arm(): void {
    if (!this.#isStarted) return;
    let next: NextAlarm;
    try {
      next = this.#next();
    } catch {
      this.armAfterFailure(Date.now());
      return;
    }
    const { now, at, busy } = next;
    if (at === null || at > now) this.#fruitless = 0;
    const dueAt = at === null ? Infinity : at > now ? at : now + SOON_MS * 2 ** this.#fruitless;
    const wantedAt = Math.min(dueAt, busy ? now + HEARTBEAT_MS : Infinity);
    if (!this.#comesSoon(now, wantedAt)) this.#set(wantedAt);
  }

  /** Sets the alarm without reading what is due, since that read may be what failed. */
  armAfterFailure(nowMs: number): void {
    this.looked(0);
    this.#set(nowMs + SOON_MS * 2 ** this.#fruitless);
  }

  #comesSoon(now: number, wantedAt: number): boolean {
    const at = this.#armedAt;
    if (at === null || at > wantedAt) return false;
    return at <= now + HEARTBEAT_MS && at > now - DROPPED_AFTER_MS;
  }

  #set(at: number): void {
    const wanted = at === Infinity ? null : at;
    if (wanted === this.#armedAt) return;
    void this.#send(wanted);
  }

  /**
   * Sends the time to storage. As a rule, storage that cannot take it ends the object, and the alarm from before stays.
   */
  async #send(wanted: number | null, sets = 1): Promise<void> {
    this.#armedAt = wanted;
    try {
      await (wanted === null ? this.#storage.deleteAlarm() : this.#storage.setAlarm(wanted));
    } catch {
      // An alarm that could not be removed comes for nothing, which does no harm.
      if (wanted === null || this.#armedAt !== wanted) return;
      this.#armedAt = null;
      if (sets < MAX_SETS) await this.#send(wanted, sets + 1);
    }
  }
}

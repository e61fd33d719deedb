import type { NextAlarm } from "pawl/durable-object";

/** workerd evicts an object after ten seconds without an event; while runs are leased there is one twice in that time. */
const HEARTBEAT_MS = 5_000;
/** What is due is taken at once: the alarm is for the case that the object does not live to do so. */
const SOON_MS = 1_000;
const MAX_FRUITLESS = 6;
/** An alarm that has not come so long after its time was dropped. */
const DROPPED_AFTER_MS = 60_000;
/** Of one time: storage that refuses it more often is away, and what comes after that sets it again. */
const MAX_SETS = 3;

type AlarmStorage = Pick<DurableObjectStorage, "getAlarm" | "setAlarm" | "deleteAlarm">;

/**
 * The object's one alarm. It is set right after the write that needs it, with no await between: storage takes both or
 * none. One that comes soon is left alone even if nothing needs it any more: it finds out, and setting costs a write.
 */
export class Alarm {
  readonly #storage: AlarmStorage;
  readonly #next: () => NextAlarm;
  #isStarted = false;
  #armedAt: number | null = null;
  /** Looks in a row that took nothing though something was due. */
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

  /** It has come, and is not set any more. */
  fired(): void {
    this.#armedAt = null;
  }

  looked(found: number): void {
    this.#fruitless = found > 0 ? 0 : Math.min(this.#fruitless + 1, MAX_FRUITLESS);
  }

  /** For the next due time, or none. Never throws: the write that it follows is done. */
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

  /** Without a look at what is due: it is what failed. */
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

  /** Storage that cannot take it ends the object as a rule, and the alarm of before stays. */
  async #send(wanted: number | null, sets = 1): Promise<void> {
    this.#armedAt = wanted;
    try {
      await (wanted === null ? this.#storage.deleteAlarm() : this.#storage.setAlarm(wanted));
    } catch {
      // One that comes for nothing does no harm.
      if (wanted === null || this.#armedAt !== wanted) return;
      this.#armedAt = null;
      if (sets < MAX_SETS) await this.#send(wanted, sets + 1);
    }
  }
}

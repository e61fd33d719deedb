import type { Cancel, Runtime } from "../model/seams.js";
import type { CreateAnswer, NewInstance } from "../store/store.js";

/** Writes the instances of one request or of many, all or none. */
export type WriteInstances = (
  instances: readonly NewInstance[],
  runner: string | null,
  hooked: boolean,
) => Promise<CreateAnswer[]>;

type CreateWrites = {
  /** Writes many requests. It hardly waits for locks: a lock that one request meets must not hold up the others. */
  readonly together: WriteInstances;
  /** Writes one request, and may wait for its locks. */
  readonly alone: WriteInstances;
  /** Tells why `together` failed: the store failed for all alike, one request is wrong, or one of them met a lock. */
  readonly causeOf: (error: unknown) => "store" | "request" | "lock";
};

type Request = {
  readonly instances: readonly NewInstance[];
  readonly runner: string | null;
  readonly hooked: boolean;
  readonly resolve: (answers: CreateAnswer[]) => void;
  readonly reject: (error: unknown) => void;
};

const MAX_INSTANCES = 200;
/** The most params of a group, in UTF-16 units. */
const MAX_LENGTH = 1024 * 1024;
/** Longer than a commit should take. Requests that have waited so long for the group ahead go without its answer … */
const HOLD_MS = 25;
/** … unless so many groups are on their way already: then the store is away, or as good as away. */
const MAX_ON_THEIR_WAY = 3;

/** Group commit for new instances: while one write is on its way, the requests that come collect for the next. */
export class Creates {
  readonly #runtime: Runtime;
  readonly #writes: CreateWrites;
  #waiting: Request[] = [];
  #sendIsDue = false;
  #onTheirWay = 0;
  /** The group that the next one waits for; `#hold` ends that wait, if a request is waiting. */
  #ahead: readonly Request[] | null = null;
  #hold: Cancel | null = null;

  constructor(runtime: Runtime, writes: CreateWrites) {
    this.#runtime = runtime;
    this.#writes = writes;
  }

  create(
    instances: readonly NewInstance[],
    runner: string | null,
    hooked: boolean,
  ): Promise<CreateAnswer[]> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ instances, runner, hooked, resolve, reject });
      this.#scheduleSend();
    });
  }

  /**
   * Sends in the next round, so that callers that move together travel together. It costs a lone create some 20 µs. If
   * it were sent at once, the first of many would go alone each time: in W1 that made 1,560 instead of 2,520 workflows
   * a second on SQLite.
   */
  #scheduleSend(): void {
    if (this.#sendIsDue || this.#waiting.length === 0) return;
    if (this.#ahead !== null) {
      this.#hold ??= this.#runtime.scheduler.after(HOLD_MS, () => this.#goOn());
      return;
    }
    if (this.#onTheirWay === MAX_ON_THEIR_WAY) return;
    this.#sendIsDue = true;
    this.#runtime.scheduler.round(() => {
      this.#sendIsDue = false;
      void this.#send(this.#collect());
    });
  }

  /** Takes the first request, and all that may go with it: the same runner, the same hook, and not too much. */
  #collect(): Request[] {
    const [first] = this.#waiting;
    const group: Request[] = [];
    const left: Request[] = [];
    let count = 0;
    let length = 0;
    for (const request of this.#waiting) {
      if (request.runner !== first?.runner || request.hooked !== first.hooked) {
        left.push(request);
        continue;
      }
      count += request.instances.length;
      for (const { params } of request.instances) length += params?.length ?? 0;
      const fits = group.length === 0 || (count <= MAX_INSTANCES && length <= MAX_LENGTH);
      (fits ? group : left).push(request);
    }
    this.#waiting = left;
    return group;
  }

  async #send(group: readonly Request[]): Promise<void> {
    this.#ahead = group;
    this.#scheduleSend();
    this.#onTheirWay += 1;
    await this.#write(group);
    this.#onTheirWay -= 1;
    // If the hold has ended, the group ahead is a newer one.
    if (this.#ahead === group) this.#goOn();
    else this.#scheduleSend();
  }

  #goOn(): void {
    this.#ahead = null;
    this.#hold?.();
    this.#hold = null;
    this.#scheduleSend();
  }

  async #write(group: readonly Request[]): Promise<void> {
    const [{ runner, hooked }] = group as [Request];
    const instances = group.flatMap((request) => request.instances);
    try {
      const answers = await this.#writes.together(instances, runner, hooked);
      let from = 0;
      for (const { instances: own, resolve } of group) {
        resolve(answers.slice(from, (from += own.length)));
      }
    } catch (error) {
      const cause = this.#writes.causeOf(error);
      const isFinal = cause === "store" || (cause === "request" && group.length === 1);
      for (const request of group) {
        if (isFinal) request.reject(error);
        else this.#writeAlone(request);
      }
    }
  }

  /** Nobody else waits for it, so it may wait for its lock. */
  #writeAlone({ instances, runner, hooked, resolve, reject }: Request): void {
    this.#writes.alone(instances, runner, hooked).then(resolve, reject);
  }
}

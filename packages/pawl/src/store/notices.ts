import type { HookName } from "../model/hooks.js";
import type { Logger } from "../model/logger.js";
import type { Cancel } from "../model/seams.js";
import type { Ended } from "./records.js";
import type { Target } from "../model/target.js";
import type { Part } from "./part.js";

type Subscriber<Subject, Detail> = (subject: Subject, detail: Detail) => void;

/** One thing that parts of the process can be told of. */
class Notice<Subject, Detail = undefined> {
  readonly #name: string;
  readonly #logger: Logger;
  #subscribers: readonly Subscriber<Subject, Detail>[] = [];
  /** Somebody has subscribed. Only the notice sets it. */
  isHeard = false;

  constructor(name: string, logger: Logger) {
    this.#name = name;
    this.#logger = logger;
  }

  /** Subscribers are called in the order in which they subscribed. */
  subscribe(subscriber: Subscriber<Subject, Detail>): Cancel {
    this.#subscribers = [...this.#subscribers, subscriber];
    this.isHeard = true;
    return () => {
      this.#subscribers = this.#subscribers.filter((each) => each !== subscriber);
      this.isHeard = this.#subscribers.length > 0;
    };
  }

  /** Calls all subscribers, synchronously. One that throws is reported, and keeps no other from hearing. */
  tell(subject: Subject, detail: Detail): void {
    for (const subscriber of this.#subscribers) {
      try {
        subscriber(subject, detail);
      } catch (error) {
        this.#logger.error("notice.failed", { notice: this.#name, error: String(error) });
      }
    }
  }
}

/**
 * Word of the writes of this process, given after each write to its subscribers: readers of event streams, callers who wait for
 * results, hooks, other processes. Nothing is decided by a notice: whatever it says is in the database.
 */
export class Notices {
  /** These parts are written. Told once for a batch, after their runs. */
  readonly committed: Notice<readonly Part[]>;
  /** A run has ended, or is not here any more; its end is null where only the database knows it. */
  readonly ended: Notice<Target & { readonly key?: string }, Ended | null>;
  /** A caller has changed a run: pause, resume, terminate, restart. */
  readonly changed: Notice<Target>;
  /** A row for this hook may have been written. */
  readonly posted: Notice<HookName>;

  constructor(logger: Logger) {
    this.committed = new Notice("committed", logger);
    this.ended = new Notice("ended", logger);
    this.changed = new Notice("changed", logger);
    this.posted = new Notice("posted", logger);
  }
}

import type { EndListener, RunEnds } from "../instances/ports.js";
import type { Signal } from "../model/abort.js";
import { targetKey, type Ended, type Target } from "../store/records.js";
import type { EndListeners } from "./end-listeners.js";
import type { PeerHints } from "./peer-hints.js";
import type { Slots } from "./slots.js";

/** How callers of this process learn of the ends of runs, wherever those run. */
export class LocalEnds implements RunEnds {
  readonly #slots: Slots;
  readonly #leaves: EndListeners;
  readonly #ends: EndListeners;
  readonly #peers: PeerHints;

  /** `leaves` are told when a run leaves its slot, `ends` when a run has ended. */
  constructor(slots: Slots, leaves: EndListeners, ends: EndListeners, peers: PeerHints) {
    this.#slots = slots;
    this.#leaves = leaves;
    this.#ends = ends;
    this.#peers = peers;
  }

  isHere(target: Target): boolean {
    return this.#slots.find(targetKey(target)) !== undefined;
  }

  left(target: Target, ms: number, signal?: Signal): Promise<Ended | null> {
    return this.#leaves.listen(targetKey(target)).heard(ms, signal);
  }

  listen(target: Target): EndListener {
    return this.#ends.listen(targetKey(target));
  }

  ask(target: Target): boolean {
    return this.isHere(target) || this.#peers.ask(target);
  }
}

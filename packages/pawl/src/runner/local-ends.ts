import type { EndListener, RunEnds } from "../instances/ports.js";
import type { Signal } from "../model/abort.js";
import { type Ended } from "../store/records.js";
import { targetKey, type Target } from "../model/target.js";
import type { EndListeners } from "./end-listeners.js";
import type { PeerHints } from "./peer-hints.js";
import type { Slots } from "./slots.js";

/** How callers of this process learn of the ends of runs, wherever those run. */
export class LocalEnds implements RunEnds {
  readonly #slots: Slots;
  readonly #slotListeners: EndListeners;
  readonly #ends: EndListeners;
  readonly #peers: PeerHints;

  /** `slotListeners` are told when a run leaves its slot, `ends` when a run has ended. */
  constructor(slots: Slots, slotListeners: EndListeners, ends: EndListeners, peers: PeerHints) {
    this.#slots = slots;
    this.#slotListeners = slotListeners;
    this.#ends = ends;
    this.#peers = peers;
  }

  isHere(target: Target): boolean {
    return this.#slots.find(targetKey(target)) !== undefined;
  }

  left(target: Target, ms: number, signal?: Signal): Promise<Ended | null> {
    return this.#slotListeners.listen(targetKey(target)).heard(ms, signal);
  }

  listen(target: Target): EndListener {
    return this.#ends.listen(targetKey(target));
  }

  ask(target: Target): boolean {
    return this.isHere(target) || this.#peers.ask(target);
  }
}

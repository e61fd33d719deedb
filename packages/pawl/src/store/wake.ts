import type { DbTime } from "./records.js";
import type { Wake } from "./store.js";

/** The time at which a wait ends that is written at `now`. */
export function wakeTime(wake: Wake, now: DbTime): DbTime {
  return "at" in wake ? wake.at : now + wake.inMs;
}

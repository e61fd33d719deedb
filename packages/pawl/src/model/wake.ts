/** When a wait ends, by the database's clock: at a time, or so long after it is written. */
export type Wake = { readonly at: number } | { readonly inMs: number };

/** Returns the time at which a wait ends that is written at `now`. */
export function wakeTime(wake: Wake, now: number): number {
  return "at" in wake ? wake.at : now + wake.inMs;
}

import { stateWord } from "../../ticket.js";

/*
 * The SQL that all ways to add an event share. `t` is the ticket of the event's run.
 */

/** Whether an event of these types wakes a parked run: one of the run's waits may be for it. */
export const wokenSql = (mask: string): string =>
  `t.state = ${stateWord.waiting} AND (t.wait_mask & ${mask}) <> 0`;

/** A time later than any that the run's owner has judged, even if the clock stands still or steps back. */
export const laterThanSeen = (now: string): string =>
  `CASE WHEN ${now} > t.seen_at THEN ${now} ELSE t.seen_at + 1 END`;

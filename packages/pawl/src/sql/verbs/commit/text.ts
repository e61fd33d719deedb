/** The SQL that both ways to commit share. */

/**
 * The state a fenced part leaves its ticket in. A pause beats a park, an unseen event beats parking, finish beats all.
 * A park that the ticket has seen was refused then, and stays so whatever was asked since.
 */
export type Becomes = "leased" | "waiting" | "queued" | "paused" | "finished";

export const becomesSql = `CASE
  WHEN p.next IN ('complete', 'fail') THEN 'finished'
  WHEN t.part_no >= p.part_no THEN 'leased'
  WHEN p.next IN ('park', 'release') AND t.pause_requested = 1 THEN 'paused'
  WHEN p.next = 'park' AND t.event_count > p.seen_events THEN 'leased'
  WHEN p.next = 'park' THEN 'waiting'
  WHEN p.next = 'release' THEN 'queued'
  ELSE 'leased' END`;

/** Columns of a ticket that a part writes; on progress it writes none. None reads another that is assigned. */
export const ticketChanges = (now: string): Record<string, string> => ({
  state: "p.becomes",
  owner: "CASE WHEN p.becomes = 'leased' THEN t.owner ELSE NULL END",
  due_at: `CASE WHEN p.becomes IN ('waiting', 'queued') THEN COALESCE(p.wake_at, ${now} + p.wake_in) ELSE NULL END`,
  wait_mask: "CASE WHEN p.becomes = 'leased' THEN t.wait_mask ELSE p.wait_mask END",
  pause_requested: "CASE WHEN p.becomes = 'paused' THEN 0 ELSE t.pause_requested END",
  takeovers: "CASE WHEN p.becomes = 'leased' THEN COALESCE(p.takeovers, t.takeovers) ELSE 0 END",
  history_bytes: "CASE WHEN p.becomes = 'leased' THEN t.history_bytes ELSE p.history_bytes END",
  part_no: "p.part_no",
});
/**
 * A part that has to do with the ticket leaves its number there, a refused park nothing else: sent again it counts no
 * more, not even late. A finished ticket is removed: written too, in the same statement, one of both would
 * silently not happen.
 */
export const writesTicketSql = `(p.becomes <> 'finished' AND t.part_no < p.part_no
  AND (p.next <> 'continue' OR p.takeovers IS NOT NULL))`;

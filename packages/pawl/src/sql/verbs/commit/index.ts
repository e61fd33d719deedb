import type { Part, PartAnswer } from "../../../store/part.js";
import type { Sql, Verb } from "../../sql.js";
import type { EventReader } from "../events/reading.js";
import { missingParts } from "./answer.js";
import { commitInSteps } from "./in-steps.js";

export type Commit = Verb<[parts: readonly Part[]], PartAnswer[]>;

/**
 * Commits parts behind the fence: a part counts only if its ticket still carries its claim number, read under the row's
 * lock. A ticket that carries the number but is not leased any more shows that this very part was applied before, since
 * nothing else gives a ticket up without a new number. Such a part answers ok and writes nothing.
 */
export function commitVerb(sql: Sql, events: EventReader, newInboxId: () => string): Commit {
  const { dialect } = sql;
  const missing = missingParts(sql);
  return dialect.writableCtes
    ? dialect.oneStatement.commit(sql, events, missing, newInboxId)
    : commitInSteps(sql, dialect, events, missing, newInboxId);
}

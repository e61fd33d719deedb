import type { Target } from "../../../model/target.js";
import type { LeaseOnWake, NewEvent, SendEventAnswer } from "../../../store/store.js";
import type { Sql, Verb } from "../../sql.js";
import { sendInSteps } from "./in-steps.js";

export type SendEvent = Verb<
  [target: Target, event: NewEvent, lease: LeaseOnWake | null],
  SendEventAnswer
>;

/** Numbers and times an event under the ticket's lock, and wakes the run if it may be waiting for that type. */
export function sendEventVerb(sql: Sql): SendEvent {
  const { dialect } = sql;
  return dialect.writableCtes ? dialect.oneStatement.sendEvent(sql) : sendInSteps(sql);
}

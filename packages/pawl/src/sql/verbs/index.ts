import type { Sql } from "../sql.js";
import { claimVerb } from "./claim.js";
import { commitVerb } from "./commit/index.js";
import { controlVerb } from "./control.js";
import { createTogetherVerb, createVerb, createWithinVerb } from "./create.js";
import { eventReader } from "./events/reading.js";
import { inboxHoldsVerb, moveInboxVerb } from "./events/inbox.js";
import { sendEventVerb } from "./events/index.js";
import { postEventVerb } from "./events/posting.js";
import { historyVerb } from "./history.js";
import { deliveringVerbs } from "./hooks/delivering.js";
import { registeringVerbs } from "./hooks/registering.js";
import { getManyVerb, getVerb, listVerb } from "./list.js";
import { adoptVerb, loadVerb } from "./load.js";
import { nextDueVerb } from "./next-due.js";
import { nowVerb } from "./now.js";
import { pollVerb } from "./poll.js";
import { reopenVerb } from "./reopen.js";
import { runnerVerbs } from "./runners.js";
import { unknownLanesVerb } from "./unknown-lanes.js";

/** Every operation of the store, with its statements compiled once. */
export function sqlVerbs(sql: Sql, newId: () => string) {
  const events = eventReader(sql);
  const commit = commitVerb(sql, events, newId);
  const load = loadVerb(sql);
  const { empty: loading = [] } = load;
  const { empty: committing = [] } = commit;
  return {
    now: nowVerb(sql),
    create: createVerb(sql),
    createTogether: createTogetherVerb(sql),
    createWithin: createWithinVerb(sql),
    sendEvent: sendEventVerb(sql),
    postEvent: postEventVerb(sql),
    inboxHolds: inboxHoldsVerb(sql),
    moveInbox: moveInboxVerb(sql),
    control: controlVerb(sql, newId),
    ...runnerVerbs(sql),
    claim: claimVerb(sql),
    adopt: adoptVerb(sql),
    reopen: reopenVerb(sql),
    // While the code is replayed there is nothing to commit, so the connection can plan the commit.
    load: { ...load, rehearsal: committing },
    commit,
    poll: pollVerb(sql, events),
    // A runner that asks this has nothing to do, so its connection has time to plan.
    nextDue: { ...nextDueVerb(sql), rehearsal: [...loading, ...committing] },
    unknownLanes: unknownLanesVerb(sql),
    get: getVerb(sql),
    getMany: getManyVerb(sql),
    list: listVerb(sql),
    history: historyVerb(sql),
    ...registeringVerbs(sql),
    ...deliveringVerbs(sql),
  };
}

import { batchCases } from "./batches.js";
import { claimCases } from "./claim.js";
import { commitCases } from "./commit.js";
import { controlCases } from "./control.js";
import { createCases } from "./create.js";
import { dueCases } from "./due.js";
import { endingCases } from "./endings.js";
import { eventCases } from "./events.js";
import { fenceCases } from "./fences.js";
import type { ConformanceCase } from "./fixture.js";
import { historyCases } from "./history.js";
import { hookDeliveryCases } from "./hook-deliveries.js";
import { hookCases } from "./hooks.js";
import { inboxCases } from "./inbox.js";
import { listCases } from "./list.js";
import { loadCases } from "./load.js";
import { migrateCases } from "./migrate.js";
import { outgoingCases } from "./outgoing.js";
import { pollCases } from "./poll.js";
import { raceCases } from "./races.js";
import { reopenCases } from "./reopen.js";
import { resendCases } from "./resend.js";
import { resentEventCases } from "./resent-events.js";
import { runnerCases } from "./runners.js";
import { timeCases } from "./time.js";
import { transactionCases } from "./transactions.js";
import { withTransactions } from "./world.js";

export type { ConformanceCase, StoreFixture, TestDatabase, TestTransaction } from "./fixture.js";

/** The promises of a store by theme. */
export const storeConformanceByTheme: Readonly<Record<string, readonly ConformanceCase[]>> = {
  migrate: migrateCases,
  create: createCases,
  transactions: withTransactions(transactionCases),
  inbox: withTransactions(inboxCases),
  claim: claimCases,
  reopen: reopenCases,
  load: loadCases,
  commit: [...commitCases, ...outgoingCases, ...endingCases, ...fenceCases, ...batchCases],
  resend: [...resendCases, ...resentEventCases],
  poll: pollCases,
  events: eventCases,
  control: controlCases,
  runners: runnerCases,
  due: dueCases,
  time: timeCases,
  list: listCases,
  history: historyCases,
  hooks: hookCases,
  "hook deliveries": hookDeliveryCases,
  races: withTransactions(raceCases),
};

/**
 * Everything a store promises, one case each. Run them all on your own store: give each a fixture and
 * fail when it throws.
 */
export const storeConformance: readonly ConformanceCase[] =
  Object.values(storeConformanceByTheme).flat();

import type { WorkflowEntry } from "../authoring/entry.js";
import type { EngineContext } from "../engine/context.js";
import type { Run } from "../engine/run.js";
import type { Deliverer } from "../hooks/deliverer.js";
import { idMaker } from "../model/ids.js";
import type { Invariants } from "../model/invariants.js";
import type { Logger } from "../model/logger.js";
import type { Runtime } from "../model/seams.js";
import type { Notices } from "../store/notices.js";
import type { Lane, Store } from "../store/store.js";
import { Claims } from "./claims.js";
import { Committer } from "./committer.js";
import { Dispatch } from "./dispatch.js";
import { EndListeners } from "./end-listeners.js";
import { Lease, type LeaseEvents } from "./lease.js";
import { LiveRuns } from "./live-runs.js";
import { LocalEnds } from "./local-ends.js";
import { LocalStarts } from "./local-starts.js";
import type { RunnerOptions } from "./options.js";
import { PeerHints } from "./peer-hints.js";
import { Slots } from "./slots.js";
import { TicketPolls } from "./ticket-polls.js";
import { Turns } from "./turns.js";
import { UnknownWork } from "./unknown-work.js";

export type RunnerContext = {
  readonly runtime: Runtime;
  readonly logger: Logger;
  readonly invariants: Invariants;
  readonly notices: Notices;
  readonly hooks: Deliverer;
  /**
   * Returns the context that all runs share. It is called when a run is made, because the bindings of runs lead back to
   * this runner.
   */
  readonly engine: () => EngineContext;
};

export type RunnerComponents = ReturnType<typeof runnerComponents>;

/** Creates the components of a runner, and gives each of them the others that it needs. */
export function runnerComponents(
  store: Store,
  entries: ReadonlyMap<string, WorkflowEntry>,
  lanes: readonly Lane[],
  context: RunnerContext,
  options: RunnerOptions,
  leaseEvents: LeaseEvents,
) {
  const { runtime, logger, invariants, notices, hooks } = context;
  const { scheduler, clock } = runtime;
  const dispatch = new Dispatch();
  const lease = new Lease(options.leaseMs, store, runtime, idMaker(runtime), leaseEvents);
  const slots = new Slots(options.concurrency, lease, dispatch, scheduler, invariants);
  const live = new LiveRuns(options.live, logger);
  const claims = new Claims(store, lanes, lease, slots, clock, logger);
  const failed = (): void => lease.lostTouch();
  const lost = (run: Run): void => turns.lost(run);
  const reports = { logger, invariants, notices };
  const commits = new Committer(store, runtime, options.batch, reports, {
    lost,
    failed,
    refused: (run, part, message) => turns.refused(run, part, message),
  });
  const polls = new TicketPolls(store, lease, slots, runtime, logger, { lost, failed });
  const slotListeners = new EndListeners(scheduler);
  const ends = new EndListeners(scheduler);
  const turnComponents = { lease, claims, slots, live, polls, commits, dispatch, slotListeners };
  const turns: Turns = new Turns(store, entries, turnComponents, context, options.maxTakeovers);
  const peers = new PeerHints(store.hints, runtime, logger, ends, {
    due: (inMs) => dispatch.soon(inMs),
    changed: (owner, target) => starts.doubt(owner, target),
  });
  notices.ended.subscribe(ends.hear);
  if (store.hints !== undefined) notices.ended.subscribe((target) => peers.ended(target));
  const startComponents = { lease, slots, live, dispatch, turns, polls, peers, hooks };
  const starts: LocalStarts = new LocalStarts(startComponents);
  const unknownWork = new UnknownWork(store, lanes, hooks.names, clock, logger);
  const components = { dispatch, lease, slots, live, claims, commits, polls, turns, peers, starts };
  return { ...components, unknownWork, ends: new LocalEnds(slots, slotListeners, ends, peers) };
}

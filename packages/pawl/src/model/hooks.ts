import type { Signal } from "./abort.js";
import type { TerminalState } from "./status.js";

/**
 * The names of the hooks. A hook is called after its cause was committed, at least once, by any process that has it.
 */
export const hookNames = ["onWorkflowEnqueued", "onInstanceFinished"] as const;
export type HookName = (typeof hookNames)[number];

export function isHookName(word: unknown): word is HookName {
  return (hookNames as readonly unknown[]).includes(word);
}

/** Why a run can go on. A timer is not among the reasons: its time stands on the run's ticket. */
export type EnqueueReason = "create" | "restart" | "resume" | "event";

type Happened = {
  /** Stays the same when this is delivered again: use it to recognise what you have seen. */
  readonly id: string;
  readonly workflowName: string;
  readonly instanceId: string;
  /** 1 for the first run of an instance, and one more after each restart. */
  readonly runNumber: number;
  /** When it was committed, by the database's clock. */
  readonly happenedAt: Date;
};

/** The first argument of `onWorkflowEnqueued`. Params are not included: read them by the id. */
export type WorkflowEnqueued = Happened & { readonly reason: EnqueueReason };
/** The first argument of `onInstanceFinished`. Outputs and errors are not included: read them by the id. */
export type InstanceFinished = Happened & { readonly status: TerminalState };

/** One call of a hook. */
export type HookDelivery = {
  /** Counts the calls for the same cause, from 1. */
  readonly attempt: number;
  /** Fires when the call has taken longer than 30 seconds, or when the process stops. */
  readonly signal: Signal;
};

/**
 * Functions that are called after something was committed. A delivery succeeds when the function's promise resolves. If
 * it throws, or takes longer than 30 seconds, it is called again later, up to 15 times in all.
 */
export type Hooks = {
  /** Called when a run can go on: it was created, restarted or resumed, or was sent an event that it may wait for. */
  readonly onWorkflowEnqueued?:
    | ((happened: WorkflowEnqueued, delivery: HookDelivery) => unknown)
    | undefined;
  /** Called when a run has completed, failed or been terminated. A run that a restart replaces does not end. */
  readonly onInstanceFinished?:
    | ((happened: InstanceFinished, delivery: HookDelivery) => unknown)
    | undefined;
};

import type { Signal } from "./abort.js";
import type { TerminalState } from "./status.js";

/** Code that is called after something was committed: at least once, wherever a process has it. */
export const hookNames = ["onWorkflowEnqueued", "onInstanceFinished"] as const;
export type HookName = (typeof hookNames)[number];

export function isHookName(word: unknown): word is HookName {
  return (hookNames as readonly unknown[]).includes(word);
}

/** Why there is something to run. Timers are not among them: their time stands on the ticket. */
export type EnqueueReason = "create" | "restart" | "resume" | "event";

type Happened = {
  /** The same whenever this is delivered again. */
  readonly id: string;
  readonly workflowName: string;
  readonly instanceId: string;
  readonly runNumber: number;
  /** When it was committed, by the database. */
  readonly happenedAt: Date;
};

export type WorkflowEnqueued = Happened & { readonly reason: EnqueueReason };
export type InstanceFinished = Happened & { readonly status: TerminalState };

export type HookDelivery = {
  /** From 1. */
  readonly attempt: number;
  /** Fires when the delivery takes too long, or the process stops. */
  readonly signal: Signal;
};

/** Each resolves when it is done; what it throws is tried again later. */
export type Hooks = {
  /** A run can go on: created, restarted, resumed, or an event came that it may wait for. */
  readonly onWorkflowEnqueued?:
    | ((happened: WorkflowEnqueued, delivery: HookDelivery) => unknown)
    | undefined;
  /** A run ended, whichever way. A run that a restart replaces does not end. */
  readonly onInstanceFinished?:
    | ((happened: InstanceFinished, delivery: HookDelivery) => unknown)
    | undefined;
};

import { newAborter } from "../model/abort.js";
import type {
  EnqueueReason,
  HookDelivery,
  Hooks,
  InstanceFinished,
  WorkflowEnqueued,
} from "../model/hooks.js";
import { quote } from "../model/quote.js";
import type { Runtime } from "../model/seams.js";
import type { TerminalState } from "../model/status.js";
import type { HookRow } from "../store/outbox.js";

export type DeliveryOutcome =
  | { readonly kind: "done" }
  | { readonly kind: "failed"; error: unknown };

/** One call of a hook. It ends once: when the hook returns, when it times out, or when the process stops. */
export class Delivery {
  readonly row: HookRow;
  /** Resolves when the delivery has ended; to null if it was abandoned and its outcome does not count. */
  readonly outcome: Promise<DeliveryOutcome | null>;
  readonly #end: (outcome: DeliveryOutcome | null) => void;
  readonly #aborter = newAborter();

  constructor(row: HookRow, hooks: Hooks, runtime: Runtime, timeoutMs: number) {
    this.row = row;
    let end!: (outcome: DeliveryOutcome | null) => void;
    this.outcome = new Promise((resolve) => (end = resolve));
    const cancel = runtime.scheduler.after(timeoutMs, () =>
      this.cutOff(`${row.hook} took longer than ${timeoutMs} ms`),
    );
    this.#end = (outcome) => {
      cancel();
      end(outcome);
    };
    const { signal } = this.#aborter;
    const begin = (): Promise<void> => call(hooks, row, { attempt: row.attempts, signal });
    // A step may have caused this delivery, and be the current context, but the hook is no part of that step.
    const called = runtime.context === null ? begin() : runtime.context.run(null, begin);
    called.then(
      () => this.#end({ kind: "done" }),
      (error: unknown) => this.#end({ kind: "failed", error }),
    );
  }

  /** Fails the delivery now, whatever the hook still does. */
  cutOff(reason: string): void {
    const error = new Error(reason);
    this.#end({ kind: "failed", error });
    this.#aborter.abort(error);
  }

  /** Ends the delivery without an outcome, as if the process had died. */
  abandon(): void {
    this.#end(null);
    this.#aborter.abort(new Error("abandoned"));
  }
}

/** Calls the hook. The function is async, so that an error that the hook throws synchronously rejects too. */
async function call(hooks: Hooks, row: HookRow, delivery: HookDelivery): Promise<void> {
  switch (row.hook) {
    case "onWorkflowEnqueued":
      await hooks.onWorkflowEnqueued?.(enqueuedOf(row), delivery);
      return;
    case "onInstanceFinished":
      await hooks.onInstanceFinished?.(finishedOf(row), delivery);
      return;
    default:
      throw new Error(`there is no hook ${quote(row.hook)}`);
  }
}

type Told = Pick<HookRow, "id" | "workflow" | "instanceId" | "runNumber" | "reason" | "createdAt">;

function happened({ id, workflow, instanceId, runNumber, createdAt }: Told) {
  return {
    id,
    workflowName: workflow,
    instanceId,
    runNumber,
    happenedAt: new Date(createdAt),
  };
}

export function enqueuedOf(row: Told): WorkflowEnqueued {
  return { ...happened(row), reason: row.reason as EnqueueReason };
}

export function finishedOf(row: Told): InstanceFinished {
  return { ...happened(row), status: row.reason as TerminalState };
}

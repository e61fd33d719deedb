import { describeError } from "../model/error-codec.js";
import { ValidationError } from "../model/errors.js";
import {
  hookNames,
  isHookName,
  type HookName,
  type InstanceFinished,
  type WorkflowEnqueued,
} from "../model/hooks.js";
import { quote } from "../model/quote.js";
import type { FailedHookRow, Store } from "../store/store.js";
import type { Deliverer } from "./deliverer.js";
import { enqueuedOf, finishedOf } from "./delivery.js";

/** What was given up after its last attempt. */
export type FailedDelivery = (
  | (WorkflowEnqueued & { readonly hook: "onWorkflowEnqueued" })
  | (InstanceFinished & { readonly hook: "onInstanceFinished" })
) & {
  readonly attempts: number;
  readonly failedAt: Date;
  /** Of the last attempt. */
  readonly error: { readonly name: string; readonly message: string };
};

export type FailedDeliveries = {
  readonly deliveries: FailedDelivery[];
  readonly cursor?: string;
  readonly hasNextPage: boolean;
};

export type FailedDeliveriesOptions = {
  readonly pageSize?: number | undefined;
  readonly cursor?: string | undefined;
};

/** For people who look after deliveries. */
export interface HookAdministration {
  /** Deliveries that were given up, the latest first. They stay until they are retried or their hook unregistered. */
  failed(options?: FailedDeliveriesOptions): Promise<FailedDeliveries>;
  /** Delivers it again, with all its attempts. False if nothing is left to deliver under this id. */
  retry(id: string): Promise<boolean>;
  /**
   * For a hook that was taken out of the code: nothing is written for it any more, and what waits is dropped. Answers
   * how many deliveries that were. A process that still has the hook registers it again when it starts.
   */
  unregister(name: HookName): Promise<number>;
}

type FailedPage = { readonly pageSize: number; readonly cursor?: string };

export function hookAdministration(
  store: Pick<Store, "failedHooks" | "retryHook" | "unregisterHook">,
  deliverer: Deliverer,
  validPage: (options: FailedDeliveriesOptions) => FailedPage,
): HookAdministration {
  return {
    async failed(options = {}) {
      const { items, ...page } = await store.failedHooks(validPage(options));
      return { deliveries: items.map(toFailed), ...page };
    },
    async retry(id) {
      if (typeof id !== "string") {
        throw new ValidationError(`the id of a delivery must be a string, got ${quote(id)}`);
      }
      const isThere = await store.retryHook(id);
      if (isThere) void deliverer.look();
      return isThere;
    },
    async unregister(name) {
      if (!isHookName(name)) {
        throw new ValidationError(`${quote(name)} is no hook; there are ${hookNames.join(", ")}`);
      }
      return store.unregisterHook(name);
    },
  };
}

function toFailed(row: FailedHookRow): FailedDelivery {
  const { name, message } = describeError(row.error);
  const failed = {
    attempts: row.attempts,
    failedAt: new Date(row.failedAt),
    error: { name, message },
  };
  return row.hook === "onWorkflowEnqueued"
    ? { hook: row.hook, ...enqueuedOf(row), ...failed }
    : { hook: row.hook, ...finishedOf(row), ...failed };
}

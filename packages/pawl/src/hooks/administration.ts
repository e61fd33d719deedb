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
import type { Store } from "../store/store.js";
import type { FailedHookRow } from "../store/outbox.js";
import type { Deliverer } from "./deliverer.js";
import { enqueuedOf, finishedOf } from "./delivery.js";

/** A delivery that was given up after its last attempt. */
export type FailedDelivery = (
  | (WorkflowEnqueued & { readonly hook: "onWorkflowEnqueued" })
  | (InstanceFinished & { readonly hook: "onInstanceFinished" })
) & {
  /** How often the hook was called. */
  readonly attempts: number;
  /** When the last attempt failed, by the database's clock. */
  readonly failedAt: Date;
  /** The error of the last attempt. */
  readonly error: { readonly name: string; readonly message: string };
};

/** A page of deliveries that were given up. */
export type FailedDeliveries = {
  readonly deliveries: FailedDelivery[];
  /** Pass this to `failed` to get the next page. */
  readonly cursor?: string;
  readonly hasNextPage: boolean;
};

export type FailedDeliveriesOptions = {
  /** How many deliveries the page may have, up to `limits.pageSizeMax` (100). Default `limits.pageSizeDefault` (25). */
  readonly pageSize?: number | undefined;
  /** The `cursor` of the page before. */
  readonly cursor?: string | undefined;
};

/** Administration of deliveries to hooks. */
export interface HookAdministration {
  /**
   * Returns deliveries that were given up, the latest first. Each is kept until it is retried or its hook unregistered.
   */
  failed(options?: FailedDeliveriesOptions): Promise<FailedDeliveries>;
  /**
   * Delivers a failed delivery again, with all its attempts. Returns false if nothing is left to deliver under this id.
   */
  retry(id: string): Promise<boolean>;
  /**
   * Forgets a hook that was taken out of the code. No more deliveries are written for it, and those that wait or were
   * given up are dropped. Returns how many were dropped. A process that still has the hook registers it again when it
   * starts.
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
        throw new ValidationError(
          `${quote(name)} is not a hook; the hooks are ${hookNames.join(", ")}`,
        );
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

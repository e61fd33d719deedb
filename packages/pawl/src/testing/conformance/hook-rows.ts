import { hookNames } from "../../model/hooks.js";
import type { Store } from "../../store/store.js";
import type { HookClaimRequest, HookRow } from "../../store/outbox.js";

export const hookLeaseMs = 60_000;

export async function claimed(
  store: Store,
  request: Partial<HookClaimRequest> = {},
): Promise<readonly HookRow[]> {
  return store.claimHooks({
    hooks: hookNames,
    limit: 100,
    leaseMs: hookLeaseMs,
    maxAttempts: 5,
    ...request,
  });
}

/** Claims and settles all rows, and returns each as a short text. */
export async function told(store: Store): Promise<string[]> {
  const rows = await claimed(store);
  await store.settleHooks(rows.map(({ id, claimNumber }) => ({ id, claimNumber, failure: null })));
  return rows
    .map(
      ({ hook, reason, instanceId, runNumber }) => `${hook} ${reason} ${instanceId} ${runNumber}`,
    )
    .toSorted();
}

import { hookNames, type EnqueueReason, type HookName } from "../../model/hooks.js";
import type { Clock } from "../../model/seams.js";
import { decodeCursor, encodeCursor } from "../../store/cursor.js";
import type { DbTime } from "../../store/records.js";
import type { Page } from "../../store/store.js";
import type {
  FailedHookRow,
  FailedHooksQuery,
  HookClaimRequest,
  HookRow,
  HookSettlement,
} from "../../store/outbox.js";
import type { ModelInstance } from "./run.js";

type Kept = { -readonly [Field in keyof HookRow]: HookRow[Field] } & {
  dueAt: DbTime | null;
  failedAt: DbTime | null;
  error: string | null;
};

/**
 * The hooks and the deliveries still owed to them. Ids are numbers, because the port only says that they stay
 * the same.
 */
export class ModelOutbox {
  readonly #clock: Clock;
  readonly #registered = new Set<HookName>();
  #rows: Kept[] = [];
  #made = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  enqueued({ workflow, id, run }: ModelInstance, reason: EnqueueReason, hooked = false): void {
    if (hooked || this.#registered.has("onWorkflowEnqueued")) {
      this.#post("onWorkflowEnqueued", workflow, id, run.runNumber, reason);
    }
  }

  finished({ workflow, id, run }: ModelInstance): void {
    if (!this.#registered.has("onInstanceFinished")) return;
    this.#post("onInstanceFinished", workflow, id, run.runNumber, run.status);
  }

  #post(
    hook: HookName,
    workflow: string,
    instanceId: string,
    runNumber: number,
    reason: string,
  ): void {
    this.#made += 1;
    const now = this.#clock.now();
    this.#rows.push({
      id: `${this.#made}`,
      hook,
      workflow,
      instanceId,
      runNumber,
      reason,
      createdAt: now,
      attempts: 0,
      claimNumber: 0,
      dueAt: now,
      failedAt: null,
      error: null,
    });
  }

  /** Returns the mark that a rollback goes back to. */
  mark(): number {
    return this.#rows.length;
  }

  backTo(mark: number): void {
    this.#rows.length = mark;
  }

  register(hooks: readonly HookName[]): void {
    for (const hook of hooks) this.#registered.add(hook);
  }

  unregister(hook: HookName): number {
    this.#registered.delete(hook);
    const before = this.#rows.length;
    this.#rows = this.#rows.filter((row) => row.hook !== hook);
    return before - this.#rows.length;
  }

  claim({ hooks, limit, leaseMs, maxAttempts }: HookClaimRequest): HookRow[] {
    const now = this.#clock.now();
    const due = hooks.flatMap((hook) =>
      this.#rows
        .filter((row) => row.hook === hook && row.dueAt !== null && row.dueAt <= now)
        .toSorted((a, b) => (a.dueAt ?? 0) - (b.dueAt ?? 0)),
    );
    const claimed: HookRow[] = [];
    for (const row of due.slice(0, limit)) {
      if (row.attempts >= maxAttempts) {
        this.#giveUp(row, row.error ?? '"no process came back from the last delivery"');
        continue;
      }
      row.attempts += 1;
      row.claimNumber += 1;
      row.dueAt = now + leaseMs;
      const { dueAt: _due, failedAt: _failed, error: _error, ...told } = row;
      claimed.push(told);
    }
    return claimed;
  }

  settle(settlements: readonly HookSettlement[]): void {
    for (const { id, claimNumber, failure } of settlements) {
      if (failure === null) {
        this.#rows = this.#rows.filter((row) => row.id !== id);
        continue;
      }
      const row = this.#rows.find((each) => each.id === id && each.claimNumber === claimNumber);
      if (row === undefined) continue;
      if (failure.retryInMs === null) this.#giveUp(row, failure.error);
      else {
        row.dueAt = this.#clock.now() + failure.retryInMs;
        row.failedAt = null;
        row.error = failure.error;
      }
    }
  }

  #giveUp(row: Kept, error: string): void {
    row.dueAt = null;
    row.failedAt = this.#clock.now();
    row.error = error;
  }

  failed({ pageSize, cursor }: FailedHooksQuery): Page<FailedHookRow> {
    const about = "failed hooks";
    const all = this.#rows
      .filter(({ failedAt }) => failedAt !== null)
      .toSorted((a, b) => (b.failedAt ?? 0) - (a.failedAt ?? 0) || (a.id < b.id ? 1 : -1))
      .map(({ claimNumber: _fence, dueAt: _due, failedAt, error, ...told }) => ({
        ...told,
        failedAt: failedAt ?? 0,
        error: error ?? "",
      }));
    const [at, last] =
      cursor === undefined ? [] : decodeCursor(cursor, about, ["integer", "string"]);
    const from = all.findIndex((row) => row.failedAt === at && row.id === last) + 1;
    const items = all.slice(from, from + pageSize);
    const end = items.at(-1);
    return end !== undefined && all.length > from + pageSize
      ? { items, cursor: encodeCursor(about, [end.failedAt, end.id]), hasNextPage: true }
      : { items, hasNextPage: false };
  }

  retry(id: string): boolean {
    const row = this.#rows.find((each) => each.id === id);
    if (row === undefined) return false;
    if (row.failedAt === null) return true;
    row.dueAt = this.#clock.now();
    row.failedAt = null;
    row.attempts = 0;
    row.claimNumber += 1;
    return true;
  }

  unknown(known: readonly HookName[], ms: number): string[] {
    const before = this.#clock.now() - ms;
    return hookNames.filter(
      (hook) =>
        !known.includes(hook) &&
        this.#rows.some((row) => row.hook === hook && row.dueAt !== null && row.dueAt < before),
    );
  }

  nextDueAt(hooks: readonly HookName[]): DbTime[] {
    return this.#rows.flatMap(({ hook, dueAt }) =>
      dueAt !== null && hooks.includes(hook) ? [dueAt] : [],
    );
  }
}

import type { InstanceRecord, Target } from "./records.js";
import type {
  CreateAnswer,
  ListQuery,
  NewEvent,
  NewInstance,
  Page,
  SendEventAnswer,
  Store,
} from "./store.js";

/** What callers ask about instances; the other verbs are for those who run them. */
export interface InstanceStore<Tx = unknown> extends Pick<
  Store<Tx>,
  "control" | "get" | "history"
> {
  create(
    instances: readonly NewInstance[],
    options?: { readonly tx?: Tx | undefined },
  ): Promise<CreateAnswer[]>;
  sendEvent(
    target: Target,
    event: NewEvent,
    options?: { readonly tx?: Tx | undefined },
  ): Promise<SendEventAnswer>;
  list(query: ListQuery): Promise<Page<ListedRecord>>;
  /** Whether a new instance would be stored here, without asking elsewhere. Absent: always. */
  fits?(target: Target): boolean;
}

/** Without what makes pages large: params, and long outputs. */
export type ListedRecord = InstanceRecord & {
  /** It is left out. */
  readonly isOutputTooLong: boolean;
};

import type { InstanceRecord } from "./records.js";
import type { Target } from "../model/target.js";
import type {
  CreateAnswer,
  ListQuery,
  NewEvent,
  NewInstance,
  Page,
  SendEventAnswer,
  Store,
} from "./store.js";

/** The verbs that callers use for instances. The other verbs of a store are for runners. */
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
  /** Whether a new instance would be stored here, without asking elsewhere. If absent, every instance would be. */
  fits?(target: Target): boolean;
}

/** An instance without what makes pages large, which is params and long outputs. */
export type ListedRecord = InstanceRecord & {
  /** The output is left out because it is too long. */
  readonly isOutputTooLong: boolean;
};
